//! `seawall admin`: looks at a cluster and changes it, over the HTTP port of any of its nodes.

mod ask;
mod bookies;
mod metadata;
mod topics;

use clap::{Args, Subcommand};

use super::output::{OutputFormat, complain, say};
use super::{FAILED, GOOD, USAGE};
use crate::runtime::real;
use ask::{AdminError, Connection};

/// Look at a cluster and change it.
#[derive(Debug, Args)]
pub(super) struct AdminCommand {
    /// The HTTP port of a node.
    #[arg(long, env = "SEAWALL_ADMIN_URL", default_value = "http://localhost:8080", global = true)]
    admin_url: String,
    /// How to print results.
    #[arg(short = 'o', long, value_enum, default_value = "table", global = true)]
    output: OutputFormat,
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Storage nodes: list them, let one leave, see what is under repair.
    #[command(subcommand)]
    Bookies(bookies::BookiesCommand),
    /// Topics: list them, find, unload, look at one.
    #[command(subcommand)]
    Topics(topics::TopicsCommand),
    /// Brokers.
    #[command(subcommand)]
    Brokers(topics::BrokersCommand),
    /// The metadata group: members and who leads.
    #[command(subcommand)]
    Metadata(metadata::MetadataCommand),
}

/// Performs the command.
pub(super) fn admin(command: &AdminCommand) -> u8 {
    let ended = real::run(|| async {
        let connection = Connection::new(real::runtime(), &command.admin_url)?;
        let format = command.output;
        match &command.what {
            What::Bookies(what) => bookies::perform(&connection, what, format).await,
            What::Topics(what) => topics::perform(&connection, what, format).await,
            What::Metadata(what) => metadata::perform(&connection, what, format).await,
            What::Brokers(what) => topics::perform_on_brokers(&connection, what, format).await,
        }
    });
    match ended {
        Ok(Ok(is_told)) => {
            if is_told {
                GOOD
            } else {
                FAILED
            }
        }
        Ok(Err(error)) => {
            complain(&error);
            if matches!(error, AdminError::Usage(_)) { USAGE } else { FAILED }
        }
        Err(error) => {
            complain(&error);
            FAILED
        }
    }
}

/// The rows as a table, or what was answered as it is.
fn tell(format: OutputFormat, answer: &serde_json::Value, rows: impl FnOnce() -> String) -> bool {
    match format {
        OutputFormat::Json => say(answer),
        OutputFormat::Table => say(&rows()),
    }
}

/// Something was done: a person is told in words, a script by the exit code.
fn done(format: OutputFormat, words: &str) -> bool {
    format == OutputFormat::Json || say(&words)
}

/// A member of a JSON object as text for a table.
fn field(value: &serde_json::Value, name: &str) -> String {
    match value.get(name) {
        None | Some(serde_json::Value::Null) => "-".to_owned(),
        Some(serde_json::Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}
