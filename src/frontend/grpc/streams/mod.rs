//! The stream API over the broker: a stream is a persistent topic with numbers.

mod append;
mod owner;
mod read;
mod record;

use futures_util::stream::BoxStream;
use tonic::{Request, Response, Status, Streaming};

use super::GrpcConfig;
use super::refusal::Refusal;
use super::sessions::Sessions;
use crate::broker::{Broker, StreamFacts, Topic};
use crate::rpc::generated::public::{self as wire, streams_server};
use crate::runtime::Runtime;

/// See the module.
pub(super) struct StreamsService {
    runtime: Runtime,
    broker: Broker,
    sessions: Sessions,
    config: GrpcConfig,
}

/// The generated service around [`StreamsService`].
pub(super) type StreamsServer = streams_server::StreamsServer<StreamsService>;

fn facts(facts: StreamFacts) -> wire::StreamFacts {
    let StreamFacts { first_number, next_number, token } = facts;
    wire::StreamFacts { first_number, next_number, token }
}

impl StreamsService {
    pub(super) fn server(
        runtime: Runtime,
        broker: Broker,
        sessions: Sessions,
        config: GrpcConfig,
    ) -> StreamsServer {
        let bytes_max = config.request_bytes_max();
        streams_server::StreamsServer::new(Self { runtime, broker, sessions, config })
            .max_decoding_message_size(bytes_max)
    }
}

#[tonic::async_trait]
impl streams_server::Streams for StreamsService {
    type AppendStream = BoxStream<'static, Result<wire::AppendAnswer, Status>>;
    type ReadStreamStream = BoxStream<'static, Result<wire::ReadStreamAnswer, Status>>;

    async fn create_stream(
        &self,
        request: Request<wire::CreateStreamRequest>,
    ) -> Result<Response<wire::StreamFacts>, Status> {
        let stream = request.into_inner().stream;
        let creating = async {
            let topic = owner::topic(&self.broker, stream.as_ref(), true).await?;
            topic.log().make_stream().await?;
            Ok(facts(topic.log().facts()))
        };
        self.config.limited(&self.runtime.clock, creating).await
    }

    async fn describe_stream(
        &self,
        request: Request<wire::DescribeStreamRequest>,
    ) -> Result<Response<wire::StreamFacts>, Status> {
        let stream = request.into_inner().stream;
        let describing = async {
            let topic = owner::topic(&self.broker, stream.as_ref(), false).await?;
            Ok(facts(topic.log().facts()))
        };
        self.config.limited(&self.runtime.clock, describing).await
    }

    async fn append(
        &self,
        request: Request<Streaming<wire::AppendRequest>>,
    ) -> Result<Response<Self::AppendStream>, Status> {
        let permit = self.sessions.enter()?;
        Ok(Response::new(append::answers(
            self.runtime.clock.clone(),
            self.broker.clone(),
            self.config.clone(),
            request.into_inner(),
            permit,
        )))
    }

    async fn read_stream(
        &self,
        request: Request<wire::ReadStreamRequest>,
    ) -> Result<Response<Self::ReadStreamStream>, Status> {
        let permit = self.sessions.enter()?;
        let request = request.into_inner();
        let topic = owner::topic(&self.broker, request.stream.as_ref(), false).await?;
        let session = read::ReadSession::begin(topic, &request, &self.config, permit).await?;
        Ok(Response::new(session.answers()))
    }

    async fn fence_stream(
        &self,
        request: Request<wire::FenceStreamRequest>,
    ) -> Result<Response<wire::StreamFacts>, Status> {
        let wire::FenceStreamRequest { stream, token } = request.into_inner();
        let fencing = async {
            let topic = owner::topic(&self.broker, stream.as_ref(), false).await?;
            raise_token(&topic, token).await
        };
        self.config.limited(&self.runtime.clock, fencing).await
    }

    async fn trim_stream(
        &self,
        request: Request<wire::TrimStreamRequest>,
    ) -> Result<Response<wire::StreamFacts>, Status> {
        let wire::TrimStreamRequest { stream, first_number } = request.into_inner();
        let trimming = async {
            let topic = owner::topic(&self.broker, stream.as_ref(), false).await?;
            topic.log().trim_below(first_number).await?;
            Ok(facts(topic.log().facts()))
        };
        self.config.limited(&self.runtime.clock, trimming).await
    }
}

/// Raises a stream's token; the end told is the one it was raised at.
async fn raise_token(topic: &Topic, token: u64) -> Result<wire::StreamFacts, Refusal> {
    if token == 0 {
        return Err(Refusal::invalid("a token is at least 1"));
    }
    let next_number = topic.log().raise_token(token).await?;
    Ok(wire::StreamFacts { next_number, token, ..facts(topic.log().facts()) })
}
