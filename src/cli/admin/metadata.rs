//! The metadata group.

use clap::Subcommand;
use http::Method;
use serde_json::Value;

use super::ask::{AdminError, Connection};
use super::{done, field, tell};
use crate::cli::output::{OutputFormat, table};

#[derive(Debug, Subcommand)]
pub(super) enum MetadataCommand {
    /// The members of the group as the member asked knows it.
    Members,
    /// Ask another voter to lead. Said to the leader's node.
    TransferLeader {
        /// Who shall lead.
        member: u64,
    },
    /// Take a member in. Said to the leader's node.
    ///
    /// Begin with --learner: it is sent everything without counting; when it has caught up, add it as a voter.
    Add {
        /// Its id, never used before.
        member: u64,
        /// host:port of its node-to-node port.
        address: String,
        /// It does not vote yet.
        #[arg(long)]
        learner: bool,
    },
    /// Let a member go for ever. Said to the leader's node.
    Remove {
        /// Who goes.
        member: u64,
    },
}

/// Performs it; false when nobody reads the answer.
pub(super) async fn perform(
    connection: &Connection,
    command: &MetadataCommand,
    format: OutputFormat,
) -> Result<bool, AdminError> {
    match command {
        MetadataCommand::Members => {
            let answer = connection.ask(Method::GET, "/admin/v2/metadata").await?;
            Ok(tell(format, &answer, || members(&answer)))
        }
        MetadataCommand::TransferLeader { member } => {
            let path = format!("/admin/v2/metadata/leader/{member}");
            connection.ask(Method::PUT, &path).await?;
            Ok(done(format, "asked; `members` tells who leads"))
        }
        MetadataCommand::Add { member, address, learner } => {
            let learner = if *learner { "&learner=true" } else { "" };
            let path = format!("/admin/v2/metadata/members/{member}?address={address}{learner}");
            connection.ask(Method::PUT, &path).await?;
            Ok(done(format, "taken in"))
        }
        MetadataCommand::Remove { member } => {
            let path = format!("/admin/v2/metadata/members/{member}");
            connection.ask(Method::DELETE, &path).await?;
            Ok(done(format, "gone for ever; its id is never used again"))
        }
    }
}

fn members(answer: &Value) -> String {
    let rows: Vec<Vec<String>> = answer
        .get("members")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .map(|row| {
            let leads = row.get("leads").and_then(Value::as_bool) == Some(true);
            let leads = if leads { "leads" } else { "" };
            let mut cells: Vec<String> =
                ["member", "address", "role"].map(|name| field(row, name)).into();
            cells.push(leads.to_owned());
            cells
        })
        .collect();
    let own = format!(
        "told by member {}, term {}, committed {} of {}",
        field(answer, "own"),
        field(answer, "term"),
        field(answer, "committed"),
        field(answer, "last"),
    );
    format!("{}\n\n{own}", table(&["member", "address", "role", ""], &rows))
}
