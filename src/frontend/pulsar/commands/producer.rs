//! PRODUCER: opens a producer. A schema is accepted and not looked at. Access modes other than Shared are
//! refused, since a client relies on their promise.

use std::sync::Arc;

use crate::broker::{BrokerError, Producer, ProducerOptions};
use crate::domain::TopicName;
use crate::frontend::pulsar::codec::{Command, proto};
use crate::frontend::pulsar::connection::{
    BeginError, Connection, ConnectionEnd, OpenProducer, PublishSink,
};
use crate::reached;

use proto::ServerError;

pub(super) async fn handle(
    connection: &Arc<Connection>,
    command: proto::CommandProducer,
) -> Result<(), ConnectionEnd> {
    let request_id = command.request_id;
    let name = match connection.topic_name(&command.topic) {
        Ok(name) => name,
        Err(error) => {
            connection.refuse_name(request_id, &error);
            return Ok(());
        }
    };
    let name_max = connection.config.name_bytes_max;
    let refusal = if command.producer_access_mode() != proto::ProducerAccessMode::Shared {
        Some("only the access mode Shared is supported")
    } else if command.txn_enabled() {
        Some("Transactions are not enabled.")
    } else if command.producer_name().len() > name_max {
        Some("the producer's name is too long")
    } else {
        None
    };
    if let Some(reason) = refusal {
        connection.outbox.error(request_id, ServerError::NotAllowedError, reason.to_owned());
        return Ok(());
    }
    let begun = connection.handles.producers().begin(command.producer_id);
    let generation = match begun {
        Ok(generation) => generation,
        Err(BeginError::Open(open)) => {
            open.sink.announce(&success(request_id, open.producer.name()));
            return Ok(());
        }
        Err(BeginError::Pending) => {
            let reason = "the producer is being opened or closed".to_owned();
            connection.outbox.error(request_id, ServerError::ServiceNotReady, reason);
            return Ok(());
        }
        Err(BeginError::Refused) => {
            let reason = "too many producers on this connection".to_owned();
            connection.outbox.error(request_id, ServerError::NotAllowedError, reason);
            return Ok(());
        }
    };
    let opening = Arc::clone(connection);
    connection
        .spawn_request("pulsar-producer", async move {
            open(&opening, &name, command, generation).await;
        })
        .await
}

async fn open(
    connection: &Arc<Connection>,
    name: &TopicName,
    command: proto::CommandProducer,
    generation: u64,
) {
    let (id, request_id) = (command.producer_id, command.request_id);
    let sink = Arc::new(PublishSink::new(
        id,
        generation,
        Arc::clone(&connection.outbox),
        Arc::clone(&connection.inflight),
        Arc::clone(&connection.handles),
        connection.runtime.tasks.clone(),
    ));
    let producer = match add(connection, name, command, Arc::clone(&sink)).await {
        Ok(producer) => producer,
        Err(error) => {
            connection.handles.producers().remove_generation(id, generation);
            connection.refuse(request_id, &error);
            return;
        }
    };
    let answer = success(request_id, producer.name());
    let open = OpenProducer { producer: producer.clone(), sink: Arc::clone(&sink) };
    if !connection.handles.producers().open(id, generation, open) {
        reached!("pulsar producer: closed while it was being opened");
        producer.close().await;
    } else if sink.announce(&answer) {
        return;
    } else {
        connection.handles.producers().remove_generation(id, generation);
    }
    let reason = "the producer was closed meanwhile".to_owned();
    connection.outbox.error(request_id, ServerError::ServiceNotReady, reason);
}

async fn add(
    connection: &Arc<Connection>,
    name: &TopicName,
    command: proto::CommandProducer,
    sink: Arc<PublishSink>,
) -> Result<Producer, BrokerError> {
    let topic = connection.broker.topic(name, true).await?;
    let options = ProducerOptions {
        producer_id: command.producer_id,
        // An empty name means that none was given.
        name: command.producer_name.filter(|name| !name.is_empty()),
        epoch: command.epoch.unwrap_or(0),
        metadata: super::message_id::pairs(command.metadata),
        connection: connection.facts(),
    };
    topic.add_producer(options, sink).await
}

fn success(request_id: u64, name: &str) -> Command {
    Command::ProducerSuccess(proto::CommandProducerSuccess {
        request_id,
        producer_name: name.to_owned(),
        last_sequence_id: Some(-1),
        schema_version: Some(bytes::Bytes::new()),
        topic_epoch: None,
        producer_ready: Some(true),
    })
}
