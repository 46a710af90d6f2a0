//! Tasks of one start of a node, on madsim's executor.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::node::NodeState;
use super::recorder::Traced;
use super::world::Shared;
use crate::runtime::TaskDriver;

/// madsim remembers each task of a node until the node is killed, which for a task a call is most of what a long run
/// holds in memory. When it is asked how many there are, it forgets those that have ended.
const SPAWNS_BETWEEN_COUNTS: u64 = 1024;

/// Spawns into the node's madsim context, so that a kill drops the task.
pub(super) struct SimTasks {
    pub(super) shared: Arc<Shared>,
    pub(super) node: Arc<NodeState>,
    pub(super) start: u64,
    pub(super) handle: madsim::runtime::NodeHandle,
}

impl TaskDriver for SimTasks {
    fn spawn(
        &self,
        name: &'static str,
        future: BoxFuture<'static, ()>,
    ) -> Box<dyn Fn() + Send + Sync> {
        if !self.node.is_start(self.start) {
            // A destructor of a dead process: nothing of it may run any more.
            return Box::new(|| ());
        }
        let (shared, node, start) = (Arc::clone(&self.shared), Arc::clone(&self.node), self.start);
        if shared.spawned.fetch_add(1, Ordering::Relaxed) % SPAWNS_BETWEEN_COUNTS == 0 {
            shared.madsim.metrics().num_tasks();
        }
        let recorder = shared.recorder().clone();
        let work = async move {
            if let Err(panic) = AssertUnwindSafe(future).catch_unwind().await {
                let text = panic
                    .downcast_ref::<&str>()
                    .map(|text| (*text).to_owned())
                    .or_else(|| panic.downcast_ref::<String>().cloned())
                    .unwrap_or_else(|| "a panic without a text".to_owned());
                shared.task_panicked(&node, start, name, text);
            }
        };
        let task = match recorder.is_on() {
            false => self.handle.spawn(work),
            true => self.handle.spawn(Traced::new(&recorder, self.node.id, Box::pin(work))),
        };
        let abort = task.abort_handle();
        Box::new(move || abort.abort())
    }
}
