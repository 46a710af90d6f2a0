//! The server's accept loop: bounded connections, each a task, and a stop that lets calls finish.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures_util::future::BoxFuture;
use hyper::body::Incoming;
use hyper::server::conn::http2;
use tokio::sync::Semaphore;
use tonic::body::Body;
use tonic::server::NamedService;
use tower::Service;
use tower::util::BoxCloneSyncService;

use super::hyper_runtime::{ClockTimer, TaskExecutor, stream_io};
use super::protocol::refusal;
use super::{CONNECTION_WINDOW_BYTES, FRAME_BYTES, STREAM_WINDOW_BYTES};
use crate::reached;
use crate::runtime::{Accepted, ByteStream, Listener, Runtime, ShutdownSignal};

type HttpRequest = http::Request<Incoming>;
type HttpResponse = http::Response<Body>;

/// Bounds and times of a server.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// Connections served at once; further ones wait to be accepted.
    pub connections_max: usize,
    /// Calls at once on one connection; the client holds back further ones.
    pub streams_max: u32,
    /// A connection that has made no call by then is closed. Never, if not given: for ports that only our own
    /// nodes reach, whose channels may rest.
    pub first_call_limit: Option<Duration>,
    /// A ping is sent after this much silence.
    pub keep_alive_interval: Duration,
    /// A ping not answered for this long ends the connection.
    pub keep_alive_timeout: Duration,
    /// After a stop, calls have this long to finish. Endless streams are cut then.
    pub drain: Duration,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            connections_max: 1024,
            streams_max: 1024,
            first_call_limit: None,
            keep_alive_interval: Duration::from_secs(5),
            keep_alive_timeout: Duration::from_secs(5),
            drain: Duration::from_secs(1),
        }
    }
}

/// Which service answers which name. Cheap to clone; clones are the same routes.
#[derive(Clone, Default)]
pub struct Routes(Arc<Mutex<Services>>);

#[derive(Default)]
struct Services {
    by_name: BTreeMap<&'static str, BoxCloneSyncService<HttpRequest, HttpResponse, Infallible>>,
    /// More may come.
    growing: bool,
}

impl Routes {
    /// No services.
    pub fn new() -> Self {
        Self::default()
    }

    /// No services yet: until [`Routes::complete`] is called, whoever asks for one that is missing is told to
    /// come back. So a node can serve what its other parts need before they can start.
    pub fn growing() -> Self {
        Self(Arc::new(Mutex::new(Services { growing: true, ..Services::default() })))
    }

    /// Adds a generated service under its name.
    pub fn with<S>(self, service: S) -> Self
    where
        S: Service<HttpRequest, Response = HttpResponse, Error = Infallible>
            + NamedService
            + Clone
            + Send
            + Sync
            + 'static,
        S::Future: Send + 'static,
    {
        self.services().by_name.insert(S::NAME, BoxCloneSyncService::new(service));
        self
    }

    /// Nothing more will be added: what is missing now is not served here.
    pub fn complete(&self) {
        self.services().growing = false;
    }

    fn services(&self) -> MutexGuard<'_, Services> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl hyper::service::Service<HttpRequest> for Routes {
    type Response = HttpResponse;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<HttpResponse, Infallible>>;

    fn call(&self, request: HttpRequest) -> Self::Future {
        if let Some(status) = refusal(request.headers()) {
            return Box::pin(std::future::ready(Ok(status.into_http())));
        }
        let name = request.uri().path().split('/').nth(1).unwrap_or_default();
        let (found, growing) = {
            let services = self.services();
            (services.by_name.get(name).cloned(), services.growing)
        };
        let status = match found {
            // Generated services are always ready.
            Some(mut service) => return service.call(request),
            None if growing => {
                reached!("rpc: a service was asked for before it had started");
                tonic::Status::unavailable("the node is starting")
            }
            None => tonic::Status::unimplemented("no such service"),
        };
        Box::pin(std::future::ready(Ok(status.into_http())))
    }
}

/// The routes of one connection, noting that it is used.
struct Watched {
    routes: Routes,
    called: Arc<AtomicBool>,
}

impl hyper::service::Service<HttpRequest> for Watched {
    type Response = HttpResponse;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<HttpResponse, Infallible>>;

    fn call(&self, request: HttpRequest) -> Self::Future {
        self.called.store(true, Ordering::Relaxed);
        self.routes.call(request)
    }
}

/// Serves until `stop` is triggered, then lets calls finish for [`ServerConfig::drain`] and returns with
/// every connection closed.
pub async fn serve(
    runtime: Runtime,
    listener: Listener,
    routes: Routes,
    config: ServerConfig,
    stop: ShutdownSignal,
) {
    let count = config.connections_max.clamp(1, 1 << 20);
    let room = Arc::new(Semaphore::new(count));
    loop {
        let accepted = async {
            let room = Arc::clone(&room).acquire_owned().await;
            (room, listener.accept().await)
        };
        let (room, accepted) = tokio::select! {
            biased;
            () = stop.triggered() => break,
            accepted = accepted => accepted,
        };
        match accepted {
            Ok(Accepted { stream, peer, .. }) => {
                let connection = serve_connection(
                    runtime.clone(),
                    stream,
                    routes.clone(),
                    config.clone(),
                    stop.clone(),
                );
                runtime.tasks.spawn("rpc connection", async move {
                    if let Err(error) = connection.await {
                        tracing::debug!(peer, %error, "rpc connection ended");
                    }
                    drop(room);
                });
            }
            Err(error) => {
                // Out of file descriptors, most likely: waiting is all that helps.
                reached!("rpc: accept failed");
                tracing::warn!(%error, "cannot accept rpc connections");
                drop(room);
                runtime.clock.sleep(Duration::from_millis(100)).await;
            }
        }
    }
    // Every connection gives its room back when it has closed.
    let all = u32::try_from(count).unwrap_or(u32::MAX);
    let _ = room.acquire_many(all).await;
}

fn serve_connection(
    runtime: Runtime,
    stream: ByteStream,
    routes: Routes,
    config: ServerConfig,
    stop: ShutdownSignal,
) -> impl Future<Output = Result<(), hyper::Error>> + Send {
    let mut builder = http2::Builder::new(TaskExecutor::new(runtime.tasks.clone()));
    builder
        .timer(ClockTimer::new(runtime.clock.clone()))
        .auto_date_header(false)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_frame_size(FRAME_BYTES)
        .max_concurrent_streams(config.streams_max)
        .keep_alive_interval(config.keep_alive_interval)
        .keep_alive_timeout(config.keep_alive_timeout);
    async move {
        let called = Arc::new(AtomicBool::new(false));
        let first_call = async {
            match config.first_call_limit {
                Some(limit) => runtime.clock.sleep(limit).await,
                None => std::future::pending().await,
            }
            if called.load(Ordering::Relaxed) {
                std::future::pending::<()>().await;
            }
        };
        let routes = Watched { routes, called: Arc::clone(&called) };
        let connection = builder.serve_connection(stream_io(stream), routes);
        tokio::pin!(connection);
        tokio::select! {
            biased;
            result = connection.as_mut() => return result,
            () = stop.triggered() => {}
            () = first_call => {
                reached!("rpc: a connection made no call in time");
                return Ok(());
            }
        }
        connection.as_mut().graceful_shutdown();
        runtime.clock.timeout(config.drain, connection).await.unwrap_or(Ok(()))
    }
}
