//! A consumer that writes down what it gets, acknowledges most of it with receipts (a window of them under
//! way, as a real client has), sometimes asks for redelivery, sometimes leaves and comes back.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;

use super::WorkloadContext;
use super::session::{SessionError, WorkloadClient};
use crate::broker::SubscriptionType;
use crate::simulator::history::AckRecord;

/// Pause before a new session.
const RECONNECT_PAUSE: Duration = Duration::from_millis(300);
/// A session that gets nothing for this long leaves and comes back, for what it left unacknowledged.
const IDLE_LIMIT: Duration = Duration::from_secs(10);
/// The last session takes this long a silence for the end.
const REST_PAUSE_MAX: Duration = Duration::from_secs(3);

/// Which subscription a consumer joins.
#[derive(Clone, Debug)]
pub struct ConsumerRole {
    /// The topic.
    pub topic: String,
    /// The subscription.
    pub subscription: &'static str,
    /// Its type.
    pub subscription_type: SubscriptionType,
    /// Consumers of a run are numbered, for their randomness.
    pub number: u64,
}

/// Consumes until told to stop.
pub async fn consume(context: WorkloadContext, role: ConsumerRole) {
    let random = context.runtime.random.fork_numbered("consume", role.number);
    while !context.stop.is_triggered() {
        let session = consume_session(&context, &role, &random).await;
        context.ended(role.subscription, session);
        if context.stop.is_triggered() {
            return;
        }
        context.runtime.clock.sleep(RECONNECT_PAUSE).await;
    }
}

async fn consume_session(
    context: &WorkloadContext,
    role: &ConsumerRole,
    random: &crate::runtime::Random,
) -> Result<(), SessionError> {
    let client = WorkloadClient::connect(context).await?;
    let session = context.history.lock().new_session(context.stamp());
    let mut consumer =
        client.consumer(&role.topic, role.subscription, role.subscription_type).await?;
    // Some sessions leave early, so that what they hold must go to others.
    let deliveries_max = if random.chance(0.3) { 1 + random.below(50) } else { u64::MAX };
    let window = context.plan.ack_window;
    let receipts = Arc::new(Semaphore::new(window as usize));
    let mut delivered = 0;
    while !context.stop.is_triggered() && delivered < deliveries_max {
        let Some(received) = consumer.receive(IDLE_LIMIT).await? else {
            break;
        };
        delivered += 1;
        context.delivered(&role.topic, role.subscription, session, &received);
        let is_exclusive = role.subscription_type == SubscriptionType::Exclusive;
        match random.below(100) {
            // Left unacknowledged for now; a later session gets it again.
            0..4 => {}
            4..7 if !is_exclusive => consumer.redeliver(&received),
            4 if is_exclusive => consumer.redeliver_all(),
            7..12 if is_exclusive => {
                context.history.lock().asked_cumulative_ack(&role.topic, received.place);
                consumer.acknowledge_cumulative(&received).await?;
            }
            _ => {
                let Ok(room) = Arc::clone(&receipts).acquire_owned().await else { break };
                let receipt = consumer.acknowledge(&received);
                let ack = context.history.lock().asked_ack(AckRecord {
                    topic: role.topic.clone(),
                    subscription: role.subscription.to_owned(),
                    position: received.place,
                    receipt_at: None,
                });
                let (context, receipts) = (context.clone(), Arc::clone(&receipts));
                context.runtime.tasks.clone().spawn("await receipt", async move {
                    match receipt.await {
                        Ok(()) => {
                            let at = context.stamp();
                            context.history.lock().told_ack(ack, at);
                        }
                        // Ends the session.
                        Err(_) => receipts.close(),
                    }
                    drop(room);
                });
            }
        }
    }
    // An error: some receipt never comes, and the session is over anyway.
    let _ = receipts.acquire_many(window).await;
    consumer.close().await;
    Ok(())
}

/// Looks, after everything else, at what a subscription still wants to be acknowledged: all of it comes to a
/// last session, which acknowledges nothing.
pub async fn look_at_the_rest(
    context: &WorkloadContext,
    role: &ConsumerRole,
) -> Result<(), SessionError> {
    let client = WorkloadClient::connect(context).await?;
    let session = context.history.lock().new_session(context.stamp());
    let mut consumer =
        client.consumer(&role.topic, role.subscription, role.subscription_type).await?;
    while let Some(received) = consumer.receive(REST_PAUSE_MAX).await? {
        context.delivered(&role.topic, role.subscription, session, &received);
    }
    let key = (role.topic.clone(), role.subscription.to_owned());
    context.history.lock().last_sessions.insert(key, session);
    consumer.close().await;
    Ok(())
}
