//! `seawall produce`: publish messages, say what became of them.
#![allow(
    clippy::disallowed_methods,
    reason = "the files a person names are read here, as whole messages"
)]

use std::collections::VecDeque;
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use clap::Args;
use serde::Serialize;

use super::client_options::{ClientFailure, ConnectionOptions, with_client};
use super::output::{OutputFormat, OutputOption, complain, progress, say, say_json};
use super::{FAILED, GOOD};
use crate::client::{
    Compression, OutgoingMessage, Producer, ProducerOptions, PulsarClient, SendError, SendTicket,
};
use crate::runtime::Runtime;

/// Messages sent and without outcome yet.
const PENDING_MAX: usize = 1_000;
/// Failures told one by one; of more only the number.
const FAILURES_TOLD_MAX: u64 = 10;

/// Publish messages and wait until each is stored.
///
/// Examples:
///   seawall produce my-topic -m hello
///   seawall produce my-topic -m one,two -n 100 -k some-key -p color=red
///   seawall produce my-topic -f picture.png -r 10 -n 1000
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(super) struct ProduceCommand {
    /// The topic, short or full.
    topic: String,
    /// Messages, separated by the separator.
    #[arg(short, long)]
    messages: Vec<String>,
    /// Between messages.
    #[arg(short, long, default_value = ",")]
    separator: String,
    /// Files, each a message.
    #[arg(short, long)]
    file: Vec<PathBuf>,
    /// How many times to publish all of them.
    #[arg(short, long = "num-produce", default_value_t = 1)]
    number: u64,
    /// Messages a second; 0 is as fast as possible.
    #[arg(short, long, default_value_t = 0.0)]
    rate: f64,
    /// Key of every message.
    #[arg(short, long)]
    key: Option<String>,
    /// Property of every message, key=value; may be repeated.
    #[arg(short, long, value_parser = parse_property)]
    property: Vec<(String, String)>,
    /// Messages in a batch; 1 sends each by itself.
    #[arg(long, default_value_t = 1)]
    batch: usize,
    /// How to compress.
    #[arg(long, value_parser = parse_compression, default_value = "none")]
    compression: Compression,
    #[command(flatten)]
    connection: ConnectionOptions,
    #[command(flatten)]
    output: OutputOption,
}

/// What became of everything.
#[derive(Debug, Default, Serialize)]
struct Outcome {
    stored: u64,
    rejected: u64,
    unknown: u64,
    last_message_id: Option<String>,
}

impl Outcome {
    fn count(&mut self, outcome: Result<crate::client::MessageId, SendError>) {
        let failure = match outcome {
            Ok(id) => {
                self.stored += 1;
                self.last_message_id = Some(id.to_string());
                return;
            }
            Err(failure) => failure,
        };
        match failure {
            SendError::Rejected(_) => self.rejected += 1,
            _ => self.unknown += 1,
        }
        if self.rejected + self.unknown <= FAILURES_TOLD_MAX {
            complain(&failure);
        }
    }
}

fn parse_property(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("a property is key=value")?;
    Ok((key.to_owned(), value.to_owned()))
}

fn parse_compression(text: &str) -> Result<Compression, String> {
    match text.to_ascii_lowercase().as_str() {
        "none" => Ok(Compression::None),
        "lz4" => Ok(Compression::Lz4),
        "zlib" => Ok(Compression::Zlib),
        "zstd" => Ok(Compression::Zstd),
        "snappy" => Ok(Compression::Snappy),
        _ => Err("one of none, lz4, zlib, zstd, snappy".to_owned()),
    }
}

/// Performs the command.
pub(super) fn produce(command: &ProduceCommand) -> u8 {
    with_client(&command.connection, |runtime, client| publish_all(command, runtime, client))
}

impl ProduceCommand {
    /// The payloads of one turn.
    fn payloads(&self) -> Result<Vec<Bytes>, ClientFailure> {
        let mut payloads: Vec<Bytes> = Vec::new();
        for text in &self.messages {
            if self.separator.is_empty() {
                payloads.push(Bytes::copy_from_slice(text.as_bytes()));
            } else {
                let parts = text.split(self.separator.as_str());
                payloads.extend(parts.map(|part| Bytes::copy_from_slice(part.as_bytes())));
            }
        }
        for path in &self.file {
            let content = std::fs::read(path)
                .map_err(|error| ClientFailure::Usage(format!("{}: {error}", path.display())))?;
            payloads.push(content.into());
        }
        if payloads.is_empty() {
            return Err(ClientFailure::Usage("nothing to publish: give -m or -f".to_owned()));
        }
        Ok(payloads)
    }
}

async fn publish_all(
    command: &ProduceCommand,
    runtime: Runtime,
    client: PulsarClient,
) -> Result<u8, ClientFailure> {
    let payloads = command.payloads()?;
    let mut producers = Vec::new();
    for part in client.topic_parts(&command.topic).await? {
        let options = ProducerOptions {
            pending_max: PENDING_MAX,
            batch_messages_max: command.batch.max(1),
            compression: command.compression,
            ..ProducerOptions::default()
        };
        producers.push(client.producer(&part, options).await?);
    }
    let total = command.number.saturating_mul(payloads.len() as u64);
    let bar = progress(total, "messages");
    let began = runtime.clock.now();
    let mut outcome = Outcome::default();
    let mut pending: VecDeque<SendTicket> = VecDeque::new();
    let payloads = payloads.iter().cycle().take(usize::try_from(total).unwrap_or(usize::MAX));
    for (index, payload) in payloads.enumerate() {
        if command.rate > 0.0 {
            let due = Duration::from_secs_f64(index as f64 / command.rate);
            runtime.clock.sleep_until(began + due).await;
        }
        let message = OutgoingMessage {
            payload: payload.clone(),
            key: command.key.clone(),
            properties: command.property.clone(),
            event_time: None,
        };
        let Some(producer) = choose(&producers, command.key.as_deref(), index) else { break };
        pending.push_back(producer.send(message).await?);
        if pending.len() >= PENDING_MAX
            && let Some(oldest) = pending.pop_front()
        {
            outcome.count(oldest.await);
            bar.inc(1);
        }
    }
    for producer in &producers {
        producer.flush()?;
    }
    for ticket in pending {
        outcome.count(ticket.await);
        bar.inc(1);
    }
    bar.finish_and_clear();
    for producer in &producers {
        producer.close().await?;
    }
    tell(command, &outcome)
}

/// The same partition for the same key, else partitions in turn.
fn choose<'a>(producers: &'a [Producer], key: Option<&str>, index: usize) -> Option<&'a Producer> {
    let number = match key {
        // Java's hash of a string, as Pulsar's Java client takes by default.
        Some(key) => {
            let hash = key
                .encode_utf16()
                .fold(0_u32, |hash, unit| hash.wrapping_mul(31).wrapping_add(u32::from(unit)));
            (hash & 0x7fff_ffff) as usize
        }
        None => index,
    };
    producers.get(number.checked_rem(producers.len())?)
}

fn tell(command: &ProduceCommand, outcome: &Outcome) -> Result<u8, ClientFailure> {
    let is_told = match command.output.format {
        OutputFormat::Json => say_json(outcome),
        OutputFormat::Table => say(&format!(
            "{} stored, {} rejected, {} unknown",
            outcome.stored, outcome.rejected, outcome.unknown
        )),
    };
    if !is_told {
        return Err(ClientFailure::Told);
    }
    Ok(if outcome.rejected + outcome.unknown == 0 { GOOD } else { FAILED })
}
