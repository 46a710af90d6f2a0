//! SUBSCRIBE: opens a consumer or a reader. A schema is accepted and not looked at.

use std::sync::Arc;

use crate::broker::{BrokerError, Consumer, InitialPosition, SubscribeOptions, SubscriptionType};
use crate::domain::TopicName;
use crate::frontend::pulsar::codec::proto;
use crate::frontend::pulsar::commands::message_id::{self, Place};
use crate::frontend::pulsar::connection::{
    BeginError, Connection, ConnectionEnd, DeliverySink, OpenConsumer,
};
use crate::reached;

use proto::ServerError;
use proto::command_subscribe::{InitialPosition as Wire, SubType};

pub(super) async fn handle(
    connection: &Arc<Connection>,
    command: proto::CommandSubscribe,
) -> Result<(), ConnectionEnd> {
    let (id, request_id) = (command.consumer_id, command.request_id);
    let name = match connection.topic_name(&command.topic) {
        Ok(name) => name,
        Err(error) => {
            connection.refuse_name(request_id, &error);
            return Ok(());
        }
    };
    let create = command.force_topic_creation();
    let options = match options(connection, command) {
        Ok(options) => options,
        Err((error, reason)) => {
            connection.outbox.error(request_id, error, reason.to_owned());
            return Ok(());
        }
    };
    let begun = connection.handles.consumers().begin(id);
    let generation = match begun {
        Ok(generation) => generation,
        Err(BeginError::Open(_)) => {
            connection.outbox.success(request_id);
            return Ok(());
        }
        Err(BeginError::Pending) => {
            let reason = "the consumer is being opened".to_owned();
            connection.outbox.error(request_id, ServerError::ServiceNotReady, reason);
            return Ok(());
        }
        Err(BeginError::Refused) => {
            let reason = "too many consumers on this connection".to_owned();
            connection.outbox.error(request_id, ServerError::NotAllowedError, reason);
            return Ok(());
        }
    };
    let opening = Arc::clone(connection);
    connection
        .spawn_request("pulsar-subscribe", async move {
            let sink = Arc::new(DeliverySink::new(
                id,
                generation,
                name.partition(),
                Arc::clone(&opening.outbox),
                Arc::clone(&opening.handles),
            ));
            let subscribed = subscribe(&opening, &name, create, options, &sink).await;
            finish(&opening, id, request_id, generation, sink, subscribed).await;
        })
        .await
}

async fn subscribe(
    connection: &Arc<Connection>,
    name: &TopicName,
    create: bool,
    options: SubscribeOptions,
    sink: &Arc<DeliverySink>,
) -> Result<Consumer, BrokerError> {
    let topic = connection.broker.topic(name, create).await?;
    let sink = Arc::clone(sink);
    topic.subscribe(options, sink).await
}

async fn finish(
    connection: &Arc<Connection>,
    id: u64,
    request_id: u64,
    generation: u64,
    sink: Arc<DeliverySink>,
    subscribed: Result<Consumer, BrokerError>,
) {
    let consumer = match subscribed {
        Ok(consumer) => consumer,
        Err(error) => {
            connection.handles.consumers().remove_generation(id, generation);
            connection.refuse(request_id, &error);
            return;
        }
    };
    let open = OpenConsumer { consumer: consumer.clone(), sink: Arc::clone(&sink) };
    if !connection.handles.consumers().open(id, generation, open) {
        reached!("pulsar subscribe: closed while it was being opened");
        consumer.close().await;
    } else if sink.announce(request_id) {
        // It may have been refused room before the writer could find it here.
        consumer.resume();
        return;
    } else {
        connection.handles.consumers().remove_generation(id, generation);
    }
    let reason = "the consumer was closed meanwhile".to_owned();
    connection.outbox.error(request_id, ServerError::ServiceNotReady, reason);
}

type Refused = (ServerError, &'static str);

fn options(
    connection: &Connection,
    command: proto::CommandSubscribe,
) -> Result<SubscribeOptions, Refused> {
    let not_allowed = |reason| (ServerError::NotAllowedError, reason);
    let subscription_type = match SubType::try_from(command.sub_type) {
        Ok(SubType::Exclusive) => SubscriptionType::Exclusive,
        Ok(SubType::Shared) => SubscriptionType::Shared,
        Ok(SubType::Failover) => SubscriptionType::Failover,
        Ok(SubType::KeyShared) => SubscriptionType::KeyShared,
        Err(_) => return Err(not_allowed("unknown subscription type")),
    };
    let name_max = connection.config.name_bytes_max;
    if command.subscription.is_empty() {
        // The code clients know for a bad subscription name.
        return Err((ServerError::ProducerBusy, "the subscription's name is empty"));
    }
    if command.subscription.len() > name_max || command.consumer_name().len() > name_max {
        return Err(not_allowed("the subscription's or consumer's name is too long"));
    }
    if command.read_compacted() {
        return Err(not_allowed("compacted reads are not supported"));
    }
    let durable = command.durable();
    let mut initial_position = match command.initial_position() {
        Wire::Latest => InitialPosition::Latest,
        Wire::Earliest => InitialPosition::Earliest,
    };
    if let (false, Some(start)) = (durable, &command.start_message_id) {
        initial_position = match message_id::place(start) {
            Some(Place::Earliest) => InitialPosition::Earliest,
            Some(Place::Latest) => InitialPosition::Latest,
            Some(Place::At(position)) => InitialPosition::At(position),
            None => return Err(not_allowed("the start message id is no position")),
        };
    }
    Ok(SubscribeOptions {
        subscription_type,
        durable,
        initial_position,
        rollback_seconds: command.start_message_rollback_duration_sec(),
        consumer_id: command.consumer_id,
        consumer_name: command.consumer_name().to_owned(),
        priority_level: command.priority_level(),
        consumer_epoch: command.consumer_epoch,
        subscription_properties: message_id::pairs(command.subscription_properties),
        metadata: message_id::pairs(command.metadata),
        connection: connection.facts(),
        subscription: command.subscription,
    })
}
