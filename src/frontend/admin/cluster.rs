//! The cluster and its brokers: one of each.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::Serialize;

use super::AdminState;
use super::paths::ClusterPath;
use super::refusal::Refusal;

/// Where a cluster is reached.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ClusterAnswer {
    service_url: String,
    broker_service_url: String,
}

/// The broker that leads.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LeaderAnswer {
    broker_id: String,
    service_url: String,
}

/// Names of clusters.
pub(crate) async fn clusters(State(state): State<Arc<AdminState>>) -> Json<Vec<String>> {
    Json(vec![state.config.cluster.clone()])
}

/// One cluster.
pub(crate) async fn cluster(
    State(state): State<Arc<AdminState>>,
    ClusterPath(name): ClusterPath,
) -> Result<Json<ClusterAnswer>, Refusal> {
    known_cluster(&state, &name)?;
    Ok(Json(ClusterAnswer {
        service_url: state.web_url.clone(),
        broker_service_url: state.config.pulsar_url.clone(),
    }))
}

/// Brokers by `host:port` of their HTTP.
pub(crate) async fn brokers(State(state): State<Arc<AdminState>>) -> Json<Vec<String>> {
    Json(vec![broker_id(&state)])
}

/// The same for one cluster.
pub(crate) async fn brokers_of(
    State(state): State<Arc<AdminState>>,
    ClusterPath(name): ClusterPath,
) -> Result<Json<Vec<String>>, Refusal> {
    known_cluster(&state, &name)?;
    Ok(Json(vec![broker_id(&state)]))
}

/// The leader among the brokers.
pub(crate) async fn leader(State(state): State<Arc<AdminState>>) -> Json<LeaderAnswer> {
    Json(LeaderAnswer { broker_id: broker_id(&state), service_url: state.web_url.clone() })
}

/// The version of this build.
pub(crate) async fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

fn broker_id(state: &AdminState) -> String {
    state.web_url.trim_start_matches("http://").to_owned()
}

fn known_cluster(state: &AdminState, name: &str) -> Result<(), Refusal> {
    if name == state.config.cluster {
        Ok(())
    } else {
        Err(Refusal::missing("Cluster does not exist"))
    }
}
