//! `seawall config`: look at the configuration without starting anything.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::output::{complain, say};
use super::{FAILED, GOOD, USAGE, settings};

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
    /// Example: seawall config check seawall.toml
    Check {
        /// The TOML file.
        file: Option<PathBuf>,
    },
    /// Print every key with the value in effect, as TOML.
    ///
    /// Example: seawall config show seawall.toml
    Show {
        /// The TOML file.
        file: Option<PathBuf>,
    },
}

/// Performs the command.
pub(super) fn configuration(command: &ConfigCommand) -> u8 {
    let (file, is_shown) = match &command.action {
        Action::Check { file } => (file, false),
        Action::Show { file } => (file, true),
    };
    let loaded = settings::load(file.as_deref())
        .and_then(|settings| settings::check(&settings).map(|()| settings));
    let settings = match loaded {
        Ok(settings) => settings,
        Err(error) => {
            complain(&error);
            return USAGE;
        }
    };
    let text = if is_shown {
        match toml::to_string(&settings) {
            Ok(text) => text,
            Err(error) => {
                complain(&error);
                return FAILED;
            }
        }
    } else {
        "good".to_owned()
    };
    if say(&text.trim_end()) { GOOD } else { FAILED }
}
