//! Who woke a task: each waker of a recorded task remembers what was being done when it was used. That is how a record
//! knows what led to it, through queues and locks of the code that is simulated, of which the simulator knows nothing.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::future::BoxFuture;

use super::Recorder;
use super::store::Work;
use crate::mutant;

/// A task of a node whose records are to name what woke it.
pub(in crate::runtime::sim) struct Traced {
    recorder: Recorder,
    node: u32,
    woken_by: Arc<AtomicU32>,
    /// Held by whoever may wake it and not by itself: a task that nobody can wake any more must go as it would without
    /// a recording.
    waker: Weak<TracedWaker>,
    future: BoxFuture<'static, ()>,
}

impl Traced {
    /// What it does first is owed to whoever spawns it.
    pub(in crate::runtime::sim) fn new(
        recorder: &Recorder,
        node: u32,
        future: BoxFuture<'static, ()>,
    ) -> Self {
        let woken_by = Arc::new(AtomicU32::new(recorder.cause()));
        Self { recorder: recorder.clone(), node, woken_by, waker: Weak::new(), future }
    }

    fn waker(&mut self, inner: &Waker) -> Waker {
        let known = self.waker.upgrade().filter(|waker| waker.inner.will_wake(inner));
        let waker = known.unwrap_or_else(|| {
            let waker = Arc::new(TracedWaker {
                recorder: self.recorder.clone(),
                woken_by: Arc::clone(&self.woken_by),
                inner: inner.clone(),
            });
            self.waker = Arc::downgrade(&waker);
            if mutant!("V-wakes") {
                inner.wake_by_ref();
            }
            waker
        });
        Waker::from(waker)
    }
}

impl Future for Traced {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let waker = self.waker(context.waker());
        let before =
            self.recorder.turn_to(Work::of(self.node, self.woken_by.load(Ordering::Relaxed)));
        let polled = self.future.as_mut().poll(&mut Context::from_waker(&waker));
        self.recorder.turn_to(before);
        polled
    }
}

struct TracedWaker {
    recorder: Recorder,
    woken_by: Arc<AtomicU32>,
    inner: Waker,
}

impl Wake for TracedWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let cause = self.recorder.cause();
        if cause != 0 && !mutant!("V-cause") {
            self.woken_by.store(cause, Ordering::Relaxed);
        }
        self.inner.wake_by_ref();
    }
}
