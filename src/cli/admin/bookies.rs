//! Storage nodes.

use clap::{Args, Subcommand};
use http::Method;
use serde_json::Value;

use super::ask::{AdminError, Connection};
use super::{done, field, tell};
use crate::cli::output::{OutputFormat, table};

#[derive(Debug, Subcommand)]
pub(super) enum BookiesCommand {
    /// Every bookie: id, address, state. The id is the incarnation, not the address.
    List,
    /// Ask a bookie to leave: it gets nothing new, and its copies are moved to others.
    ///
    /// Refused when fewer others take writes than a new ledger needs.
    Drain {
        #[command(flatten)]
        bookie: BookieArgument,
        /// Drain it even so.
        #[arg(long)]
        force: bool,
    },
    /// Take a drain back.
    Undrain(BookieArgument),
    /// Let a drained bookie go for ever.
    Decommission(BookieArgument),
    /// Ledgers that need repair, why, and how far it is.
    UnderReplicated,
}

#[derive(Debug, Args)]
pub(super) struct BookieArgument {
    /// Its id, as in the list.
    bookie: String,
}

impl BookieArgument {
    fn path(&self, action: &str) -> Result<String, AdminError> {
        let is_id =
            self.bookie.len() == 16 && self.bookie.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_id {
            let words = format!("{}: a bookie's id is 16 hexadecimal digits", self.bookie);
            return Err(AdminError::Usage(words));
        }
        Ok(format!("/admin/v2/bookies/{}/{action}", self.bookie))
    }
}

/// Performs it; false when nobody reads the answer.
pub(super) async fn perform(
    connection: &Connection,
    command: &BookiesCommand,
    format: OutputFormat,
) -> Result<bool, AdminError> {
    match command {
        BookiesCommand::List => {
            let answer = connection.ask(Method::GET, "/admin/v2/bookies").await?;
            Ok(tell(format, &answer, || bookie_table(&answer)))
        }
        BookiesCommand::Drain { bookie, force } => {
            let path = bookie.path(if *force { "drain?force=true" } else { "drain" })?;
            connection.ask(Method::PUT, &path).await?;
            Ok(done(format, "draining; it can be decommissioned when its state is `drained`"))
        }
        BookiesCommand::Undrain(bookie) => {
            connection.ask(Method::DELETE, &bookie.path("drain")?).await?;
            Ok(done(format, "it stays"))
        }
        BookiesCommand::Decommission(bookie) => {
            connection.ask(Method::PUT, &bookie.path("decommission")?).await?;
            Ok(done(format, "gone for ever; stop its node"))
        }
        BookiesCommand::UnderReplicated => {
            let answer = connection.ask(Method::GET, "/admin/v2/under-replicated").await?;
            Ok(tell(format, &answer, || ledger_table(&answer)))
        }
    }
}

fn bookie_table(answer: &Value) -> String {
    let rows: Vec<Vec<String>> = answer
        .as_array()
        .into_iter()
        .flatten()
        .map(|row| ["bookie", "address", "state", "registered"].map(|name| field(row, name)).into())
        .collect();
    table(&["bookie", "address", "state", "registered"], &rows)
}

fn ledger_table(answer: &Value) -> String {
    let ledgers = answer.as_array().map(Vec::as_slice).unwrap_or_default();
    if ledgers.is_empty() {
        return "every ledger has all its copies".to_owned();
    }
    let flaws = |row: &Value| {
        let flaws = row.get("flaws").and_then(Value::as_array).into_iter().flatten();
        let words: Vec<String> = flaws
            .map(|flaw| format!("{} {}", field(flaw, "bookie"), field(flaw, "kind")))
            .collect();
        words.join(", ")
    };
    let rows: Vec<Vec<String>> = ledgers
        .iter()
        .map(|row| {
            let copied = format!("{} / {}", field(row, "entriesCopied"), field(row, "bytesCopied"));
            vec![field(row, "ledger"), flaws(row), field(row, "repairedBy"), copied]
        })
        .collect();
    table(&["ledger", "flaws", "repaired by", "entries / bytes copied"], &rows)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn answers_become_tables() {
        let answer =
            json!([{"bookie": "0a", "address": null, "state": "serving", "registered": true}]);
        let text = bookie_table(&answer);
        assert_eq!(text.lines().nth(1), Some("0a      -        serving  true"));
        let answer = json!([{"ledger": 7, "flaws": [{"bookie": "0a", "kind": "lost"}],
            "repairedBy": null, "entriesCopied": 1, "bytesCopied": 2}]);
        assert!(ledger_table(&answer).contains("0a lost"), "{}", ledger_table(&answer));
        assert_eq!(ledger_table(&json!([])), "every ledger has all its copies");
    }
}
