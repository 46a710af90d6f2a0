//! Partitioned topics: how many partitions, creating, deleting.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use bytes::Bytes;
use http::{Method, StatusCode};
use serde::Serialize;
use serde_json::Value;

use super::AdminState;
use super::parts::{self, Holder};
use super::paths::{Query, TopicPath};
use super::refusal::Refusal;
use super::topics::{body_of, parts_of};
use crate::domain::TopicName;

/// Most partitions a topic may be created with: each is a topic with a ledger of its own.
const PARTITIONS_MAX: u32 = 10_000;

/// How many partitions a topic has.
#[derive(Serialize)]
pub(crate) struct PartitionsAnswer {
    partitions: u32,
}

/// Number of partitions, 0 for a topic that is not partitioned. With `checkAllowAutoCreation` a missing
/// topic counts as one that would be created plain.
pub(crate) async fn count(
    State(state): State<Arc<AdminState>>,
    TopicPath(name): TopicPath,
    query: Query,
) -> Result<Json<PartitionsAnswer>, Refusal> {
    let partitions =
        state.broker()?.partitions(&name, query.flag("checkAllowAutoCreation")).await?;
    Ok(Json(PartitionsAnswer { partitions }))
}

/// Creates a partitioned topic with its partitions.
pub(crate) async fn create(
    State(state): State<Arc<AdminState>>,
    TopicPath(name): TopicPath,
    body: Result<Bytes, BytesRejection>,
) -> Result<StatusCode, Refusal> {
    if name.partition().is_some() {
        return Err(Refusal::invalid("a partition cannot have partitions"));
    }
    let count = parse_count(&body_of(body)?)?;
    state.broker()?.create_partitioned(&name, count).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// More partitions for a topic: not yet.
pub(crate) async fn grow(TopicPath(name): TopicPath) -> Refusal {
    Refusal::not_offered(format!("the partitions of {name} cannot be changed by this version"))
}

/// Deletes a partitioned topic with its partitions.
pub(crate) async fn remove(
    State(state): State<Arc<AdminState>>,
    TopicPath(name): TopicPath,
    query: Query,
) -> Result<StatusCode, Refusal> {
    let count = state.broker()?.partitions(&name, false).await?;
    if count == 0 {
        return Err(Refusal::missing(format!("{name} is not partitioned")));
    }
    let force = query.flag("force");
    let mut others = Vec::new();
    for part in parts_of(&name, count) {
        if let Holder::There(http, authoritative) = parts::holder(&state, &part).await? {
            others.push((part, http, authoritative));
        }
    }
    // All are asked before the first is deleted.
    for (part, http, authoritative) in others.iter().filter(|_| !force) {
        let asking = parts::ask(&state, Method::GET, (http, *authoritative), part, "/stats");
        match asking.await {
            Ok(stats) if is_unused(&stats) => {}
            Ok(_) => return Err(Refusal::invalid(format!("topic {part} is in use"))),
            Err(refusal) if refusal.is_missing() => {}
            Err(refusal) => return Err(refusal),
        }
    }
    let away: BTreeSet<TopicName> = others.iter().map(|(part, ..)| part.clone()).collect();
    state.broker()?.delete_partitioned(&name, count, &away, force).await?;
    for (part, http, authoritative) in &others {
        let rest = format!("?force={force}");
        match parts::ask(&state, Method::DELETE, (http, *authoritative), part, &rest).await {
            Ok(_) => {}
            Err(refusal) if refusal.is_missing() => {}
            Err(refusal) => return Err(refusal),
        }
    }
    Ok(StatusCode::NO_CONTENT)
}

/// Whether the statistics of a topic show nobody who would miss it.
fn is_unused(stats: &[u8]) -> bool {
    let Ok(stats) = serde_json::from_slice::<Value>(stats) else { return false };
    let is_empty = |field: &str| match stats.get(field) {
        Some(Value::Array(list)) => list.is_empty(),
        Some(Value::Object(map)) => map.is_empty(),
        _ => false,
    };
    is_empty("publishers") && is_empty("subscriptions")
}

/// Clients send `2`, `"2"` or `{"partitions": 2, "properties": {…}}`.
fn parse_count(body: &[u8]) -> Result<u32, Refusal> {
    let value: Value = serde_json::from_slice(body)
        .map_err(|error| Refusal::new(StatusCode::BAD_REQUEST, error.to_string()))?;
    let count = match &value {
        Value::Object(fields) => fields.get("partitions"),
        other => Some(other),
    };
    let count = match count {
        Some(Value::Number(number)) => number.as_u64(),
        Some(Value::String(text)) => text.trim().parse().ok(),
        _ => None,
    };
    match count {
        Some(count @ 1..) if count <= u64::from(PARTITIONS_MAX) => {
            Ok(u32::try_from(count).unwrap_or(PARTITIONS_MAX))
        }
        _ => Err(Refusal::invalid(format!("Number of partitions is from 1 to {PARTITIONS_MAX}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_a_count_is_read() {
        for body in ["2", "\"2\"", r#"{"partitions": 2, "properties": {}}"#, " 2 "] {
            assert_eq!(parse_count(body.as_bytes()).unwrap(), 2, "{body}");
        }
        for body in ["", "0", "-1", "\"x\"", "[2]", "{}", "1e9", "10001", "null", "2 2", "\u{0}"] {
            assert!(parse_count(body.as_bytes()).is_err(), "{body}");
        }
    }
}
