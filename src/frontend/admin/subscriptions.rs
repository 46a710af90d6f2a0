//! Subscriptions of a topic, or of all partitions of a partitioned one.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use http::{Method, StatusCode};

use super::AdminState;
use super::owner::Asked;
use super::parts::{self, Holder};
use super::paths::{Query, SubscriptionPath, TopicPath};
use super::refusal::Refusal;
use super::topics::parts_of;
use crate::broker::BrokerError;

/// Names of subscriptions.
pub(crate) async fn list(
    State(state): State<Arc<AdminState>>,
    TopicPath(name): TopicPath,
    asked: Asked,
) -> Result<Json<BTreeSet<String>>, Refusal> {
    let count = state.broker()?.partitions(&name, false).await?;
    if count == 0 {
        asked.at_owner(&state, &name).await?;
    }
    let mut names = BTreeSet::new();
    for part in parts_of(&name, count) {
        if let Holder::There(http, authoritative) = parts::holder(&state, &part).await? {
            let owner = (http.as_str(), authoritative);
            let answer = parts::ask(&state, Method::GET, owner, &part, "/subscriptions").await?;
            let unreadable = |error: serde_json::Error| {
                Refusal::new(StatusCode::BAD_GATEWAY, format!("subscriptions: {error}"))
            };
            let listed: Vec<String> = serde_json::from_slice(&answer).map_err(unreadable)?;
            names.extend(listed);
            continue;
        }
        let topic = state.broker()?.topic(&part, false).await?;
        names.extend(topic.subscriptions().await?);
    }
    Ok(Json(names))
}

/// Deletes a subscription. On a partitioned topic a partition without it counts as done, so that a
/// deletion that failed half way can be repeated.
pub(crate) async fn remove(
    State(state): State<Arc<AdminState>>,
    path: SubscriptionPath,
    query: Query,
    asked: Asked,
) -> Result<StatusCode, Refusal> {
    let count = state.broker()?.partitions(&path.topic, false).await?;
    if count == 0 {
        asked.at_owner(&state, &path.topic).await?;
    }
    let mut removed = 0_u32;
    for part in parts_of(&path.topic, count) {
        if let Holder::There(http, authoritative) = parts::holder(&state, &part).await? {
            let owner = (http.as_str(), authoritative);
            let (name, force) = (parts::encoded(&path.subscription), query.flag("force"));
            let rest = format!("/subscription/{name}?force={force}");
            match parts::ask(&state, Method::DELETE, owner, &part, &rest).await {
                Ok(_) => removed += 1,
                Err(refusal) if refusal.is_missing() => {}
                Err(refusal) => return Err(refusal),
            }
            continue;
        }
        let topic = state.broker()?.topic(&part, false).await?;
        match topic.delete_subscription(&path.subscription, query.flag("force")).await {
            Ok(()) => removed += 1,
            Err(BrokerError::SubscriptionNotFound(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    match removed {
        0 => Err(Refusal::missing("Subscription not found")),
        _ => Ok(StatusCode::NO_CONTENT),
    }
}
