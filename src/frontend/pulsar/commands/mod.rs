//! One file per command of a client. A handler translates, calls the broker and translates back.

mod ack;
mod auth_response;
mod close_consumer;
mod close_producer;
mod connect;
mod consumer_stats;
mod flow;
mod get_last_message_id;
mod get_topics_of_namespace;
mod lookup;
mod message_id;
mod partitioned_metadata;
mod producer;
mod redeliver;
mod schema;
mod seek;
mod send;
mod subscribe;
mod transactions;
mod unsubscribe;
mod watch_topic_list;

use std::sync::Arc;

use bytes::Bytes;

use super::codec::{Command, proto};
use super::connection::{Connection, ConnectionEnd, PublishBatches};

/// Hands a command to its handler. An error ends the connection.
pub(super) async fn dispatch(
    connection: &Arc<Connection>,
    command: Command,
    payload: &Bytes,
    batches: &mut PublishBatches,
) -> Result<(), ConnectionEnd> {
    match command {
        Command::Send(command) => send::handle(connection, &command, payload, batches),
        Command::Ack(command) => ack::handle(connection, command).await,
        Command::Flow(command) => {
            flow::handle(connection, &command);
            Ok(())
        }
        Command::Ping(_) => {
            connection.answer(&Command::Pong(proto::CommandPong {}));
            Ok(())
        }
        Command::Pong(_) => Ok(()),
        Command::Connect(command) => {
            connect::handle(connection, command);
            Ok(())
        }
        Command::AuthResponse(_) => {
            auth_response::handle(connection);
            Ok(())
        }
        Command::PartitionedMetadata(command) => {
            partitioned_metadata::handle(connection, command).await
        }
        Command::Lookup(command) => lookup::handle(connection, &command).await,
        Command::Producer(command) => producer::handle(connection, command).await,
        Command::CloseProducer(command) => {
            batches.publish();
            close_producer::handle(connection, &command).await
        }
        Command::Subscribe(command) => subscribe::handle(connection, command).await,
        Command::CloseConsumer(command) => close_consumer::handle(connection, &command).await,
        Command::Unsubscribe(command) => unsubscribe::handle(connection, &command).await,
        Command::RedeliverUnacknowledgedMessages(command) => {
            redeliver::handle(connection, &command);
            Ok(())
        }
        Command::Seek(command) => seek::handle(connection, &command).await,
        Command::GetLastMessageId(command) => {
            get_last_message_id::handle(connection, &command).await
        }
        Command::ConsumerStats(command) => consumer_stats::handle(connection, &command).await,
        Command::GetTopicsOfNamespace(command) => {
            get_topics_of_namespace::handle(connection, command).await
        }
        Command::GetSchema(command) => {
            schema::get(connection, &command);
            Ok(())
        }
        Command::GetOrCreateSchema(command) => {
            schema::get_or_create(connection, &command);
            Ok(())
        }
        Command::WatchTopicList(command) => {
            watch_topic_list::handle(connection, &command);
            Ok(())
        }
        Command::WatchTopicListClose(command) => {
            connection.outbox.success(command.request_id);
            Ok(())
        }
        Command::NewTxn(_)
        | Command::AddPartitionToTxn(_)
        | Command::AddSubscriptionToTxn(_)
        | Command::EndTxn(_)
        | Command::TcClientConnectRequest(_) => {
            transactions::handle(connection, &command);
            Ok(())
        }
        other => Err(ConnectionEnd::Unexpected(other.name())),
    }
}
