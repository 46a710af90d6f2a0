//! `seawall append`: append records to a stream, say which numbers they got.
#![allow(
    clippy::disallowed_methods,
    reason = "the files a person names are read here, as whole records"
)]

use std::path::PathBuf;

use bytes::Bytes;
use clap::Args;
use serde::Serialize;

use super::output::{OutputFormat, OutputOption, complain, say, say_json};
use super::stream_options::{StreamConnection, StreamFailure, with_stream};
use super::{FAILED, GOOD};
use crate::client::{Appender, StreamClient, StreamError};
use crate::rpc::generated::public::{NewRecord, Property};

/// Append records to a stream, in order, and wait until each is stored. What is stored is a prefix: nothing is
/// appended behind a record that was refused.
///
/// Examples:
///   seawall append my-topic -m one -m two
///   seawall append my-topic -m next --expect 42
///   seawall append my-topic -f record.bin --token 7
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(super) struct AppendCommand {
    /// The topic, short or full.
    topic: String,
    /// A record; may be repeated.
    #[arg(short, long)]
    message: Vec<String>,
    /// A file that is a record; may be repeated. Files come after messages.
    #[arg(short, long)]
    file: Vec<PathBuf>,
    /// The sequence number the first record must get.
    #[arg(long)]
    expect: Option<u64>,
    /// The fencing token of this writer, at least 1. A higher one than the stream's shuts lower ones out for ever.
    #[arg(long)]
    token: Option<u64>,
    /// Key of every record.
    #[arg(short, long)]
    key: Option<String>,
    /// Property of every record, key=value; may be repeated.
    #[arg(short, long, value_parser = parse_property)]
    property: Vec<(String, String)>,
    #[command(flatten)]
    connection: StreamConnection,
    #[command(flatten)]
    output: OutputOption,
}

/// What became of everything.
#[derive(Debug, Default, Serialize)]
struct Outcome {
    numbers: Vec<u64>,
    rejected: usize,
    unknown: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_number: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

fn parse_property(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("a property is key=value")?;
    Ok((key.to_owned(), value.to_owned()))
}

/// Performs the command.
pub(super) fn append(command: &AppendCommand) -> u8 {
    let mut payloads: Vec<Bytes> =
        command.message.iter().map(|text| Bytes::from(text.clone())).collect();
    for path in &command.file {
        match std::fs::read(path) {
            Ok(bytes) => payloads.push(bytes.into()),
            Err(error) => {
                complain(&format!("{}: {error}", path.display()));
                return super::USAGE;
            }
        }
    }
    if payloads.is_empty() {
        complain(&"nothing to append: give -m or -f");
        return super::USAGE;
    }
    let work = |client| append_all(command, client, payloads);
    with_stream(&command.connection, &command.topic, work)
}

async fn append_all(
    command: &AppendCommand,
    client: StreamClient,
    payloads: Vec<Bytes>,
) -> Result<u8, StreamFailure> {
    let count = payloads.len();
    let mut outcome = Outcome::default();
    let ended = match client.append(command.token).await {
        Ok(appender) => send_all(command, appender, payloads, &mut outcome).await,
        Err(error) => Err(error),
    };
    if let Err(error) = ended {
        complain(&error);
        outcome.next_number = error.failure.next_number;
        outcome.token = error.failure.token;
        outcome.reason = Some(error.reason().as_str_name().to_owned());
        let left = count - outcome.numbers.len();
        if error.is_unknown() {
            outcome.unknown = left;
        } else {
            outcome.rejected = left;
        }
    }
    tell(command, &outcome)
}

async fn send_all(
    command: &AppendCommand,
    mut appender: Appender,
    payloads: Vec<Bytes>,
    outcome: &mut Outcome,
) -> Result<(), StreamError> {
    let properties = command.property.iter();
    let properties: Vec<Property> = properties
        .map(|(name, value)| Property { name: name.clone(), value: value.clone() })
        .collect();
    for (index, payload) in (0..).zip(payloads) {
        let record = NewRecord {
            payload,
            expected_number: command.expect.map(|first| first.saturating_add(index)),
            key: command.key.clone(),
            properties: properties.clone(),
            publish_time: None,
        };
        if !appender.send(record).await {
            break;
        }
    }
    appender.finish();
    while let Some(numbers) = appender.next().await? {
        outcome.numbers.extend(numbers);
    }
    Ok(())
}

fn tell(command: &AppendCommand, outcome: &Outcome) -> Result<u8, StreamFailure> {
    let is_told = match (command.output.format, outcome.numbers.as_slice()) {
        (OutputFormat::Json, _) => say_json(outcome),
        (OutputFormat::Table, numbers) => {
            let shown: Vec<String> = numbers.iter().map(u64::to_string).collect();
            say(&format!(
                "stored [{}], {} rejected, {} unknown",
                shown.join(" "),
                outcome.rejected,
                outcome.unknown
            ))
        }
    };
    if !is_told {
        return Err(StreamFailure::Told);
    }
    Ok(if outcome.rejected + outcome.unknown == 0 { GOOD } else { FAILED })
}
