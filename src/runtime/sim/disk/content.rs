//! Bytes of a file as sparse pages: a preallocated file of zeros costs nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};

use super::Change;

const PAGE: usize = 4096;
const ZEROS: [u8; PAGE] = [0; PAGE];

/// Sparse content; pages are shared between clones until written.
#[derive(Clone, Default)]
pub(super) struct Content {
    pages: BTreeMap<u64, Arc<[u8; PAGE]>>,
    length: u64,
}

impl Content {
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    pub(super) fn apply(&mut self, change: &Change) {
        match change {
            Change::Write { offset, bytes } => self.write(*offset, bytes),
            Change::SetLength(length) => self.set_length(*length),
        }
    }

    pub(super) fn write(&mut self, offset: u64, mut bytes: &[u8]) {
        if bytes.is_empty() {
            // Nothing written does not make a file longer, wherever.
            return;
        }
        let mut at = offset;
        while !bytes.is_empty() {
            let start = (at % PAGE as u64) as usize;
            let length = bytes.len().min(PAGE - start);
            let (part, rest) = bytes.split_at(length);
            let page = at / PAGE as u64;
            if let Some(page) = self.pages.get_mut(&page) {
                Arc::make_mut(page)[start..start + length].copy_from_slice(part);
            } else if part != &ZEROS[..length] {
                // Zeros into a hole leave a hole.
                let mut bytes = ZEROS;
                bytes[start..start + length].copy_from_slice(part);
                self.pages.insert(page, Arc::new(bytes));
            }
            at += length as u64;
            bytes = rest;
        }
        self.length = self.length.max(at);
    }

    pub(super) fn read(&self, offset: u64, length: usize) -> Bytes {
        let available = self.length.saturating_sub(offset);
        let length = usize::try_from(available).unwrap_or(usize::MAX).min(length);
        let mut bytes = BytesMut::with_capacity(length);
        let mut at = offset;
        while bytes.len() < length {
            let start = (at % PAGE as u64) as usize;
            let part = (length - bytes.len()).min(PAGE - start);
            match self.pages.get(&(at / PAGE as u64)) {
                Some(page) => bytes.extend_from_slice(&page[start..start + part]),
                None => bytes.extend_from_slice(&ZEROS[..part]),
            }
            at += part as u64;
        }
        bytes.freeze()
    }

    pub(super) fn set_length(&mut self, length: u64) {
        if length < self.length {
            let first_whole = length.div_ceil(PAGE as u64);
            drop(self.pages.split_off(&first_whole));
            let start = (length % PAGE as u64) as usize;
            if start > 0
                && let Some(page) = self.pages.get_mut(&(length / PAGE as u64))
            {
                Arc::make_mut(page)[start..].fill(0);
            }
        }
        self.length = length;
    }

    /// Flips one bit.
    pub(super) fn flip(&mut self, offset: u64, bit: u8) {
        if offset < self.length {
            let page = self.pages.entry(offset / PAGE as u64).or_insert_with(|| Arc::new(ZEROS));
            Arc::make_mut(page)[(offset % PAGE as u64) as usize] ^= 1 << (bit % 8);
        }
    }

    /// Starts of the pages that hold anything but a hole.
    pub(super) fn written_pages(&self) -> Vec<u64> {
        self.pages.keys().map(|page| page * PAGE as u64).collect()
    }

    /// Gives number and checksum of each page that holds anything but a hole.
    pub(super) fn page_sums(&self, add: &mut impl FnMut(u64)) {
        for (page, bytes) in &self.pages {
            add(page << 32 | u64::from(crc32c::crc32c(&bytes[..])));
        }
    }

    pub(super) const fn page_size() -> u64 {
        PAGE as u64
    }
}
