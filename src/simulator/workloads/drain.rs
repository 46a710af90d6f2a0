//! Before the storm: every topic with its subscriptions. After it: the whole log, read once more.

use std::time::Duration;

use super::session::{SessionError, WorkloadClient};
use super::{EXCLUSIVE, KEEPER, REWINDER, SHARED, WorkloadContext};
use crate::broker::SubscriptionType;
use crate::simulator::history::{MessageNumber, Place, decode_body};

/// A reader that gets nothing for this long before the end gives up and tries again.
const READ_PAUSE_MAX: Duration = Duration::from_secs(10);

/// Creates the topic and its subscriptions, all beginning at the first message.
pub async fn setup_topic(context: &WorkloadContext, topic: &str) -> Result<(), SessionError> {
    let client = WorkloadClient::connect(context).await?;
    let keeper = (!context.plan.trims).then_some((KEEPER, SubscriptionType::Shared));
    let others = [
        (EXCLUSIVE, SubscriptionType::Exclusive),
        (SHARED, SubscriptionType::Shared),
        (REWINDER, SubscriptionType::Exclusive),
    ];
    for (subscription, subscription_type) in keeper.into_iter().chain(others) {
        client.consumer(topic, subscription, subscription_type).await?.close().await;
    }
    Ok(())
}

/// Reads the whole log with a reader, up to the last message there is. Where consumed ledgers are deleted,
/// that is what is kept.
pub async fn read_whole_log(
    context: &WorkloadContext,
    topic: &str,
) -> Result<Vec<(Place, Option<MessageNumber>)>, SessionError> {
    let client = WorkloadClient::connect(context).await?;
    let mut reader = client.reader(topic).await?;
    let mut log = Vec::new();
    let Some(last) = reader.last_entry().await? else { return Ok(log) };
    loop {
        let Some(received) = reader.receive(READ_PAUSE_MAX).await? else {
            return Err(SessionError::new("the reader waits before the log's end"));
        };
        log.push((received.place, decode_body(&received.message.payload)));
        if received.place.position >= last && received.is_last_of_entry() {
            return Ok(log);
        }
    }
}
