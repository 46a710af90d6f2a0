//! What dispatch knows of each consumer: permits, room, and what it holds unacknowledged.

use std::collections::BTreeMap;

use crate::domain::Position;

/// A consumer's identity within its topic. Given once, never reused, so a late command of a consumer that
/// is gone cannot reach another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConsumerKey(pub u64);

/// Permits above this are forgotten: more than any client can mean.
const PERMITS_MAX: i64 = u32::MAX as i64;

/// One consumer.
#[derive(Debug)]
pub(super) struct DispatchConsumer {
    pub(super) priority: i32,
    pub(super) permits: i64,
    pub(super) has_room: bool,
    pub(super) blocked: bool,
    pub(super) epoch: Option<u64>,
    /// Entries given out and not acknowledged, with the messages of each still open (Shared only).
    pub(super) unacked: BTreeMap<Position, u32>,
    pub(super) unacked_messages: u64,
}

impl DispatchConsumer {
    pub(super) fn new(priority: i32, epoch: Option<u64>) -> Self {
        Self {
            priority,
            permits: 0,
            has_room: true,
            blocked: false,
            epoch,
            unacked: BTreeMap::new(),
            unacked_messages: 0,
        }
    }

    /// May be given an entry now.
    pub(super) fn is_available(&self) -> bool {
        self.permits > 0 && self.has_room && !self.blocked
    }

    pub(super) fn add_permits(&mut self, permits: u32) {
        self.permits = (self.permits + i64::from(permits)).min(PERMITS_MAX);
    }

    /// Notes an entry as given out; blocks the consumer at the limit.
    pub(super) fn hold(&mut self, position: Position, messages: u32, unacked_max: u32) {
        self.unacked_messages += u64::from(messages);
        if let Some(before) = self.unacked.insert(position, messages) {
            self.unacked_messages -= u64::from(before);
        }
        if self.unacked_messages >= u64::from(unacked_max) {
            self.blocked = true;
        }
    }

    /// Lowers what is open of an entry to `remaining` messages; true if this consumer holds it.
    pub(super) fn settle(&mut self, position: Position, remaining: u32, unacked_max: u32) -> bool {
        let Some(open) = self.unacked.get_mut(&position) else {
            return false;
        };
        let left = remaining.min(*open);
        self.unacked_messages -= u64::from(*open - left);
        if left == 0 {
            self.unacked.remove(&position);
        } else {
            *open = left;
        }
        // Unblocked only below half, so that a consumer at the limit is not switched at every message.
        if self.blocked && self.unacked_messages < u64::from(unacked_max.div_ceil(2)) {
            self.blocked = false;
        }
        true
    }
}
