//! Tasks on tokio's executor.

use futures_util::future::BoxFuture;

use crate::runtime::TaskDriver;

pub(super) struct TokioTasks;

impl TaskDriver for TokioTasks {
    fn spawn(
        &self,
        _name: &'static str,
        future: BoxFuture<'static, ()>,
    ) -> Box<dyn Fn() + Send + Sync> {
        let handle = tokio::spawn(future).abort_handle();
        Box::new(move || handle.abort())
    }
}
