//! A read under way.

use tonic::Streaming;

use super::StreamError;
use crate::rpc::Channel;
use crate::rpc::generated::public::streams_client::StreamsClient;
use crate::rpc::generated::public::{self as wire, read_stream_request::Start};

/// Records in order.
pub struct StreamReader {
    answers: Streaming<wire::ReadStreamAnswer>,
    /// Taken already, to know that the read was granted.
    first: Option<wire::ReadStreamAnswer>,
}

impl StreamReader {
    pub(super) async fn open(
        mut client: StreamsClient<Channel>,
        stream: wire::StreamName,
        start: Start,
        limit: u64,
        follow: bool,
    ) -> Result<Self, StreamError> {
        let request =
            wire::ReadStreamRequest { stream: Some(stream), start: Some(start), limit, follow };
        let mut answers = client.read_stream(request).await?.into_inner();
        // A refusal by the first answer is one of the call; but a follower may have to wait for it.
        let first = if follow { None } else { answers.message().await? };
        Ok(Self { answers, first })
    }

    /// The next records; `None` at the end.
    pub async fn next(&mut self) -> Result<Option<Vec<wire::Record>>, StreamError> {
        let answer = match self.first.take() {
            Some(first) => Some(first),
            None => self.answers.message().await?,
        };
        Ok(answer.map(|answer| answer.records))
    }
}
