//! What can happen to a subscription's dispatch, and what it can ask for.

use super::consumers::ConsumerKey;
use crate::domain::Position;

/// Names one read; never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReadId(pub u64);

/// What the machine needs to know of an entry that was read.
#[derive(Clone, Copy, Debug)]
pub struct Fact {
    /// Where it is.
    pub position: Position,
    /// Messages of it not acknowledged; 0 means it needs no delivery.
    pub remaining: u32,
}

/// What happened.
#[derive(Clone, Debug)]
pub enum Event {
    /// The log now ends at this entry.
    NewData {
        /// The last committed position.
        end: Position,
    },
    /// A consumer allows more messages.
    Flow {
        /// Who.
        consumer: ConsumerKey,
        /// How many more.
        permits: u32,
    },
    /// A consumer's connection has, or has no, room.
    Room {
        /// Who.
        consumer: ConsumerKey,
        /// Whether it has room.
        has_room: bool,
    },
    /// Messages were acknowledged, by this consumer or through it.
    Acked {
        /// Who acknowledged; not always who holds the entry.
        consumer: ConsumerKey,
        /// Entries with the messages of each that are still open (0: all acknowledged).
        entries: Vec<(Position, u32)>,
    },
    /// A consumer wants entries again.
    Redeliver {
        /// Who.
        consumer: ConsumerKey,
        /// Which; `None` for everything it holds.
        positions: Option<Vec<Position>>,
        /// Its epoch from now on.
        epoch: Option<u64>,
        /// The first entry not acknowledged, where Exclusive and Failover go back to.
        first_unacked: Position,
    },
    /// A consumer joined.
    Joined {
        /// Who.
        consumer: ConsumerKey,
        /// Lower is served first.
        priority: i32,
        /// Its epoch.
        epoch: Option<u64>,
        /// The first entry not acknowledged.
        first_unacked: Position,
    },
    /// A consumer left.
    Left {
        /// Who.
        consumer: ConsumerKey,
        /// The first entry not acknowledged.
        first_unacked: Position,
    },
    /// A read was performed.
    ReadDone {
        /// Which.
        id: ReadId,
        /// What it found, in order.
        entries: Vec<Fact>,
        /// Positions asked for that the log has no more (replay reads).
        gone: Vec<Position>,
    },
    /// A read failed or was given up.
    ReadFailed {
        /// Which.
        id: ReadId,
    },
    /// Time to try again after a failed read.
    Retry,
    /// The cursor was moved; nobody is connected.
    Reset {
        /// The first entry to deliver.
        next: Position,
    },
}

/// One entry of a read for a consumer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Assigned {
    /// Its index in the read's result.
    pub index: usize,
    /// Where it is.
    pub position: Position,
    /// Times it was asked for again.
    pub redelivery_count: u32,
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Read on from a position; answer with `ReadDone` or `ReadFailed`.
    Read {
        /// Names the read.
        id: ReadId,
        /// Where to begin, inclusive.
        from: Position,
        /// Entries at most.
        entries_max: u64,
    },
    /// Read these entries again; answer with `ReadDone` or `ReadFailed`.
    ReadReplay {
        /// Names the read.
        id: ReadId,
        /// Which, in order.
        positions: Vec<Position>,
    },
    /// The read's answer is of no interest any more.
    CancelRead {
        /// Which.
        id: ReadId,
    },
    /// Give entries of the read just answered to a consumer.
    Deliver {
        /// To whom.
        consumer: ConsumerKey,
        /// Its epoch, stamped on each.
        epoch: Option<u64>,
        /// Which, in order.
        entries: Vec<Assigned>,
    },
    /// Tell a consumer of a Failover subscription whether it is active.
    ActiveChanged {
        /// Whom.
        consumer: ConsumerKey,
        /// Whether it is.
        is_active: bool,
    },
    /// Send `Retry` after a while.
    RetryLater,
}
