//! Subscriptions of a topic, or of all partitions of a partitioned one.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use http::StatusCode;

use super::AdminState;
use super::paths::{Query, SubscriptionPath, TopicPath};
use super::refusal::Refusal;
use super::topics::parts_of;
use crate::broker::BrokerError;

/// Names of subscriptions.
pub(crate) async fn list(
    State(state): State<Arc<AdminState>>,
    TopicPath(name): TopicPath,
) -> Result<Json<BTreeSet<String>>, Refusal> {
    let count = state.broker.partitions(&name, false).await?;
    let mut names = BTreeSet::new();
    for part in parts_of(&name, count) {
        let topic = state.broker.topic(&part, false).await?;
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
) -> Result<StatusCode, Refusal> {
    let count = state.broker.partitions(&path.topic, false).await?;
    let mut removed = 0_u32;
    for part in parts_of(&path.topic, count) {
        let topic = state.broker.topic(&part, false).await?;
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
