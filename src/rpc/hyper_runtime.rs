//! What hyper asks of its surroundings, performed by the runtime: tasks, time, streams.

use std::future::Future;
use std::pin::Pin;
use std::sync::Mutex;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::BoxFuture;
use hyper::rt::{Executor, Sleep, Timer};
use hyper_util::rt::TokioIo;

use crate::domain::Instant;
use crate::runtime::{ByteStream, Clock, Tasks};

/// A runtime stream as hyper reads and writes it.
pub type StreamIo = TokioIo<ByteStream>;

/// Wraps a stream for hyper.
pub fn stream_io(stream: ByteStream) -> StreamIo {
    TokioIo::new(stream)
}

/// Runs hyper's futures as the node's tasks.
#[derive(Clone)]
pub struct TaskExecutor(Tasks);

impl TaskExecutor {
    /// An executor on these tasks.
    pub fn new(tasks: Tasks) -> Self {
        Self(tasks)
    }
}

impl<F> Executor<F> for TaskExecutor
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn execute(&self, future: F) {
        self.0.spawn("rpc stream", future);
    }
}

/// The node's monotonic clock as hyper's timer. hyper speaks of `std::time::Instant`, which only the
/// operating system can make, so one is taken as the origin and the node's time is added to it.
#[derive(Clone)]
pub struct ClockTimer {
    clock: Clock,
    origin: std::time::Instant,
    origin_here: Instant,
}

impl ClockTimer {
    /// A timer on this clock.
    #[allow(
        clippy::disallowed_methods,
        reason = "an origin only: differences are all that is ever looked at"
    )]
    pub fn new(clock: Clock) -> Self {
        let origin_here = clock.now();
        Self { clock, origin: std::time::Instant::now(), origin_here }
    }
}

struct ClockSleep(Mutex<BoxFuture<'static, ()>>);

impl Future for ClockSleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let sleep = self.0.get_mut().unwrap_or_else(|poisoned| poisoned.into_inner());
        sleep.as_mut().poll(context)
    }
}

impl Sleep for ClockSleep {}

impl Timer for ClockTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        Box::pin(ClockSleep(Mutex::new(self.clock.sleep(duration))))
    }

    fn sleep_until(&self, deadline: std::time::Instant) -> Pin<Box<dyn Sleep>> {
        let deadline = self.origin_here + deadline.saturating_duration_since(self.origin);
        Box::pin(ClockSleep(Mutex::new(self.clock.sleep_until(deadline))))
    }

    fn now(&self) -> std::time::Instant {
        self.origin + self.clock.now().since(self.origin_here)
    }
}
