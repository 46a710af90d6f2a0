//! The cluster and its brokers.

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
    let place = state.place()?;
    Ok(Json(ClusterAnswer {
        service_url: place.http.clone(),
        broker_service_url: place.pulsar.clone(),
    }))
}

/// Brokers by `host:port` of their HTTP.
pub(crate) async fn brokers(
    State(state): State<Arc<AdminState>>,
) -> Result<Json<Vec<String>>, Refusal> {
    let brokers = state.broker()?.brokers().await?;
    Ok(Json(brokers.iter().map(|broker| broker_id(&broker.http)).collect()))
}

/// The same for one cluster.
pub(crate) async fn brokers_of(
    State(state): State<Arc<AdminState>>,
    ClusterPath(name): ClusterPath,
) -> Result<Json<Vec<String>>, Refusal> {
    known_cluster(&state, &name)?;
    brokers(State(state)).await
}

/// The leader among the brokers. Nothing here needs one; tools want to see one, so the oldest is named.
pub(crate) async fn leader(
    State(state): State<Arc<AdminState>>,
) -> Result<Json<LeaderAnswer>, Refusal> {
    let brokers = state.broker()?.brokers().await?;
    let oldest = brokers.first().map_or(&state.place()?.http, |broker| &broker.http);
    Ok(Json(LeaderAnswer { broker_id: broker_id(oldest), service_url: oldest.clone() }))
}

/// The version of this build.
pub(crate) async fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

fn broker_id(http: &str) -> String {
    http.trim_start_matches("http://").to_owned()
}

fn known_cluster(state: &AdminState, name: &str) -> Result<(), Refusal> {
    if name == state.config.cluster {
        Ok(())
    } else {
        Err(Refusal::missing("Cluster does not exist"))
    }
}
