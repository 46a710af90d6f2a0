//! Concurrency: named tasks of one node.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use tokio::sync::oneshot;

/// What a runtime must provide: run the future to its end, concurrently, until its node stops.
/// Returns an abort function. A panic in a task is fatal to the node, never swallowed.
pub trait TaskDriver: Send + Sync {
    /// Starts a task; the returned function cancels it at its next suspension point.
    fn spawn(
        &self,
        name: &'static str,
        future: BoxFuture<'static, ()>,
    ) -> Box<dyn Fn() + Send + Sync>;
}

/// Handle to start tasks.
#[derive(Clone)]
pub struct Tasks(Arc<dyn TaskDriver>);

/// The task was aborted, or its node is stopping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the task was cancelled")]
pub struct TaskCancelled;

/// A started task. Dropping it lets the task run on; awaiting it gives its output.
pub struct Task<T> {
    output: oneshot::Receiver<T>,
    abort: Box<dyn Fn() + Send + Sync>,
}

impl Tasks {
    /// Wraps a runtime's executor.
    pub fn new(driver: Arc<dyn TaskDriver>) -> Self {
        Self(driver)
    }

    /// Starts a task. The name is for traces.
    pub fn spawn<F>(&self, name: &'static str, future: F) -> Task<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let (sender, output) = oneshot::channel();
        let abort = self.0.spawn(
            name,
            Box::pin(async move {
                // Nobody waiting is fine: tasks may outlive interest in their output.
                let _ = sender.send(future.await);
            }),
        );
        Task { output, abort }
    }
}

impl<T> Task<T> {
    /// Cancels the task at its next suspension point.
    pub fn abort(&self) {
        (self.abort)();
    }
}

impl<T> Future for Task<T> {
    type Output = Result<T, TaskCancelled>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.output).poll(context).map(|result| result.map_err(|_| TaskCancelled))
    }
}
