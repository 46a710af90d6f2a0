//! Our own client of the stream API: one stream, found at whichever broker serves it. It follows redirections
//! and tries other addresses, but repeats nothing that may have been stored.

mod append;
mod error;
mod read;

pub use append::Appender;
pub use error::StreamError;
pub use read::StreamReader;

use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use crate::domain::TopicName;
use crate::rpc::generated::public::streams_client::StreamsClient;
use crate::rpc::generated::public::{self as wire, Reason};
use crate::rpc::{Channel, ChannelConfig};
use crate::runtime::Runtime;

/// Most hops from one broker to another, addresses that do not answer included.
const HOPS_MAX: usize = 16;
/// Rest after a broker said "not now", or all addresses were tried.
const REST: Duration = Duration::from_millis(200);
/// A call that is answered once is given up after this; its outcome is then unknown.
const CALL_LIMIT: Duration = Duration::from_secs(30);
/// Largest answer taken, bytes: one record of the longest message any node can be set to, with its metadata.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;

/// See the module.
#[derive(Clone)]
pub struct StreamClient {
    runtime: Runtime,
    addresses: Vec<String>,
    name: String,
}

/// A call under way. Boxed: of an `AsyncFn` the compiler cannot tell that it may be sent between threads.
type Calling<T> = BoxFuture<'static, Result<T, StreamError>>;

/// Where a call goes, and what it says of it.
#[derive(Clone)]
struct Target {
    address: String,
    authoritative: bool,
}

impl StreamClient {
    /// A client of one stream by any of these brokers' gRPC addresses, `host:port`. Connects when it is used.
    pub fn new(runtime: &Runtime, addresses: &[String], stream: &str) -> Result<Self, StreamError> {
        let name = TopicName::parse(stream).map_err(|error| StreamError::usage(&error))?;
        if addresses.is_empty() {
            return Err(StreamError::usage(&"no address is given"));
        }
        Ok(Self { runtime: runtime.clone(), addresses: addresses.to_vec(), name: name.to_string() })
    }

    /// Makes the topic a stream.
    pub async fn create(&self) -> Result<wire::StreamFacts, StreamError> {
        self.at_owner(move |mut client, stream| {
            async move {
                let stream = Some(stream);
                Ok(client.create_stream(wire::CreateStreamRequest { stream }).await?.into_inner())
            }
            .boxed()
        })
        .await
    }

    /// What is known of it.
    pub async fn describe(&self) -> Result<wire::StreamFacts, StreamError> {
        self.at_owner(move |mut client, stream| {
            async move {
                let stream = Some(stream);
                Ok(client
                    .describe_stream(wire::DescribeStreamRequest { stream })
                    .await?
                    .into_inner())
            }
            .boxed()
        })
        .await
    }

    /// Raises its fencing token.
    pub async fn fence(&self, token: u64) -> Result<wire::StreamFacts, StreamError> {
        self.at_owner(move |mut client, stream| {
            async move {
                let request = wire::FenceStreamRequest { stream: Some(stream), token };
                Ok(client.fence_stream(request).await?.into_inner())
            }
            .boxed()
        })
        .await
    }

    /// Gives up every record below a number.
    pub async fn trim(&self, first_number: u64) -> Result<wire::StreamFacts, StreamError> {
        self.at_owner(move |mut client, stream| {
            async move {
                let request = wire::TrimStreamRequest { stream: Some(stream), first_number };
                Ok(client.trim_stream(request).await?.into_inner())
            }
            .boxed()
        })
        .await
    }

    /// Opens an append. With a token the stream's is raised to it.
    pub async fn append(&self, token: Option<u64>) -> Result<Appender, StreamError> {
        self.at_owner(move |client, stream| Appender::open(client, stream, token).boxed()).await
    }

    /// Opens a read.
    pub async fn read(
        &self,
        start: wire::read_stream_request::Start,
        limit: u64,
        follow: bool,
    ) -> Result<StreamReader, StreamError> {
        self.at_owner(move |client, stream| {
            StreamReader::open(client, stream, start, limit, follow).boxed()
        })
        .await
    }

    /// Makes a call at whoever serves the stream. Only calls that may be repeated go through here: they change
    /// nothing twice.
    async fn at_owner<T>(
        &self,
        call: impl Fn(StreamsClient<Channel>, wire::StreamName) -> Calling<T>,
    ) -> Result<T, StreamError> {
        let mut addresses = self.addresses.iter().cycle();
        let mut target = None;
        let mut last = StreamError::usage(&"no address is given");
        for hop in 0..HOPS_MAX {
            let Target { address, authoritative } = match target.take() {
                Some(target) => target,
                None => {
                    if hop > 0 {
                        self.runtime.clock.sleep(REST).await;
                    }
                    let Some(address) = addresses.next() else { break };
                    Target { address: address.clone(), authoritative: false }
                }
            };
            let config = ChannelConfig::default();
            let channel = Channel::new(self.runtime.clone(), &address, config);
            let client = StreamsClient::new(channel).max_decoding_message_size(ANSWER_BYTES_MAX);
            let stream = wire::StreamName { name: self.name.clone(), authoritative };
            let called = self.runtime.clock.timeout(CALL_LIMIT, call(client, stream)).await;
            last = match called {
                Ok(Ok(done)) => return Ok(done),
                Ok(Err(error)) => error,
                Err(late) => StreamError::silent(&late),
            };
            match last.reason() {
                Reason::NotOwner => {
                    target = Some(Target {
                        address: last.failure.owner.clone(),
                        authoritative: last.failure.authoritative,
                    });
                }
                // Nothing was answered, or not now: another address, or the same a little later.
                Reason::Unspecified | Reason::NotReady | Reason::Storage => {}
                _ => return Err(last),
            }
        }
        Err(last)
    }
}
