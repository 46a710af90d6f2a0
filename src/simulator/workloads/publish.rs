//! A producer that numbers every message, sends each once, keeps a window in flight, and starts a new
//! session whenever one breaks. What it was not told stays unknown: it never re-sends.

use std::collections::VecDeque;
use std::time::Duration;

use super::WorkloadContext;
use super::session::{Receipt, SessionError, Told, WorkloadClient};
use crate::simulator::history::{MessageNumber, PublishFate, encode_body};

/// Pause before a new session.
const RECONNECT_PAUSE: Duration = Duration::from_millis(300);

/// Publishes to `topic` until told to stop, or as much as the plan allows.
pub async fn publish(context: WorkloadContext, topic: String, number: u64) {
    let random = context.runtime.random.fork_numbered("publish", number);
    let mut steps = Taken { client: number, steps: 0 };
    while !context.stop.is_triggered() && steps.are_left(&context) {
        let session = publish_session(&context, &topic, &random, &mut steps).await;
        context.ended("producer", session);
        if context.stop.is_triggered() {
            return;
        }
        context.runtime.clock.sleep(RECONNECT_PAUSE).await;
    }
}

/// How far a producer has come, over all its sessions.
struct Taken {
    client: u64,
    steps: u64,
}

impl Taken {
    fn are_left(&self, context: &WorkloadContext) -> bool {
        self.steps < context.plan.messages_max
    }

    /// Takes a step; true if its message is to be sent.
    fn take(&mut self, context: &WorkloadContext) -> bool {
        let step = self.steps;
        self.steps += 1;
        context.plan.sends.as_ref().is_none_or(|sends| sends.has(self.client, step))
    }
}

async fn publish_session(
    context: &WorkloadContext,
    topic: &str,
    random: &crate::runtime::Random,
    steps: &mut Taken,
) -> Result<(), SessionError> {
    let client = WorkloadClient::connect(context).await?;
    let producer = client.producer(topic, context.plan.batch_messages).await?;
    // A session is a producer of its own: a message of a broken session may still arrive behind those of
    // the next, and no broker can know better.
    let identity = context.history.lock().new_producer();
    let mut in_flight: VecDeque<(MessageNumber, _)> = VecDeque::new();
    let window = context.plan.producer_window as usize;
    let (low, high) = context.plan.body_bytes;
    let burst = u64::from(context.plan.publish_burst);
    let mut sent = 0_u64;
    while !context.stop.is_triggered() && steps.are_left(context) {
        let is_sent = steps.take(context);
        let at = context.stamp();
        let length = low + random.below(high - low + 1);
        if is_sent {
            let number = {
                let mut history = context.history.lock();
                let number = history.sent(topic, identity, at);
                history.sent_to(number, producer.broker());
                number
            };
            let body = encode_body(number, usize::try_from(length).unwrap_or(16));
            in_flight.push_back((number, producer.send(body).await?));
        }
        while in_flight.len() >= window {
            if let Some((number, receipt)) = in_flight.pop_front() {
                settle(context, number, receipt).await?;
            }
        }
        sent += 1;
        if sent.is_multiple_of(burst) {
            let pause = burst * context.plan.publish_interval.as_millis() as u64;
            let pause = Duration::from_millis(random.below(2 * pause + 1));
            tokio::select! {
                biased;
                () = context.stop.triggered() => {}
                () = context.runtime.clock.sleep(pause) => {}
            }
        }
    }
    while let Some((number, receipt)) = in_flight.pop_front() {
        settle(context, number, receipt).await?;
    }
    producer.close().await
}

async fn settle(
    context: &WorkloadContext,
    number: MessageNumber,
    receipt: Receipt,
) -> Result<(), SessionError> {
    let told = receipt.told().await?;
    let fate = match told {
        Told::Committed(place) => PublishFate::Committed(place),
        Told::Rejected | Told::Closed => PublishFate::Rejected,
    };
    context.history.lock().told(number, fate);
    // A lost producer answers every send like that: without an end nothing would be published any more.
    if matches!(told, Told::Closed) {
        return Err(SessionError::new("the producer was closed"));
    }
    Ok(())
}

/// Publishes one message and waits for its receipt; true if it came.
pub async fn prove_writable(context: &WorkloadContext, topic: &str) -> bool {
    let attempt: Result<bool, SessionError> = async {
        let client = WorkloadClient::connect(context).await?;
        let producer = client.producer(topic, 1).await?;
        let number = {
            let mut history = context.history.lock();
            let identity = history.new_producer();
            let number = history.sent(topic, identity, context.stamp());
            history.sent_to(number, producer.broker());
            number
        };
        let receipt = producer.send(encode_body(number, 32)).await?;
        settle(context, number, receipt).await?;
        let history = context.history.lock();
        let fate = history.publishes.get(&number).map(|record| record.fate);
        Ok(matches!(fate, Some(PublishFate::Committed(_))))
    }
    .await;
    attempt.unwrap_or(false)
}
