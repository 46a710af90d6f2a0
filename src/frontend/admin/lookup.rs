//! Which broker serves a topic: this one.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::Serialize;

use super::AdminState;
use super::paths::TopicPath;

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

/// The broker of a topic.
pub(crate) async fn topic(
    State(state): State<Arc<AdminState>>,
    TopicPath(_): TopicPath,
) -> Json<LookupAnswer> {
    Json(LookupAnswer {
        broker_url: state.config.pulsar_url.clone(),
        broker_url_tls: String::new(),
        http_url: state.web_url.clone(),
        http_url_tls: String::new(),
        native_url: state.config.pulsar_url.clone(),
        broker_url_ssl: String::new(),
    })
}

/// The bundle a topic is in: the whole hash range.
pub(crate) async fn bundle(TopicPath(_): TopicPath) -> &'static str {
    "0x00000000_0xffffffff"
}
