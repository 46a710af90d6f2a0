//! Statistics of topics.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use http::{Method, StatusCode};
use serde::Serialize;
use serde_json::Value;

use super::AdminState;
use super::aggregate::sum;
use super::owner::Asked;
use super::parts::{self, Holder};
use super::paths::{Query, TopicPath};
use super::refusal::Refusal;
use super::stats_json::{InternalStatsJson, PartitionedJson, TopicJson};
use super::topics::parts_of;

/// A message's place.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MessageIdJson {
    ledger_id: i64,
    entry_id: i64,
    partition_index: i64,
}

/// Statistics of one topic.
pub(crate) async fn topic(
    State(state): State<Arc<AdminState>>,
    TopicPath(name): TopicPath,
    asked: Asked,
) -> Result<Json<TopicJson>, Refusal> {
    if state.broker()?.partitions(&name, false).await? > 0 {
        return Err(Refusal::missing(format!("{name} is partitioned: ask for partitioned-stats")));
    }
    asked.at_owner(&state, &name).await?;
    let stats = state.broker()?.topic(&name, false).await?.stats().await;
    Ok(Json(TopicJson::new(&stats, &state.place()?.host)))
}

/// Ledgers and cursors of one topic.
pub(crate) async fn internal(
    State(state): State<Arc<AdminState>>,
    TopicPath(name): TopicPath,
    asked: Asked,
) -> Result<Json<InternalStatsJson>, Refusal> {
    asked.at_owner(&state, &name).await?;
    let stats = state.broker()?.topic(&name, false).await?.stats().await;
    Ok(Json(InternalStatsJson::new(&stats)))
}

/// Sum over the partitions and, when asked for, each.
pub(crate) async fn partitioned(
    State(state): State<Arc<AdminState>>,
    TopicPath(name): TopicPath,
    query: Query,
) -> Result<Json<Value>, Refusal> {
    let count = state.broker()?.partitions(&name, false).await?;
    if count == 0 {
        return Err(Refusal::missing(format!("{name} is not partitioned")));
    }
    // On unless refused, as in Pulsar.
    let is_each_wanted = query.value("perPartition") != Some("false");
    let host = &state.place()?.host;
    let mut all = Vec::new();
    let mut partitions = BTreeMap::new();
    let mut others = Vec::new();
    for part in parts_of(&name, count) {
        if let Holder::There(http, authoritative) = parts::holder(&state, &part).await? {
            let owner = (http.as_str(), authoritative);
            let answer = parts::ask(&state, Method::GET, owner, &part, "/stats").await?;
            others.push((part.to_string(), json(&answer)?));
            continue;
        }
        let stats = state.broker()?.topic(&part, false).await?.stats().await;
        if is_each_wanted {
            partitions.insert(part.to_string(), TopicJson::new(&stats, host));
        }
        all.push(stats);
    }
    let own = PartitionedJson::new(TopicJson::new(&sum(all), host), count, partitions);
    let mut answer = serde_json::to_value(own).map_err(|error| unreadable(&error))?;
    for (part, stats) in others {
        parts::add(&mut answer, stats.clone());
        if is_each_wanted && let Some(partitions) = answer.get_mut("partitions") {
            partitions[part] = stats;
        }
    }
    Ok(Json(answer))
}

fn json(answer: &[u8]) -> Result<Value, Refusal> {
    serde_json::from_slice(answer).map_err(|error| unreadable(&error))
}

fn unreadable(error: &serde_json::Error) -> Refusal {
    Refusal::new(StatusCode::BAD_GATEWAY, format!("statistics of a partition: {error}"))
}

/// The last committed entry; −1 when there is none.
pub(crate) async fn last_message(
    State(state): State<Arc<AdminState>>,
    TopicPath(name): TopicPath,
    asked: Asked,
) -> Result<Json<MessageIdJson>, Refusal> {
    asked.at_owner(&state, &name).await?;
    let stats = state.broker()?.topic(&name, false).await?.stats().await;
    let (ledger_id, entry_id) = match stats.last_position {
        Some(position) => (i64::try_from(position.ledger.0).unwrap_or(i64::MAX), position.entry.0),
        None => (-1, -1),
    };
    let partition_index = name.partition().map_or(-1, i64::from);
    Ok(Json(MessageIdJson { ledger_id, entry_id, partition_index }))
}
