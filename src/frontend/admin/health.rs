//! Is the process alive, does the node serve.

use std::sync::Arc;

use axum::extract::State;
use http::StatusCode;

use super::AdminState;
use super::refusal::Refusal;

/// The process answers.
pub(crate) async fn live() -> &'static str {
    "ok"
}

/// The node serves, or why not.
pub(crate) async fn ready(State(state): State<Arc<AdminState>>) -> Result<&'static str, Refusal> {
    match state.health.ready() {
        Ok(()) => Ok("ok"),
        Err(reason) => Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, reason)),
    }
}

/// Pulsar's path for the same question; it says 500 when the broker does not serve.
pub(crate) async fn broker(State(state): State<Arc<AdminState>>) -> Result<&'static str, Refusal> {
    match state.health.ready() {
        Ok(()) => Ok("ok"),
        Err(reason) => Err(Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, reason)),
    }
}

/// What load balancers poll on Pulsar.
pub(crate) async fn status_page(
    State(state): State<Arc<AdminState>>,
) -> Result<&'static str, Refusal> {
    match state.health.ready() {
        Ok(()) => Ok("OK"),
        Err(reason) => Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, reason)),
    }
}
