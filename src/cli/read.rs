//! `seawall read`: print a stream's records by number.

use std::collections::BTreeMap;

use clap::Args;
use serde::Serialize;

use super::GOOD;
use super::output::{OutputFormat, OutputOption, say, say_json};
use super::stream_options::{StreamConnection, StreamFailure, with_stream};
use crate::client::StreamClient;
use crate::rpc::generated::public::{Record, read_stream_request::Start};

/// Print the records of a stream: by default from the first one kept to the end.
///
/// Examples:
///   seawall read my-topic
///   seawall read my-topic --from 1000 -n 10 -o json
///   seawall read my-topic --time 1700000000000
///   seawall read my-topic --tail --follow
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(super) struct ReadCommand {
    /// The topic, short or full.
    topic: String,
    /// Begin at this number.
    #[arg(long, conflicts_with_all = ["time", "tail"])]
    from: Option<u64>,
    /// Begin after the last record published before this time, milliseconds since 1970.
    #[arg(long, conflicts_with = "tail")]
    time: Option<u64>,
    /// Begin at the end.
    #[arg(long)]
    tail: bool,
    /// How many records; 0 is without limit.
    #[arg(short = 'n', long, default_value_t = 0)]
    number: u64,
    /// At the end wait for more.
    #[arg(long)]
    follow: bool,
    /// Print nothing but the records' content.
    #[arg(long)]
    content_only: bool,
    #[command(flatten)]
    connection: StreamConnection,
    #[command(flatten)]
    output: OutputOption,
}

/// A record for a script.
#[derive(Serialize)]
struct RecordJson<'a> {
    number: u64,
    message_id: String,
    publish_time: u64,
    key: Option<&'a str>,
    properties: BTreeMap<&'a str, &'a str>,
    messages: u32,
    /// The content is as its producer was given it, and not a batch, compressed or encrypted.
    plain: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content_hex: Option<String>,
}

/// Performs the command.
pub(super) fn read(command: &ReadCommand) -> u8 {
    with_stream(&command.connection, &command.topic, |client| print_all(command, client))
}

async fn print_all(command: &ReadCommand, client: StreamClient) -> Result<u8, StreamFailure> {
    let start = match (command.from, command.time, command.tail) {
        (Some(number), ..) => Start::Number(number),
        (None, Some(time), _) => Start::Time(time),
        (None, None, true) => Start::Tail(true),
        (None, None, false) => Start::First(true),
    };
    let mut reader = client.read(start, command.number, command.follow).await?;
    while let Some(records) = reader.next().await? {
        for record in &records {
            if !print(command, record) {
                return Err(StreamFailure::Told);
            }
        }
    }
    Ok(GOOD)
}

fn print(command: &ReadCommand, record: &Record) -> bool {
    let text = std::str::from_utf8(&record.payload).ok().filter(|_| record.plain);
    let hexadecimal =
        || record.payload.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    if command.output.format == OutputFormat::Json {
        let properties = record.properties.iter();
        return say_json(&RecordJson {
            number: record.number,
            message_id: format!("{}:{}", record.ledger, record.entry),
            publish_time: record.publish_time,
            key: record.key.as_deref(),
            properties: properties
                .map(|property| (property.name.as_str(), property.value.as_str()))
                .collect(),
            messages: record.message_count,
            plain: record.plain,
            content: text,
            content_hex: text.is_none().then(hexadecimal),
        });
    }
    let content = text.map_or_else(hexadecimal, str::to_owned);
    if command.content_only {
        return say(&content);
    }
    say(&format!("{}  {content}", record.number))
}
