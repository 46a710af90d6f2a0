//! `seawall consume`: receive messages, print them, acknowledge them once they are printed.

use std::collections::BTreeMap;
use std::time::Duration;

use clap::Args;
use serde::Serialize;

use super::client_options::{ClientFailure, ConnectionOptions, with_client};
use super::output::{OutputFormat, OutputOption, say, say_json};
use super::{FAILED, GOOD};
use crate::broker::SubscriptionType;
use crate::client::{Consumer, ConsumerOptions, Message, PulsarClient, StartPosition};
use crate::runtime::Runtime;

/// With several partitions each is asked in turn for this long.
const TURN: Duration = Duration::from_millis(20);
/// With one, a wait without an end is made of waits of this length.
const LONG_TURN: Duration = Duration::from_secs(3600);

/// Receive messages, print them, acknowledge them.
///
/// Examples:
///   seawall consume my-topic -s my-sub
///   seawall consume my-topic -s my-sub -n 0 -t Shared -p Earliest
///   seawall consume my-topic -s my-sub -n 10 --timeout 5s -o json
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(super) struct ConsumeCommand {
    /// The topic, short or full.
    topic: String,
    /// The subscription.
    #[arg(short, long = "subscription-name")]
    subscription: String,
    /// How many messages; 0 is without end.
    #[arg(short, long = "num-messages", default_value_t = 1)]
    number: u64,
    /// How the subscription shares its messages.
    #[arg(short = 't', long, value_enum, default_value = "Exclusive", ignore_case = true)]
    subscription_type: TypeName,
    /// Where a new subscription begins.
    #[arg(short = 'p', long, value_enum, default_value = "Latest", ignore_case = true)]
    subscription_position: PositionName,
    /// Give up when nothing came for this long, for example 10s; default: wait.
    #[arg(long, value_parser = humantime::parse_duration)]
    timeout: Option<Duration>,
    /// Do not acknowledge: the messages will come again.
    #[arg(long)]
    no_ack: bool,
    /// Print nothing but the messages' content.
    #[arg(long)]
    content_only: bool,
    #[command(flatten)]
    connection: ConnectionOptions,
    #[command(flatten)]
    output: OutputOption,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
#[value(rename_all = "verbatim")]
enum TypeName {
    Exclusive,
    Shared,
    Failover,
    #[value(name = "Key_Shared")]
    KeyShared,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
#[value(rename_all = "verbatim")]
enum PositionName {
    Latest,
    Earliest,
}

/// A message for a script.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct MessageJson<'a> {
    message_id: String,
    publish_time: u64,
    event_time: Option<u64>,
    key: Option<&'a str>,
    properties: BTreeMap<&'a str, &'a str>,
    producer_name: &'a str,
    redelivery_count: u32,
    /// The content if it is text.
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<&'a str>,
    /// The content in hexadecimal if it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    content_hex: Option<String>,
}

/// Performs the command.
pub(super) fn consume(command: &ConsumeCommand) -> u8 {
    with_client(&command.connection, |runtime, client| receive_all(command, runtime, client))
}

async fn receive_all(
    command: &ConsumeCommand,
    runtime: Runtime,
    client: PulsarClient,
) -> Result<u8, ClientFailure> {
    let mut consumers = Vec::new();
    for part in client.topic_parts(&command.topic).await? {
        let options = ConsumerOptions {
            subscription_type: match command.subscription_type {
                TypeName::Exclusive => SubscriptionType::Exclusive,
                TypeName::Shared => SubscriptionType::Shared,
                TypeName::Failover => SubscriptionType::Failover,
                TypeName::KeyShared => SubscriptionType::KeyShared,
            },
            start: match command.subscription_position {
                PositionName::Latest => StartPosition::Latest,
                PositionName::Earliest => StartPosition::Earliest,
            },
            ..ConsumerOptions::default()
        };
        consumers.push(client.consumer(&part, &command.subscription, options).await?);
    }
    let mut received = 0_u64;
    let mut quiet_since = runtime.clock.now();
    while command.number == 0 || received < command.number {
        let turn = match (consumers.len(), command.timeout) {
            (1, Some(limit)) => limit,
            (1, None) => LONG_TURN,
            _ => TURN,
        };
        let mut is_quiet = true;
        for consumer in &mut consumers {
            if command.number != 0 && received == command.number {
                break;
            }
            if let Some(message) = consumer.receive(turn).await? {
                is_quiet = false;
                received += 1;
                take(command, consumer, &message).await?;
            }
        }
        let now = runtime.clock.now();
        if !is_quiet {
            quiet_since = now;
        } else if command.timeout.is_some_and(|limit| now.since(quiet_since) >= limit) {
            break;
        }
    }
    for consumer in consumers {
        consumer.close().await;
    }
    Ok(if received >= command.number { GOOD } else { FAILED })
}

/// Prints first and acknowledges then: what nobody saw comes again.
async fn take(
    command: &ConsumeCommand,
    consumer: &Consumer,
    message: &Message,
) -> Result<(), ClientFailure> {
    if !print(command, message) {
        return Err(ClientFailure::Told);
    }
    if !command.no_ack {
        consumer.acknowledge(&[message.id]).await?;
    }
    Ok(())
}

fn print(command: &ConsumeCommand, message: &Message) -> bool {
    let text = std::str::from_utf8(&message.payload).ok();
    if command.output.format == OutputFormat::Json {
        return say_json(&MessageJson {
            message_id: message.id.to_string(),
            publish_time: message.publish_time,
            event_time: message.event_time,
            key: message.key.as_deref(),
            properties: message.properties.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect(),
            producer_name: &message.producer_name,
            redelivery_count: message.redelivery_count,
            content: text,
            content_hex: text.is_none().then(|| hexadecimal(&message.payload)),
        });
    }
    let content = text.map_or_else(|| hexadecimal(&message.payload), str::to_owned);
    if command.content_only {
        return say(&content);
    }
    let properties: Vec<String> =
        message.properties.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let key = message.key.as_deref().unwrap_or("null");
    // The lines Pulsar's own client prints.
    say(&"----- got message -----")
        && say(&format!("key:[{key}], properties:[{}], content:{content}", properties.join(", ")))
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
