//! A consumer that goes back: it reads on, acknowledges cumulatively or not at all, and seeks to where it
//! was before or to the first message kept. What a session of it gets has no gaps.

use std::time::Duration;

use super::WorkloadContext;
use super::session::{SessionError, WorkloadClient};
use crate::broker::SubscriptionType;
use crate::domain::Position;
use crate::simulator::history::{Rewind, RewindRecord};

/// The subscription.
pub const REWINDER: &str = "rewinder";

/// Pause before a new session.
const RECONNECT_PAUSE: Duration = Duration::from_millis(300);
/// A session that gets nothing for this long seeks, or ends.
const IDLE_LIMIT: Duration = Duration::from_secs(3);

/// Reads and seeks until told to stop.
pub async fn rewind(context: WorkloadContext, topic: String, number: u64) {
    let random = context.runtime.random.fork_numbered("rewind", number);
    let mut sought = None;
    while !context.stop.is_triggered() {
        let ended = rewind_session(&context, &topic, &random, sought.take()).await;
        match ended {
            Ok(rewound) => sought = rewound,
            Err(error) => context.ended(REWINDER, Err(error)),
        }
        context.runtime.clock.sleep(RECONNECT_PAUSE).await;
    }
}

/// The seek that ended it, if one did and was answered.
async fn rewind_session(
    context: &WorkloadContext,
    topic: &str,
    random: &crate::runtime::Random,
    sought: Option<Rewind>,
) -> Result<Option<Rewind>, SessionError> {
    let client = WorkloadClient::connect(context).await?;
    let mut consumer = client.consumer(topic, REWINDER, SubscriptionType::Exclusive).await?;
    let session = {
        let mut history = context.history.lock();
        let session = history.new_session(context.stamp());
        history.rewinds.push(RewindRecord { topic: topic.to_owned(), session, sought });
        session
    };
    let deliveries_max = 1 + random.below(200);
    let mut seen: Vec<Position> = Vec::new();
    while !context.stop.is_triggered() && (seen.len() as u64) < deliveries_max {
        let Some(received) = consumer.receive(IDLE_LIMIT).await? else { break };
        seen.push(received.place.position);
        context.delivered(topic, REWINDER, session, &received);
        if random.chance(0.1) {
            consumer.acknowledge_cumulative(&received).await?;
        }
    }
    if random.chance(0.3) {
        consumer.close().await;
        return Ok(None);
    }
    let target = match seen.get(random.below(seen.len().max(1) as u64) as usize) {
        Some(position) if random.chance(0.6) => Rewind::To(*position),
        _ => Rewind::Earliest,
    };
    consumer.seek(target).await?;
    Ok(Some(target))
}
