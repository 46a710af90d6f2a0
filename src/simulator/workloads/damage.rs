//! A producer whose bytes are damaged on their way: nothing of it may be stored, and it is told so.

use std::time::Duration;

use super::WorkloadContext;
use super::session::SessionError;
use crate::client::{OutgoingMessage, RawConnection, publish_frame};
use crate::frontend::pulsar::codec::{Command, proto};
use crate::simulator::history::{PublishFate, encode_body};

/// Deadline of each step.
const STEP_LIMIT: Duration = Duration::from_secs(6);
/// Pause between attempts.
const PAUSE: Duration = Duration::from_secs(4);
/// Bytes at the end of a frame that are the message's body.
const BODY_BYTES: usize = 32;

/// Sends damaged frames until told to stop.
pub async fn damage(context: WorkloadContext, topic: String, number: u64) {
    let random = context.runtime.random.fork_numbered("damage", number);
    while !context.stop.is_triggered() {
        let session = damage_once(&context, &topic, &random).await;
        context.ended("damaged producer", session);
        context.runtime.clock.sleep(PAUSE).await;
    }
}

async fn damage_once(
    context: &WorkloadContext,
    topic: &str,
    random: &crate::runtime::Random,
) -> Result<(), SessionError> {
    let mut connection =
        RawConnection::connect(&context.runtime, &context.broker, STEP_LIMIT).await?;
    connection.handshake().await?;
    let producer = proto::CommandProducer {
        topic: topic.to_owned(),
        producer_id: 1,
        request_id: 1,
        ..Default::default()
    };
    connection.send_command(&Command::Producer(producer)).await?;
    let Command::ProducerSuccess(opened) = connection.next_command().await? else {
        return Err(SessionError::new("no producer"));
    };
    let number = {
        let mut history = context.history.lock();
        let identity = history.new_producer();
        history.sent(topic, identity, context.stamp())
    };
    let message = OutgoingMessage::new(encode_body(number, BODY_BYTES));
    let mut frame = publish_frame(1, 0, &opened.producer_name, 1, &message).to_vec();
    let at = frame.len() - 1 - random.below(BODY_BYTES as u64) as usize;
    frame[at] ^= 1 << random.below(8);
    // Whatever is answered or lost: bytes that are not what was meant must not be stored.
    context.history.lock().told(number, PublishFate::Rejected);
    connection.send_bytes(&frame).await?;
    match connection.next_command().await? {
        Command::SendReceipt(_) => {
            let words = format!("{topic}: receipt for a damaged message");
            context.history.lock().protocol_violations.push(words);
            Ok(())
        }
        _ => Ok(()),
    }
}
