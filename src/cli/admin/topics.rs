//! Topics and the brokers that serve them.

use clap::{Args, Subcommand};
use http::Method;
use serde_json::Value;

use super::ask::{AdminError, Connection};
use super::{done, field, tell};
use crate::cli::output::{OutputFormat, table};
use crate::domain::TopicName;
use crate::frontend::admin::topic_path;

#[derive(Debug, Subcommand)]
pub(super) enum TopicsCommand {
    /// Topics of a namespace.
    List {
        /// tenant/namespace.
        #[arg(default_value = "public/default")]
        namespace: String,
    },
    /// The broker that serves a topic; it is given to one if nobody does.
    Lookup(TopicArgument),
    /// Close a topic; the next client that looks it up opens it again.
    Unload(TopicArgument),
    /// Rates, storage and subscriptions of a topic.
    Stats(TopicArgument),
}

#[derive(Debug, Subcommand)]
pub(super) enum BrokersCommand {
    /// Brokers that are registered now, by host:port of their HTTP.
    List,
}

#[derive(Debug, Args)]
pub(super) struct TopicArgument {
    /// The topic, short or full.
    topic: String,
}

impl TopicArgument {
    fn path(&self) -> Result<String, AdminError> {
        let name = TopicName::parse(&self.topic);
        let name = name.map_err(|error| AdminError::Usage(format!("{}: {error}", self.topic)))?;
        Ok(topic_path(&name))
    }
}

/// Performs it; false when nobody reads the answer.
pub(super) async fn perform(
    connection: &Connection,
    command: &TopicsCommand,
    format: OutputFormat,
) -> Result<bool, AdminError> {
    match command {
        TopicsCommand::List { namespace } => {
            let is_name = namespace.split('/').count() == 2;
            if !is_name {
                return Err(AdminError::Usage(format!("{namespace}: expected tenant/namespace")));
            }
            let path = format!("/admin/v2/persistent/{namespace}");
            let answer = connection.ask(Method::GET, &path).await?;
            Ok(tell(format, &answer, || lines(&answer, "no topics")))
        }
        TopicsCommand::Lookup(topic) => {
            let path = format!("/lookup/v2/topic/{}", topic.path()?);
            let answer = connection.ask(Method::GET, &path).await?;
            let row = || vec![field(&answer, "brokerUrl"), field(&answer, "httpUrl")];
            Ok(tell(format, &answer, || table(&["pulsar", "http"], &[row()])))
        }
        TopicsCommand::Unload(topic) => {
            let path = format!("/admin/v2/{}/unload", topic.path()?);
            connection.ask(Method::PUT, &path).await?;
            Ok(done(format, "unloaded"))
        }
        TopicsCommand::Stats(topic) => {
            let path = format!("/admin/v2/{}/stats", topic.path()?);
            let answer = connection.ask(Method::GET, &path).await?;
            Ok(tell(format, &answer, || statistics(&answer)))
        }
    }
}

/// The same for brokers.
pub(super) async fn perform_on_brokers(
    connection: &Connection,
    command: &BrokersCommand,
    format: OutputFormat,
) -> Result<bool, AdminError> {
    let BrokersCommand::List = command;
    let answer = connection.ask(Method::GET, "/admin/v2/brokers").await?;
    Ok(tell(format, &answer, || lines(&answer, "no brokers")))
}

fn lines(answer: &Value, nothing: &str) -> String {
    let texts: Vec<&str> =
        answer.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if texts.is_empty() { nothing.to_owned() } else { texts.join("\n") }
}

fn statistics(answer: &Value) -> String {
    let own = ["msgRateIn", "msgRateOut", "storageSize", "backlogSize"];
    let mut text = table(&own, &[own.map(|name| field(answer, name)).into()]);
    let subscriptions = answer.get("subscriptions").and_then(Value::as_object);
    let rows: Vec<Vec<String>> = subscriptions
        .into_iter()
        .flatten()
        .map(|(name, of)| {
            let consumers = of.get("consumers").and_then(Value::as_array).map_or(0, Vec::len);
            let mut row = vec![name.clone(), field(of, "type"), consumers.to_string()];
            row.extend(["msgBacklog", "unackedMessages", "idleReason"].map(|name| field(of, name)));
            row
        })
        .collect();
    if !rows.is_empty() {
        let headings = ["subscription", "type", "consumers", "backlog", "unacked", "idle because"];
        text.push_str("\n\n");
        text.push_str(&table(&headings, &rows));
    }
    text
}
