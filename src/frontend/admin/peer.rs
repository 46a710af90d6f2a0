//! Asking another broker's HTTP port, for requests that concern the topics of several brokers.

use std::time::Duration;

use bytes::Bytes;
use http::header::{HOST, LOCATION};
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Empty, Limited};
use hyper_util::rt::TokioIo;

use super::refusal::Refusal;
use crate::runtime::Runtime;

/// Longest wait for another broker, the connection included.
const PEER_LIMIT: Duration = Duration::from_secs(40);
/// Bytes of its answer; a longer one is a failure.
const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Sends a request without a body to `http` (`http://host:port`) and answers the body of its answer. A
/// refusal is passed on as it is.
pub(crate) async fn ask(
    runtime: &Runtime,
    method: Method,
    http: &str,
    path: &str,
) -> Result<Bytes, Refusal> {
    let asked = runtime.clock.timeout(PEER_LIMIT, exchange(runtime, method, http, path)).await;
    let failed = |reason: String| {
        Refusal::new(StatusCode::BAD_GATEWAY, format!("the broker at {http}: {reason}"))
    };
    let (status, body) = asked.map_err(|late| failed(late.to_string()))?.map_err(failed)?;
    if status.is_success() {
        return Ok(body);
    }
    Err(Refusal::new(status, String::from_utf8_lossy(&body).into_owned()))
}

async fn exchange(
    runtime: &Runtime,
    method: Method,
    http: &str,
    path: &str,
) -> Result<(StatusCode, Bytes), String> {
    let answer = exchange_for(runtime, method, http, path).await?;
    Ok((answer.status, answer.body))
}

/// What an HTTP server answered.
pub(crate) struct HttpAnswer {
    /// Good or not.
    pub(crate) status: StatusCode,
    /// Where to ask instead.
    pub(crate) location: Option<String>,
    /// The body.
    pub(crate) body: Bytes,
}

/// Sends a request without a body to `http` (`http://host:port`). May hang: the deadline is the caller's.
pub(crate) async fn exchange_for(
    runtime: &Runtime,
    method: Method,
    http: &str,
    path: &str,
) -> Result<HttpAnswer, String> {
    fn text(error: impl std::fmt::Display) -> String {
        error.to_string()
    }
    let address = http.trim_start_matches("http://");
    let stream = runtime.network.connect(address).await.map_err(text)?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(text)?;
    let request = Request::builder().method(method).uri(path).header(HOST, address);
    let request = request.body(Empty::<Bytes>::new()).map_err(text)?;
    let asking = async {
        let response = sender.send_request(request).await.map_err(text)?;
        let status = response.status();
        let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
        let location = location.map(str::to_owned);
        let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
        Ok(HttpAnswer { status, location, body: body.map_err(text)?.to_bytes() })
    };
    tokio::pin!(asking);
    tokio::select! {
        biased;
        answer = &mut asking => answer,
        ended = connection => match ended {
            // It may have ended because everything was said.
            Ok(()) => asking.await,
            Err(error) => Err(text(error)),
        },
    }
}
