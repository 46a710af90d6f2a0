//! What waits to be written on one connection, counted in bytes.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::{Bytes, BytesMut};
use tokio::sync::Notify;

use crate::frontend::pulsar::codec::{Command, encode_command, proto};
use crate::reached;
use crate::runtime::MailboxSender;

/// One item for the writer; its parts are written back to back.
pub(in crate::frontend::pulsar) enum Outgoing {
    /// Encoded frames, and the rest of the last one if it is too large to copy.
    Frames(Bytes, Option<Bytes>),
    /// Write what came before and close.
    End,
}

impl Outgoing {
    pub(super) fn length(&self) -> usize {
        match self {
            Self::Frames(head, tail) => head.len() + tail.as_ref().map_or(0, Bytes::len),
            Self::End => 0,
        }
    }
}

/// The sending side, shared by all sinks of a connection. Deliveries are bounded by [`Outbox::has_room`],
/// answers by the bound of requests and by not reading while it is twice full.
pub(in crate::frontend::pulsar) struct Outbox {
    sender: MailboxSender<Outgoing>,
    bytes: AtomicUsize,
    budget: usize,
    /// Consumers that were told there is no room, to be resumed.
    refused: Mutex<BTreeSet<u64>>,
    drained: Notify,
}

impl Outbox {
    pub(super) fn new(sender: MailboxSender<Outgoing>, budget: usize) -> Self {
        Self {
            sender,
            bytes: AtomicUsize::new(0),
            budget,
            refused: Mutex::new(BTreeSet::new()),
            drained: Notify::new(),
        }
    }

    fn refused(&self) -> MutexGuard<'_, BTreeSet<u64>> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues encoded frames. Dropped if the connection is gone.
    pub(in crate::frontend::pulsar) fn push(&self, head: Bytes, tail: Option<Bytes>) {
        let outgoing = Outgoing::Frames(head, tail);
        self.bytes.fetch_add(outgoing.length(), Ordering::SeqCst);
        // A connection that is gone has nobody to tell.
        let _ = self.sender.push(outgoing);
    }

    /// Queues a command.
    pub(in crate::frontend::pulsar) fn command(&self, command: &Command) {
        let mut buffer = BytesMut::new();
        encode_command(command, &mut buffer);
        self.push(buffer.freeze(), None);
    }

    /// Queues an ERROR.
    pub(in crate::frontend::pulsar) fn error(
        &self,
        request_id: u64,
        error: proto::ServerError,
        message: String,
    ) {
        self.command(&Command::Error(proto::CommandError {
            request_id,
            error: error.into(),
            message,
        }));
    }

    /// Queues a SUCCESS.
    pub(in crate::frontend::pulsar) fn success(&self, request_id: u64) {
        self.command(&Command::Success(proto::CommandSuccess { request_id, schema: None }));
    }

    /// Asks the writer to write what is queued and close.
    pub(super) fn end(&self) {
        let _ = self.sender.push(Outgoing::End);
    }

    /// Whether a consumer may be given more; if not it is remembered and resumed later.
    pub(in crate::frontend::pulsar) fn has_room(&self, consumer_id: u64) -> bool {
        if self.bytes.load(Ordering::SeqCst) < self.budget {
            return true;
        }
        let mut refused = self.refused();
        // The writer may have emptied the queue, and taken the set, since the first look.
        if self.bytes.load(Ordering::SeqCst) <= self.budget / 2 {
            return true;
        }
        reached!("pulsar connection: a consumer waits for room");
        refused.insert(consumer_id);
        false
    }

    /// Accounts for written bytes; gives the consumers to resume.
    pub(super) fn written(&self, count: usize) -> BTreeSet<u64> {
        let left = self.bytes.fetch_sub(count, Ordering::SeqCst) - count;
        if left > self.budget / 2 {
            return BTreeSet::new();
        }
        self.drained.notify_one();
        std::mem::take(&mut *self.refused())
    }

    /// Whether so much waits that the client should not be read.
    pub(super) fn is_clogged(&self) -> bool {
        self.bytes.load(Ordering::SeqCst) > self.budget * 2
    }

    /// Completes when less than half the budget waits. One waiter, the reader.
    pub(super) async fn unclogged(&self) {
        while self.bytes.load(Ordering::SeqCst) > self.budget / 2 {
            self.drained.notified().await;
        }
    }
}
