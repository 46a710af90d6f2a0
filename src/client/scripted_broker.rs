//! For tests: a broker that is only a script. Connecting and finding a topic always works.

use std::sync::Arc;

use bytes::BytesMut;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::frontend::pulsar::codec::{Command, encode_command, next_frame, proto};
use crate::runtime::{ByteStream, Runtime};

/// Where it listens.
pub(super) const BROKER: &str = "broker:6650";

/// Counts the connections that are open.
#[derive(Clone, Default)]
pub(super) struct Open(Arc<()>);

impl Open {
    pub(super) fn count(&self) -> usize {
        // This one, and the listener's.
        Arc::strong_count(&self.0) - 2
    }
}

/// Answers what `script` says, and where it says nothing what lets a producer be opened and closed.
pub(super) async fn serve<S>(runtime: Runtime, script: S, open: Open)
where
    S: Fn(&Command) -> Option<Vec<Command>> + Clone + Send + 'static,
{
    let listener = runtime.network.listen(BROKER).await.unwrap();
    loop {
        let accepted = listener.accept().await.unwrap();
        let (script, open) = (script.clone(), open.clone());
        runtime.tasks.spawn("connection", async move {
            answer_all(accepted.stream, script).await;
            drop(open);
        });
    }
}

async fn answer_all(mut stream: ByteStream, script: impl Fn(&Command) -> Option<Vec<Command>>) {
    let (mut buffer, mut answers) = (BytesMut::new(), BytesMut::new());
    while stream.read_buf(&mut buffer).await.is_ok_and(|read| read > 0) {
        while let Some(frame) = next_frame(&mut buffer, 1 << 20).unwrap() {
            let command = Command::decode(&frame.command).unwrap();
            let scripted = script(&command);
            for answer in scripted.unwrap_or_else(|| usual(&command).into_iter().collect()) {
                encode_command(&answer, &mut answers);
            }
        }
        stream.write_all(&answers.split()).await.unwrap();
    }
}

fn usual(command: &Command) -> Option<Command> {
    Some(match command {
        Command::Connect(_) => Command::Connected(proto::CommandConnected::default()),
        Command::Lookup(lookup) => Command::LookupResponse(proto::CommandLookupTopicResponse {
            broker_service_url: Some(format!("pulsar://{BROKER}")),
            response: Some(proto::command_lookup_topic_response::LookupType::Connect.into()),
            request_id: lookup.request_id,
            ..Default::default()
        }),
        Command::Producer(producer) => Command::ProducerSuccess(proto::CommandProducerSuccess {
            request_id: producer.request_id,
            producer_name: "scripted".to_owned(),
            last_sequence_id: Some(-1),
            ..Default::default()
        }),
        Command::CloseProducer(proto::CommandCloseProducer { request_id, .. })
        | Command::CloseConsumer(proto::CommandCloseConsumer { request_id, .. }) => {
            Command::Success(proto::CommandSuccess { request_id: *request_id, schema: None })
        }
        _ => return None,
    })
}
