//! One entry of a ledger with its end-to-end digest.

use bytes::Bytes;

use super::{EntryId, LedgerId};
use crate::mutant;

/// An entry as it travels and rests. The digest is computed once by the writer and checked by every
/// reader; bookies check it on arrival so that damage on the wire never reaches a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The ledger it belongs to.
    pub ledger: LedgerId,
    /// Its place there.
    pub entry: EntryId,
    /// Last add confirmed known to the writer when it sent this entry.
    pub last_add_confirmed: EntryId,
    /// Bytes of payload of this ledger up to and including this entry.
    pub length: u64,
    /// CRC-32C over the four numbers (little-endian, in the order above) and the payload.
    pub digest: u32,
    /// What the layer above stored.
    pub payload: Bytes,
}

/// Why an entry is not the one asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EntryDamage {
    /// The digest does not match the bytes.
    #[error("digest of entry {ledger}:{entry} is {found:#010x}, computed {computed:#010x}")]
    Digest {
        /// Ledger named by the entry.
        ledger: LedgerId,
        /// Entry id named by the entry.
        entry: EntryId,
        /// Digest carried.
        found: u32,
        /// Digest computed.
        computed: u32,
    },
    /// A good entry, but of another place.
    #[error("asked for entry {asked_ledger}:{asked_entry}, got {ledger}:{entry}")]
    Misplaced {
        /// Ledger asked for.
        asked_ledger: LedgerId,
        /// Entry id asked for.
        asked_entry: EntryId,
        /// Ledger found.
        ledger: LedgerId,
        /// Entry id found.
        entry: EntryId,
    },
}

impl Entry {
    /// Seals a payload with its digest. Only writers call this.
    pub fn seal(
        ledger: LedgerId,
        entry: EntryId,
        last_add_confirmed: EntryId,
        length: u64,
        payload: Bytes,
    ) -> Self {
        let covered = if mutant!("L26") { &payload[..payload.len() / 2] } else { &payload[..] };
        let digest = Self::compute_digest(ledger, entry, last_add_confirmed, length, covered);
        Self { ledger, entry, last_add_confirmed, length, digest, payload }
    }

    /// The digest over the header numbers and the payload.
    pub fn compute_digest(
        ledger: LedgerId,
        entry: EntryId,
        last_add_confirmed: EntryId,
        length: u64,
        payload: &[u8],
    ) -> u32 {
        let mut header = [0_u8; 32];
        header[0..8].copy_from_slice(&ledger.0.to_le_bytes());
        header[8..16].copy_from_slice(&entry.0.to_le_bytes());
        header[16..24].copy_from_slice(&last_add_confirmed.0.to_le_bytes());
        header[24..32].copy_from_slice(&length.to_le_bytes());
        crc32c::crc32c_append(crc32c::crc32c(&header), payload)
    }

    /// Checks the digest.
    pub fn verify_digest(&self) -> Result<(), EntryDamage> {
        let computed = Self::compute_digest(
            self.ledger,
            self.entry,
            self.last_add_confirmed,
            self.length,
            &self.payload,
        );
        if computed == self.digest {
            Ok(())
        } else {
            Err(EntryDamage::Digest {
                ledger: self.ledger,
                entry: self.entry,
                found: self.digest,
                computed,
            })
        }
    }

    /// Checks that this is the entry asked for, and undamaged.
    pub fn verify(&self, ledger: LedgerId, entry: EntryId) -> Result<(), EntryDamage> {
        if self.ledger != ledger || self.entry != entry {
            return Err(EntryDamage::Misplaced {
                asked_ledger: ledger,
                asked_entry: entry,
                ledger: self.ledger,
                entry: self.entry,
            });
        }
        self.verify_digest()
    }
}
