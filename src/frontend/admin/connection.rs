//! One HTTP/1.1 connection over a runtime stream. Deadlines are ours, by the node's own clock: a peer that
//! sends slowly, sends nothing or does not read is cut off.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::response::{IntoResponse, Response};
use http::{StatusCode, Uri};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tower::ServiceExt;

use super::AdminConfig;
use super::refusal::Refusal;
use crate::domain::Instant;
use crate::reached;
use crate::runtime::{Accepted, Clock, ShutdownSignal};

/// Headers of one request; more are answered 431.
const HEADERS_MAX: usize = 100;

/// How a request reached us; goes with each request.
#[derive(Clone)]
pub(crate) struct Reached {
    /// Our own address as the client sees it.
    pub(crate) local: Arc<str>,
    /// All of the path: a router below another one sees only the rest.
    pub(crate) uri: Uri,
}

/// What one connection may use.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    header_bytes: usize,
    idle: Duration,
    request: Duration,
}

impl Limits {
    /// The part of the configuration that concerns a connection.
    pub(crate) const fn of(config: &AdminConfig) -> Self {
        Self {
            header_bytes: config.header_bytes_max,
            idle: config.idle_limit,
            request: config.request_limit,
        }
    }
}

/// When the connection last did something useful: began, or finished a request.
struct Activity {
    at: AtomicU64,
    requests_running: AtomicUsize,
}

impl Activity {
    fn touch(&self, now: Instant) {
        self.at.store(now.0, Ordering::Relaxed);
    }

    fn last(&self) -> Instant {
        Instant(self.at.load(Ordering::Relaxed))
    }
}

/// Serves requests until the peer leaves, breaks a limit, or the front end stops.
pub(crate) async fn serve(
    clock: Clock,
    accepted: Accepted,
    router: Router,
    limits: Limits,
    stop: ShutdownSignal,
) {
    let activity = Arc::new(Activity {
        at: AtomicU64::new(clock.now().0),
        requests_running: AtomicUsize::new(0),
    });
    let service = {
        let (clock, activity) = (clock.clone(), Arc::clone(&activity));
        let local: Arc<str> = accepted.local.into();
        service_fn(move |mut request: http::Request<Incoming>| {
            let reached = Reached { local: Arc::clone(&local), uri: request.uri().clone() };
            request.extensions_mut().insert(reached);
            let (clock, activity, router) = (clock.clone(), Arc::clone(&activity), router.clone());
            async move {
                activity.requests_running.fetch_add(1, Ordering::Relaxed);
                let response = answer(&clock, router, request, limits.request).await;
                activity.touch(clock.now());
                activity.requests_running.fetch_sub(1, Ordering::Relaxed);
                Ok::<_, Infallible>(response)
            }
        })
    };
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder
        .auto_date_header(false) // would read the operating system's clock
        .header_read_timeout(None) // the watch below is on our clock
        .max_headers(HEADERS_MAX)
        .max_buf_size(limits.header_bytes);
    let connection = builder.serve_connection(TokioIo::new(accepted.stream), service);
    tokio::select! {
        biased;
        () = stop.triggered() => {}
        () = idle_too_long(&clock, &activity, limits.idle) => {
            reached!("admin: idle connection cut off");
        }
        ended = connection => {
            if let Err(error) = ended {
                tracing::debug!(%error, "an HTTP connection ended badly");
            }
        }
    }
}

async fn answer(
    clock: &Clock,
    router: Router,
    request: http::Request<Incoming>,
    limit: Duration,
) -> Response {
    match clock.timeout(limit, router.oneshot(request)).await {
        Ok(Ok(response)) => response,
        Ok(Err(impossible)) => match impossible {},
        Err(elapsed) => {
            Refusal::new(StatusCode::SERVICE_UNAVAILABLE, elapsed.to_string()).into_response()
        }
    }
}

/// Completes once no request has run for `limit`.
async fn idle_too_long(clock: &Clock, activity: &Activity, limit: Duration) {
    loop {
        let last = activity.last();
        clock.sleep_until(last + limit).await;
        if activity.requests_running.load(Ordering::Relaxed) > 0 {
            // It has a deadline of its own; look again after it.
            clock.sleep(limit).await;
        } else if activity.last() == last {
            return;
        }
    }
}
