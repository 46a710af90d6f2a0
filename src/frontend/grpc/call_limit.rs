//! The limit of calls with one answer.

use tonic::{Response, Status};

use super::GrpcConfig;
use super::refusal::Refusal;
use crate::rpc::generated::public::Reason;
use crate::runtime::{Clock, Elapsed};

impl GrpcConfig {
    /// An answer within the limit of calls. What is late may be done still.
    pub(super) async fn limited<T>(
        &self,
        clock: &Clock,
        work: impl Future<Output = Result<T, Refusal>>,
    ) -> Result<Response<T>, Status> {
        let late =
            |late: Elapsed| Refusal::unknown(Reason::NotReady, format!("the call was {late}"));
        let done = clock.timeout(self.call_limit, work).await;
        Ok(Response::new(done.map_err(late)??))
    }
}
