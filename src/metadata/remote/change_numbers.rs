//! The names of one client's changes: the number the store gave the client, and a number that rises with each
//! change. The store is told with each which answers it need not keep any longer.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::Notify;

use crate::metadata::store::CLIENT_CHANGES_MAX;
use crate::reached;
use crate::rpc::generated::metadata as wire;

/// A change this far ahead of the oldest one under way waits: the store keeps the answers of all between.
const AHEAD_MAX: u64 = CLIENT_CHANGES_MAX - 1;

/// The numbers of one client. Cheap to clone.
#[derive(Clone)]
pub(super) struct ChangeNumbers(Arc<Inner>);

struct Inner {
    client: u64,
    under_way: Mutex<UnderWay>,
    ended: Notify,
}

#[derive(Default)]
struct UnderWay {
    last: u64,
    sequences: BTreeSet<u64>,
}

/// The name of a change, until nobody waits for its answer.
pub(super) struct ChangeName {
    numbers: ChangeNumbers,
    sequence: u64,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl ChangeNumbers {
    /// Those in use.
    pub(super) fn current(slot: &Mutex<Option<Self>>) -> Option<Self> {
        locked(slot).clone()
    }

    /// Those of a client number just given, unless another task was given one before.
    pub(super) fn begin_with(slot: &Mutex<Option<Self>>, client: u64) -> Self {
        let new = || {
            let ended = Notify::new();
            Self(Arc::new(Inner { client, under_way: Mutex::default(), ended }))
        };
        locked(slot).get_or_insert_with(new).clone()
    }

    /// The store does not know them any more.
    pub(super) fn forget(&self, slot: &Mutex<Option<Self>>) {
        let mut slot = locked(slot);
        if slot.as_ref().is_some_and(|current| Arc::ptr_eq(&current.0, &self.0)) {
            *slot = None;
        }
    }

    /// Names a change; waits while it would be too far ahead.
    pub(super) async fn begin(&self) -> ChangeName {
        loop {
            let ended = self.0.ended.notified();
            tokio::pin!(ended);
            ended.as_mut().enable();
            if let Some(sequence) = locked(&self.0.under_way).next() {
                return ChangeName { numbers: self.clone(), sequence };
            }
            reached!("metadata: a change waited for an older one");
            ended.await;
        }
    }
}

impl UnderWay {
    fn next(&mut self) -> Option<u64> {
        let sequence = self.last + 1;
        let oldest = self.sequences.first().copied().unwrap_or(sequence);
        if sequence - oldest > AHEAD_MAX {
            return None;
        }
        self.last = sequence;
        self.sequences.insert(sequence);
        Some(sequence)
    }
}

impl ChangeName {
    /// As the store is told it now.
    pub(super) fn id(&self) -> wire::RequestId {
        let under_way = locked(&self.numbers.0.under_way);
        wire::RequestId {
            client: self.numbers.0.client,
            sequence: self.sequence,
            answered_below: under_way.sequences.first().copied().unwrap_or(self.sequence),
        }
    }
}

impl Drop for ChangeName {
    fn drop(&mut self) {
        locked(&self.numbers.0.under_way).sequences.remove(&self.sequence);
        self.numbers.0.ended.notify_waiters();
    }
}
