//! A read of a stream: one answer is made when the one before is taken.

use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use tokio::sync::OwnedSemaphorePermit;
use tonic::Status;

use super::record;
use crate::broker::Topic;
use crate::domain::WallTime;
use crate::frontend::grpc::GrpcConfig;
use crate::frontend::grpc::refusal::Refusal;
use crate::rpc::generated::public::{self as wire, read_stream_request::Start};

/// Records of one answer.
const RECORDS_MAX: u64 = 1024;

pub(super) struct ReadSession {
    topic: Topic,
    next: u64,
    /// Records still wanted.
    left: u64,
    follow: bool,
    bytes_max: usize,
    _permit: OwnedSemaphorePermit,
}

impl ReadSession {
    /// Finds where to begin. A number that is trimmed or beyond the end is refused by the first answer.
    pub(super) async fn begin(
        topic: Topic,
        request: &wire::ReadStreamRequest,
        config: &GrpcConfig,
        permit: OwnedSemaphorePermit,
    ) -> Result<Self, Refusal> {
        let log = topic.log();
        let next = match request.start {
            Some(Start::Number(number)) => number,
            Some(Start::Time(time)) => log.number_after(WallTime(time)).await?,
            Some(Start::First(true)) => log.facts().first_number,
            Some(Start::Tail(true)) => log.facts().next_number,
            None | Some(Start::First(false) | Start::Tail(false)) => {
                return Err(Refusal::invalid("a read begins at a number, a time, first or tail"));
            }
        };
        Ok(Self {
            next,
            left: if request.limit == 0 { u64::MAX } else { request.limit },
            follow: request.follow,
            bytes_max: config.read_bytes,
            topic,
            _permit: permit,
        })
    }

    pub(super) fn answers(self) -> BoxStream<'static, Result<wire::ReadStreamAnswer, Status>> {
        let answers = stream::unfold(Some(self), |session| async move {
            let mut session = session?;
            match session.answer().await {
                Ok(Some(answer)) => Some((Ok(answer), Some(session))),
                Ok(None) => None,
                Err(refusal) => Some((Err(Status::from(refusal)), None)),
            }
        });
        answers.boxed()
    }

    /// The next records; `None` at the end.
    async fn answer(&mut self) -> Result<Option<wire::ReadStreamAnswer>, Refusal> {
        while self.left > 0 {
            let wanted = usize::try_from(self.left.min(RECORDS_MAX)).unwrap_or(1);
            let entries = self.topic.log().read(self.next, wanted, self.bytes_max).await?;
            if entries.is_empty() {
                if !self.follow {
                    return Ok(None);
                }
                self.topic.log().committed(self.next).await?;
                continue;
            }
            self.next += entries.len() as u64;
            self.left -= entries.len() as u64;
            let records = entries.into_iter().map(record::decode).collect::<Result<_, _>>()?;
            return Ok(Some(wire::ReadStreamAnswer { records }));
        }
        Ok(None)
    }
}
