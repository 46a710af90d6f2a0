//! Looking into a dispatch machine: why it is idle, and figures for statistics.

use super::consumers::ConsumerKey;
use super::event::ReadId;
use super::machine::Machine;
use crate::broker::messages::SubscriptionType;
use crate::domain::Position;

/// Why nothing is being delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdleReason {
    /// Everything was given out.
    NothingToDeliver,
    /// It is being delivered: a read is pending.
    Reading,
    /// Nobody is connected.
    NoConsumer,
    /// Nobody who may be served has permits.
    NoPermits,
    /// Whoever has permits holds too much unacknowledged.
    Blocked,
    /// Whoever has permits is on a connection that is full.
    NoRoom,
    /// A read failed and is tried again soon.
    StorageFailed,
}

impl IdleReason {
    /// In words; empty when there is nothing to explain.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NothingToDeliver | Self::Reading => "",
            Self::NoConsumer => "no consumer is connected",
            Self::NoPermits => "no consumer has permits",
            Self::Blocked => "consumers with permits hold too many unacknowledged messages",
            Self::NoRoom => "the connections of consumers with permits are full",
            Self::StorageFailed => "a read failed and will be tried again",
        }
    }
}

impl Machine {
    /// Why nothing is being delivered right now.
    pub fn idle_reason(&self) -> IdleReason {
        let with_permits = || {
            let served = |key: &ConsumerKey| self.is_shared() || self.active == Some(*key);
            self.consumers
                .iter()
                .filter(move |(key, c)| served(key) && c.permits > 0)
                .map(|(_, c)| c)
        };
        if self.replay.is_empty() && !self.has_new() {
            IdleReason::NothingToDeliver
        } else if self.consumers.is_empty() {
            IdleReason::NoConsumer
        } else if self.paused {
            IdleReason::StorageFailed
        } else if with_permits().next().is_none() {
            IdleReason::NoPermits
        } else if with_permits().all(|consumer| consumer.blocked) {
            IdleReason::Blocked
        } else if with_permits().all(|consumer| !consumer.has_room || consumer.blocked) {
            IdleReason::NoRoom
        } else {
            IdleReason::Reading
        }
    }

    /// How messages are shared.
    pub const fn kind(&self) -> SubscriptionType {
        self.kind
    }

    /// Where the next read of new entries begins.
    pub const fn read_position(&self) -> Position {
        self.read_position
    }

    /// Entries waiting to be delivered again.
    pub fn in_replay(&self) -> u64 {
        self.replay.len() as u64
    }

    /// Who is served, of Exclusive and Failover.
    pub const fn active(&self) -> Option<ConsumerKey> {
        self.active
    }

    /// The pending read.
    pub fn pending_read(&self) -> Option<ReadId> {
        self.read.map(|read| read.id)
    }

    /// Permits of a consumer: below zero after a large batch.
    pub fn consumer_permits(&self, consumer: ConsumerKey) -> i64 {
        self.consumers.get(&consumer).map_or(0, |consumer| consumer.permits)
    }

    /// Messages a consumer holds unacknowledged (counted for Shared only).
    pub fn consumer_unacked(&self, consumer: ConsumerKey) -> u64 {
        self.consumers.get(&consumer).map_or(0, |consumer| consumer.unacked_messages)
    }

    /// A consumer is left out because it holds too much unacknowledged.
    pub fn consumer_blocked(&self, consumer: ConsumerKey) -> bool {
        self.consumers.get(&consumer).is_some_and(|consumer| consumer.blocked)
    }

    /// A consumer's connection was full when last asked.
    pub fn consumer_has_room(&self, consumer: ConsumerKey) -> bool {
        self.consumers.get(&consumer).is_some_and(|consumer| consumer.has_room)
    }
}
