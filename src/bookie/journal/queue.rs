//! What waits for a journal's writer, and what the writer has done. Each journal has its own bound, so that one
//! that stands still fills its own queue only.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::JournalItem;
use crate::runtime::{Mailbox, MailboxSender, mailbox};

/// Batches and fences queued for a journal, beside the bound on bytes.
const QUEUE_ITEMS: usize = 64 * 1024;

/// The queue of one journal.
pub(in crate::bookie) struct JournalQueue {
    items: MailboxSender<JournalItem>,
    bytes: AtomicUsize,
    bytes_max: usize,
    /// Syncs since start.
    pub syncs: AtomicU64,
    /// Bytes written since start, padding included.
    pub bytes_written: AtomicU64,
}

impl JournalQueue {
    /// An empty queue of so many bytes, and the end its writer takes from.
    pub fn new(bytes_max: usize) -> (Self, Mailbox<JournalItem>) {
        let (items, writer) = mailbox(QUEUE_ITEMS);
        let (bytes, syncs, bytes_written) = Default::default();
        (Self { items, bytes, bytes_max, syncs, bytes_written }, writer)
    }

    /// Counts bytes in; false (and not counted) if they would exceed the bound. A batch larger than the bound
    /// passes when the queue is empty.
    pub fn enter(&self, bytes: usize) -> bool {
        let before = self.bytes.fetch_add(bytes, Ordering::Relaxed);
        let fits = before == 0 || before + bytes <= self.bytes_max;
        if !fits {
            self.left(bytes);
        }
        fits
    }

    /// Bytes were answered for.
    pub fn left(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Queues an item unless there are too many, or the writer is gone.
    pub fn try_send(&self, item: JournalItem) -> Result<(), JournalItem> {
        self.items.try_send(item)
    }

    /// Queues an item whatever is there; an error only if the writer is gone.
    pub fn push(&self, item: JournalItem) -> Result<(), JournalItem> {
        self.items.push(item)
    }

    /// The writer is gone.
    pub fn is_closed(&self) -> bool {
        self.items.is_closed()
    }
}
