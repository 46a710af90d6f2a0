//! An append under way.

use tokio::sync::mpsc;
use tonic::Streaming;

use super::StreamError;
use crate::rpc::generated::public::streams_client::StreamsClient;
use crate::rpc::generated::public::{self as wire, append_answer, append_request};
use crate::rpc::{Channel, ReceiverStream};

/// Records handed over and not yet sent; further ones wait.
const QUEUE: usize = 64;

/// One call: what is stored of it is a prefix of what was sent.
pub struct Appender {
    requests: Option<mpsc::Sender<wire::AppendRequest>>,
    answers: Streaming<wire::AppendAnswer>,
    opened: wire::StreamFacts,
}

impl Appender {
    pub(super) async fn open(
        mut client: StreamsClient<Channel>,
        stream: wire::StreamName,
        token: Option<u64>,
    ) -> Result<Self, StreamError> {
        let (requests, receiver) = mpsc::channel(QUEUE);
        let open = append_request::Item::Open(wire::OpenAppend { stream: Some(stream), token });
        let open = wire::AppendRequest { item: Some(open) };
        requests.send(open).await.map_err(|_| StreamError::silent(&"the call ended"))?;
        let mut answers = client.append(ReceiverStream::new(receiver)).await?.into_inner();
        match answers.message().await?.and_then(|answer| answer.item) {
            Some(append_answer::Item::Opened(opened)) => {
                Ok(Self { requests: Some(requests), answers, opened })
            }
            _ => Err(StreamError::silent(&"the call was not opened")),
        }
    }

    /// The stream as it was opened.
    pub fn opened(&self) -> wire::StreamFacts {
        self.opened
    }

    /// Hands a record over, waiting for room; false when the call has ended, which [`Appender::next`] tells.
    pub async fn send(&self, record: wire::NewRecord) -> bool {
        let Some(requests) = &self.requests else { return false };
        let item = Some(append_request::Item::Record(record));
        requests.send(wire::AppendRequest { item }).await.is_ok()
    }

    /// No more records follow.
    pub fn finish(&mut self) {
        self.requests = None;
    }

    /// Numbers of the next records that were committed; `None` when all are. An error tells of the first record
    /// without a number.
    pub async fn next(&mut self) -> Result<Option<Vec<u64>>, StreamError> {
        match self.answers.message().await? {
            None => Ok(None),
            Some(wire::AppendAnswer { item: Some(append_answer::Item::Committed(committed)) }) => {
                Ok(Some(committed.numbers))
            }
            Some(_) => Err(StreamError::silent(&"an answer that was not expected")),
        }
    }
}
