//! Which broker serves a topic, and which bundle it is in.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::Serialize;

use super::AdminState;
use super::owner::Asked;
use super::paths::TopicPath;
use super::refusal::Refusal;

/// All keys are always there: the C++ client demands the broker ones even when empty.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LookupAnswer {
    broker_url: String,
    broker_url_tls: String,
    http_url: String,
    http_url_tls: String,
    native_url: String,
    broker_url_ssl: String,
}

/// The broker of a topic; if nobody serves it yet, a redirection to whoever should.
pub(crate) async fn topic(
    State(state): State<Arc<AdminState>>,
    TopicPath(name): TopicPath,
    asked: Asked,
) -> Result<Json<LookupAnswer>, Refusal> {
    let owner = asked.locate(&state, &name).await?;
    Ok(Json(LookupAnswer {
        broker_url: owner.pulsar.clone(),
        broker_url_tls: String::new(),
        http_url: owner.http,
        http_url_tls: String::new(),
        native_url: owner.pulsar,
        broker_url_ssl: String::new(),
    }))
}

/// The range of the bundle a topic is in.
pub(crate) async fn bundle(
    State(state): State<Arc<AdminState>>,
    TopicPath(name): TopicPath,
) -> Result<String, Refusal> {
    Ok(state.broker()?.bundle_of(&name).await?.range())
}
