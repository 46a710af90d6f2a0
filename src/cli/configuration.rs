//! `seawall config`: look at the configuration without starting anything.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde::Serialize;
use toml::Table;

use super::output::{OutputFormat, OutputOption, complain, say, say_json};
use super::settings::{Effective, Source, flatten};
use super::{FAILED, GOOD, USAGE};

/// The configuration.
#[derive(Debug, Args)]
pub(super) struct ConfigCommand {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Say whether the file and the environment are good; exit code 2 if not.
    ///
    /// Everything that is wrong is told: where, which key, which value, why, and what is allowed.
    ///
    /// Example: seawall config check seawall.toml
    Check {
        /// The TOML file.
        file: Option<PathBuf>,
    },
    /// Print every key with the value in effect, as TOML, and where each was said.
    ///
    /// Example: seawall config show seawall.toml
    Show {
        /// The TOML file.
        file: Option<PathBuf>,
        #[command(flatten)]
        output: OutputOption,
    },
}

/// A key for a script.
#[derive(Serialize)]
struct KeyJson<'a> {
    key: &'a str,
    value: &'a toml::Value,
    from: String,
}

/// Performs the command.
pub(super) fn configuration(command: &ConfigCommand) -> u8 {
    let (Action::Check { file } | Action::Show { file, .. }) = &command.action;
    let effective = match Source::read(file.as_deref()).finish() {
        Ok(effective) => effective,
        Err(problems) => {
            for problem in &problems.0 {
                complain(problem);
            }
            return USAGE;
        }
    };
    let is_told = match &command.action {
        Action::Check { .. } => say(&format!("good: {}", kind_of(&effective))),
        Action::Show { output, .. } => show(&effective, output.format),
    };
    if is_told { GOOD } else { FAILED }
}

/// Which kind of node this is the configuration of.
fn kind_of(effective: &Effective) -> String {
    if effective.settings.is_standalone() {
        return "a standalone node".to_owned();
    }
    let roles: Vec<String> =
        effective.settings.roles.iter().map(|role| format!("{role:?}").to_lowercase()).collect();
    format!("a node of a cluster, {}", roles.join(", "))
}

fn show(effective: &Effective, format: OutputFormat) -> bool {
    let table = match Table::try_from(&effective.settings) {
        Ok(table) => table,
        Err(error) => {
            complain(&error);
            return false;
        }
    };
    let mut keys = Vec::new();
    flatten(&table, "", &mut |key, value| keys.push((key, value.clone())));
    // Plain keys first: in TOML what follows a section's heading belongs to it.
    keys.sort_by_key(|(key, _)| key.contains('.'));
    match format {
        OutputFormat::Json => keys.iter().all(|(key, value)| {
            say_json(&KeyJson { key, value, from: effective.origin(key).to_string() })
        }),
        OutputFormat::Table => {
            let mut section = "";
            keys.iter().all(|(key, value)| {
                let (of, name) = key.split_once('.').unwrap_or(("", key));
                let is_new = of != section;
                section = of;
                let line = format!("{name} = {value}");
                (!is_new || say(&format!("\n[{of}]")))
                    && say(&format!("{line:<44} # {}", effective.origin(key)))
            })
        }
    }
}
