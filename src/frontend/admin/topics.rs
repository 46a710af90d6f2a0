//! Listing, creating, deleting and unloading topics.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use bytes::Bytes;
use http::{Method, StatusCode};

use super::AdminState;
use super::owner::Asked;
use super::parts;
use super::paths::{NamespacePath, Query, TopicPath};
use super::refusal::Refusal;
use crate::domain::{Domain, NamespaceName, TopicName};

/// What the path says instead of a topic to list partitioned topics.
const PARTITIONED: &str = "partitioned";

/// Topics of a namespace, partitions by their own names.
pub(crate) async fn list(
    State(state): State<Arc<AdminState>>,
    axum::Extension(domain): axum::Extension<Domain>,
    NamespacePath(name): NamespacePath,
) -> Result<Json<Vec<String>>, Refusal> {
    let topics = state.broker()?.topics(&name).await?;
    let of_domain = topics.iter().filter(|topic| topic.domain() == domain);
    Ok(Json(of_domain.map(ToString::to_string).collect()))
}

/// Partitioned topics of a namespace; any other last part is not a thing to GET.
pub(crate) async fn list_partitioned(
    State(state): State<Arc<AdminState>>,
    TopicPath(name): TopicPath,
) -> Result<Json<Vec<String>>, Refusal> {
    if name.local() != PARTITIONED {
        return Err(Refusal::not_offered("a topic itself cannot be read; ask for its stats"));
    }
    let names = partitioned_of(&state, name.domain(), name.namespace()).await?;
    Ok(Json(names.iter().map(ToString::to_string).collect()))
}

async fn partitioned_of(
    state: &AdminState,
    domain: Domain,
    namespace: &NamespaceName,
) -> Result<BTreeSet<TopicName>, Refusal> {
    let topics = state.broker()?.topics(namespace).await?;
    let candidates: BTreeSet<TopicName> = topics
        .iter()
        .filter(|topic| topic.domain() == domain && topic.partition().is_some())
        .map(TopicName::partitioned)
        .collect();
    let mut found = BTreeSet::new();
    for candidate in candidates {
        // A topic may merely be called like a partition.
        if state.broker()?.partitions(&candidate, true).await? > 0 {
            found.insert(candidate);
        }
    }
    Ok(found)
}

/// Creates a topic that is not partitioned.
pub(crate) async fn create(
    State(state): State<Arc<AdminState>>,
    TopicPath(name): TopicPath,
    body: Result<Bytes, BytesRejection>,
) -> Result<StatusCode, Refusal> {
    check_properties(&body_of(body)?)?;
    state.broker()?.create_topic(&name).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The body, or why it was not taken.
pub(super) fn body_of(body: Result<Bytes, BytesRejection>) -> Result<Bytes, Refusal> {
    body.map_err(|rejection| Refusal::new(rejection.status(), rejection.body_text()))
}

/// A topic's properties are an object or nothing; they are not kept yet, so only an empty one is taken.
fn check_properties(body: &[u8]) -> Result<(), Refusal> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Ok(());
    }
    match serde_json::from_slice::<serde_json::Value>(body) {
        Ok(serde_json::Value::Null) => Ok(()),
        Ok(serde_json::Value::Object(properties)) if properties.is_empty() => Ok(()),
        Ok(serde_json::Value::Object(_)) => {
            Err(Refusal::invalid("properties of topics are not kept by this version"))
        }
        Ok(_) => Err(Refusal::invalid("the body is an object of properties, null or nothing")),
        Err(error) => Err(Refusal::new(StatusCode::BAD_REQUEST, error.to_string())),
    }
}

/// Deletes a topic that is not partitioned.
pub(crate) async fn remove(
    State(state): State<Arc<AdminState>>,
    TopicPath(name): TopicPath,
    query: Query,
    asked: Asked,
) -> Result<StatusCode, Refusal> {
    if state.broker()?.partitions(&name, false).await? > 0 {
        return Err(Refusal::invalid(format!("{name} is partitioned: delete its partitions")));
    }
    asked.at_owner(&state, &name).await?;
    state.broker()?.delete_topic(&name, query.flag("force")).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Closes a topic, or every partition of a partitioned one; clients look up again. The broker that owns its
/// bundle keeps it.
pub(crate) async fn unload(
    State(state): State<Arc<AdminState>>,
    TopicPath(name): TopicPath,
    asked: Asked,
) -> Result<StatusCode, Refusal> {
    let count = state.broker()?.partitions(&name, false).await?;
    if count == 0 {
        asked.at_owner(&state, &name).await?;
    }
    let mut here = BTreeSet::new();
    for part in parts_of(&name, count) {
        match state.broker()?.other_owner(&state.broker()?.bundle_of(&part).await?).await? {
            None => drop(here.insert(part)),
            Some(owner) => {
                parts::ask(&state, Method::PUT, (&owner.http, false), &part, "/unload").await?;
            }
        }
    }
    for topic in state.broker()?.loaded_topics() {
        if here.contains(topic.name()) {
            topic.unload().await;
        }
    }
    Ok(StatusCode::NO_CONTENT)
}

/// The topics behind a name: its partitions, or itself when it has none.
pub(super) fn parts_of(name: &TopicName, partitions: u32) -> Vec<TopicName> {
    match partitions {
        0 => vec![name.clone()],
        count => (0..count).map(|index| name.with_partition(index)).collect(),
    }
}
