//! The client's side: one HTTP/2 connection to one address, made when needed, made anew when broken.

use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::BoxFuture;
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use tokio::sync::{Mutex, Semaphore};
use tonic::body::Body;
use tower::Service;

use super::hyper_runtime::{ClockTimer, TaskExecutor, stream_io};
use super::protocol::say;
use super::{CONNECTION_WINDOW_BYTES, FRAME_BYTES, PROTOCOL, STREAM_WINDOW_BYTES};
use crate::domain::Instant;
use crate::reached;
use crate::runtime::{Random, Runtime};

/// Bounds and times of a channel.
#[derive(Clone, Debug)]
pub struct ChannelConfig {
    /// Connecting and the HTTP/2 preface must be done within this.
    pub connect_timeout: Duration,
    /// After a failed attempt the next one is made this much later, doubling.
    pub back_off_first: Duration,
    /// The doubling stops here.
    pub back_off_max: Duration,
    /// A ping is sent after this much silence, also when no call runs.
    pub keep_alive_interval: Duration,
    /// A ping not answered for this long breaks the connection: a cut link is noticed within the sum of
    /// both.
    pub keep_alive_timeout: Duration,
    /// Bounded calls ([`Channel::bounded`]) at once; further ones wait, within their deadlines.
    pub calls_max: usize,
    /// The version of the protocol that calls are made in.
    pub protocol: u32,
}

impl Default for ChannelConfig {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(3),
            back_off_first: Duration::from_millis(50),
            back_off_max: Duration::from_secs(2),
            keep_alive_interval: Duration::from_secs(2),
            keep_alive_timeout: Duration::from_secs(3),
            calls_max: 256,
            protocol: PROTOCOL,
        }
    }
}

/// The call could not be made or broke off.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChannelError {
    /// No connection; nothing was sent.
    #[error("cannot connect to {address}: {detail}")]
    Connect {
        /// Where to.
        address: String,
        /// Why not.
        detail: String,
    },
    /// The last attempt failed a moment ago and the next is not due; nothing was sent.
    #[error("cannot connect to {address}, next attempt in {wait:?}: {detail}")]
    BackingOff {
        /// Where to.
        address: String,
        /// Until the next attempt.
        wait: Duration,
        /// Why the last attempt failed.
        detail: String,
    },
    /// The connection broke during the call: its outcome is unknown.
    #[error("connection to {address} broke: {detail}")]
    Broken {
        /// Where to.
        address: String,
        /// What was seen of it.
        detail: String,
    },
}

/// A channel to one address. Cheap to clone; the connection closes when the last clone is gone.
#[derive(Clone)]
pub struct Channel(Arc<Inner>);

struct Inner {
    runtime: Runtime,
    address: String,
    config: ChannelConfig,
    state: Mutex<State>,
    calls: Semaphore,
    jitter: Random,
}

#[derive(Default)]
struct State {
    sender: Option<SendRequest<Body>>,
    failures: u32,
    retry_at: Instant,
    last_failure: String,
}

impl Channel {
    /// A channel to `host:port`. Nothing is connected yet.
    pub fn new(runtime: Runtime, address: &str, config: ChannelConfig) -> Self {
        let calls = Semaphore::new(config.calls_max.clamp(1, 1 << 20));
        let jitter = runtime.random.fork("rpc back-off").fork(address);
        let address = address.to_owned();
        Self(Arc::new(Inner { runtime, address, config, state: Mutex::default(), calls, jitter }))
    }

    /// Where it leads.
    pub fn address(&self) -> &str {
        &self.0.address
    }

    /// Connects unless connected. An error means that nothing was sent; whoever must tell "not sent" from
    /// "unknown" calls this first.
    pub async fn ready(&self) -> Result<(), ChannelError> {
        self.0.connection().await.map(|_| ())
    }

    /// Runs one call under the channel's bound on calls and a deadline; past it the call is cancelled
    /// and its outcome unknown.
    pub async fn bounded<T>(
        &self,
        deadline: Duration,
        call: impl Future<Output = Result<T, tonic::Status>>,
    ) -> Result<T, tonic::Status> {
        let limited = async {
            let _call = self.0.calls.acquire().await;
            call.await
        };
        self.0.runtime.clock.timeout(deadline, limited).await.unwrap_or_else(|elapsed| {
            reached!("rpc: a call ran out of time");
            Err(tonic::Status::deadline_exceeded(elapsed.to_string()))
        })
    }
}

impl Inner {
    async fn connection(&self) -> Result<SendRequest<Body>, ChannelError> {
        // Held while connecting: everybody waits for the one attempt.
        let mut state = self.state.lock().await;
        if let Some(sender) = &state.sender
            && !sender.is_closed()
        {
            return Ok(sender.clone());
        }
        state.sender = None;
        let now = self.runtime.clock.now();
        if now < state.retry_at {
            return Err(ChannelError::BackingOff {
                address: self.address.clone(),
                wait: state.retry_at.since(now),
                detail: state.last_failure.clone(),
            });
        }
        let attempt = self.runtime.clock.timeout(self.config.connect_timeout, self.connect()).await;
        let detail = match attempt {
            Ok(Ok(sender)) => {
                state.failures = 0;
                state.sender = Some(sender.clone());
                return Ok(sender);
            }
            Ok(Err(detail)) => detail,
            Err(elapsed) => elapsed.to_string(),
        };
        state.retry_at = self.runtime.clock.now() + self.back_off(state.failures);
        state.failures = state.failures.saturating_add(1);
        state.last_failure.clone_from(&detail);
        Err(ChannelError::Connect { address: self.address.clone(), detail })
    }

    fn back_off(&self, failures: u32) -> Duration {
        let doubled = self.config.back_off_first.saturating_mul(1 << failures.min(16));
        let full = doubled.min(self.config.back_off_max);
        // Between half and all of it, so that many clients do not come back together.
        full / 2 + Duration::from_millis(self.jitter.below(1 + full.as_millis() as u64 / 2))
    }

    async fn connect(&self) -> Result<SendRequest<Body>, String> {
        let stream =
            self.runtime.network.connect(&self.address).await.map_err(|error| error.to_string())?;
        let mut builder = http2::Builder::new(TaskExecutor::new(self.runtime.tasks.clone()));
        builder
            .timer(ClockTimer::new(self.runtime.clock.clone()))
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .max_frame_size(FRAME_BYTES)
            .keep_alive_interval(self.config.keep_alive_interval)
            .keep_alive_timeout(self.config.keep_alive_timeout)
            .keep_alive_while_idle(true);
        let (sender, connection) = builder
            .handshake::<_, Body>(stream_io(stream))
            .await
            .map_err(|error| error.to_string())?;
        let address = self.address.clone();
        self.runtime.tasks.spawn("rpc client connection", async move {
            if let Err(error) = connection.await {
                tracing::debug!(address, %error, "rpc connection broke");
            }
        });
        Ok(sender)
    }
}

impl Service<http::Request<Body>> for Channel {
    type Response = http::Response<Incoming>;
    type Error = ChannelError;
    type Future = BoxFuture<'static, Result<Self::Response, ChannelError>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), ChannelError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: http::Request<Body>) -> Self::Future {
        let inner = Arc::clone(&self.0);
        say(inner.config.protocol, request.headers_mut());
        // Generated clients name a path only; HTTP/2 wants a scheme and an authority, nobody reads them.
        let mut parts = std::mem::take(request.uri_mut()).into_parts();
        parts.scheme = Some(http::uri::Scheme::HTTP);
        parts.authority = Some(http::uri::Authority::from_static("seawall"));
        match http::Uri::from_parts(parts) {
            Ok(uri) => *request.uri_mut() = uri,
            Err(error) => {
                let address = inner.address.clone();
                let error = ChannelError::Connect { address, detail: error.to_string() };
                return Box::pin(std::future::ready(Err(error)));
            }
        }
        Box::pin(async move {
            let mut sender = inner.connection().await?;
            sender.send_request(request).await.map_err(|error| ChannelError::Broken {
                address: inner.address.clone(),
                detail: error.to_string(),
            })
        })
    }
}
