//! What is due when: one heap of coming events for the whole world, and the task that performs them.
//!
//! All our delays end here rather than in madsim timers, so that a re-polled sleep costs nothing and a
//! change of a clock's rate can move timers. Due times are rounded up to whole milliseconds: everything
//! due in the same millisecond is performed in one turn, in the order it was scheduled.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

use super::lock;
use super::world::Shared;

/// One millisecond, in nanoseconds: the resolution of virtual time.
pub(super) const MILLISECOND: u64 = 1_000_000;

/// What to do when the time has come.
pub(super) enum Action {
    /// Wake a task.
    Wake(Waker),
    /// Look at a node's timers.
    NodeTimer {
        /// The node.
        node: u32,
    },
    /// Deliver what is due on one direction of a connection.
    Deliver {
        /// The connection.
        connection: u64,
        /// The sending end.
        from_end: usize,
    },
}

struct Entry {
    at: u64,
    sequence: u64,
    /// What it is owed to, in a recording.
    cause: u32,
    action: Action,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.sequence == other.sequence
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.sequence).cmp(&(other.at, other.sequence))
    }
}

/// The heap.
#[derive(Default)]
pub(super) struct Agenda {
    heap: BinaryHeap<Reverse<Entry>>,
    sequence: u64,
    /// Times at which madsim will wake the driver.
    armed: BTreeSet<u64>,
    driver: Option<Waker>,
    driving: bool,
    closed: bool,
}

impl Agenda {
    /// Schedules an action; returns the driver's waker if it must look again.
    fn add(&mut self, at: u64, cause: u32, action: Action) -> Option<Waker> {
        if self.closed {
            return None;
        }
        let at = at.div_ceil(MILLISECOND) * MILLISECOND;
        self.sequence += 1;
        self.heap.push(Reverse(Entry { at, sequence: self.sequence, cause, action }));
        let early = self.armed.first().is_none_or(|first| at < *first);
        if early && !self.driving { self.driver.clone() } else { None }
    }
}

/// Performs an action at a virtual time (nanoseconds since the start of the run).
pub(super) fn schedule(shared: &Shared, at: u64, action: Action) {
    let waker = lock(&shared.agenda).add(at, shared.recorder().cause(), action);
    if let Some(waker) = waker {
        waker.wake();
    }
}

/// Drops all that is planned and refuses more.
pub(super) fn close(shared: &Shared) {
    let heap = {
        let mut agenda = lock(&shared.agenda);
        agenda.closed = true;
        agenda.driver = None;
        std::mem::take(&mut agenda.heap)
    };
    drop(heap);
}

/// The world's driver: never ends.
pub(super) fn drive(shared: Arc<Shared>) -> impl Future<Output = ()> + Send {
    poll_fn(move |context| {
        let now = shared.now();
        lock(&shared.agenda).driving = true;
        loop {
            let due = {
                let mut agenda = lock(&shared.agenda);
                match agenda.heap.peek() {
                    Some(Reverse(entry)) if entry.at <= now => {
                        agenda.heap.pop().map(|Reverse(entry)| entry)
                    }
                    _ => None,
                }
            };
            let Some(Entry { cause, action, .. }) = due else { break };
            shared.recorder().owing(cause, || match action {
                Action::Wake(waker) => waker.wake(),
                Action::NodeTimer { node } => shared.fire_node_timers(node),
                Action::Deliver { connection, from_end } => shared.deliver(connection, from_end),
            });
        }
        let mut agenda = lock(&shared.agenda);
        agenda.driving = false;
        agenda.driver = Some(context.waker().clone());
        agenda.armed = agenda.armed.split_off(&(now + 1));
        if let Some(Reverse(next)) = agenda.heap.peek() {
            let next = next.at;
            if agenda.armed.first().is_none_or(|first| next < *first) {
                agenda.armed.insert(next);
                let mut sleep = shared.time.sleep(Duration::from_nanos(next - now));
                // One poll registers the timer; the waker in it outlives the sleep.
                let _ = std::pin::Pin::new(&mut sleep).poll(context);
            }
        }
        Poll::<()>::Pending
    })
}

/// Waits in virtual time, not by any node's clock. Zero ends at once.
pub(super) async fn delay(shared: &Shared, nanos: u64) {
    if nanos == 0 {
        return;
    }
    let until = shared.now() + nanos;
    // Polled again by the same task, it is already on the agenda.
    let mut planned: Option<Waker> = None;
    poll_fn(|context| {
        if shared.now() >= until {
            return Poll::Ready(());
        }
        if planned.as_ref().is_none_or(|waker| !waker.will_wake(context.waker())) {
            planned = Some(context.waker().clone());
            schedule(shared, until, Action::Wake(context.waker().clone()));
        }
        Poll::Pending
    })
    .await;
}

/// Lets other ready tasks run first, in no virtual time.
pub(super) async fn step_back() {
    let mut stepped = false;
    poll_fn(|context| {
        if std::mem::replace(&mut stepped, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
