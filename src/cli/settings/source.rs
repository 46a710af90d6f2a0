//! Where settings come from: a TOML file and variables `SEAWALL_<SECTION>_<KEY>`.
#![allow(
    clippy::disallowed_methods,
    reason = "configuration is read in this one place, before there is a runtime"
)]

use std::path::{Path, PathBuf};

use toml::{Table, Value};

use super::Settings;

/// The configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SettingsError {
    /// The file cannot be read.
    #[error("{path}: {source}", path = path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// The operating system's words.
        source: std::io::Error,
    },
    /// The file is not TOML, or has an unknown key or a value of the wrong kind.
    #[error("{path}: {detail}", path = path.display())]
    Invalid {
        /// Which.
        path: PathBuf,
        /// The parser's words, with the line.
        detail: String,
    },
    /// A variable has a value of the wrong kind.
    #[error("environment variable {name}: {detail}")]
    Environment {
        /// Which.
        name: String,
        /// What is wrong.
        detail: String,
    },
    /// Values that do not go together.
    #[error("{0}")]
    Conflict(String),
}

/// Defaults, overridden by the file (if any), overridden by the environment. Not checked: flags may follow.
pub(crate) fn load(file: Option<&Path>) -> Result<Settings, SettingsError> {
    let from_file = match file {
        None => Settings::default(),
        Some(path) => {
            let text = std::fs::read_to_string(path)
                .map_err(|source| SettingsError::Unreadable { path: path.to_owned(), source })?;
            toml::from_str(&text).map_err(|error| SettingsError::Invalid {
                path: path.to_owned(),
                detail: error.to_string(),
            })?
        }
    };
    override_by(from_file, &|name| std::env::var(name).ok())
}

/// Overrides each key by the variable named after it.
fn override_by(
    settings: Settings,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Settings, SettingsError> {
    let conflict = |error: &dyn std::fmt::Display| SettingsError::Conflict(error.to_string());
    let mut table = Table::try_from(&settings).map_err(|error| conflict(&error))?;
    override_table(&mut table, "SEAWALL", variable)?;
    table.try_into().map_err(|error: toml::de::Error| SettingsError::Environment {
        name: "SEAWALL_…".to_owned(),
        detail: error.message().to_owned(),
    })
}

fn override_table(
    table: &mut Table,
    prefix: &str,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<(), SettingsError> {
    for (key, value) in table.iter_mut() {
        let name = format!("{prefix}_{}", key.to_uppercase());
        if let Value::Table(section) = value {
            override_table(section, &name, variable)?;
        } else if let Some(text) = variable(&name) {
            *value = parse_like(value, &text)
                .map_err(|detail| SettingsError::Environment { name, detail })?;
        }
    }
    Ok(())
}

/// Text as a value of the same kind as `model`.
fn parse_like(model: &Value, text: &str) -> Result<Value, String> {
    match model {
        Value::Integer(_) => {
            text.trim().parse().map(Value::Integer).map_err(|error| format!("{text:?}: {error}"))
        }
        Value::Boolean(_) => {
            text.trim().parse().map(Value::Boolean).map_err(|error| format!("{text:?}: {error}"))
        }
        _ => Ok(Value::String(text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_can_be_set_by_a_variable() {
        let variable = |name: &str| match name {
            "SEAWALL_PULSAR_PORT" => Some("7000".to_owned()),
            "SEAWALL_BROKER_TRIM_INTERVAL" => Some("5s".to_owned()),
            "SEAWALL_DATA" => Some("/x".to_owned()),
            _ => None,
        };
        let settings = override_by(Settings::default(), &variable).unwrap();
        assert_eq!(settings.pulsar.port, 7000);
        assert_eq!(settings.broker.trim_interval, std::time::Duration::from_secs(5));
        assert_eq!(settings.data, PathBuf::from("/x"));
        for bad in ["", "x", "70000"] {
            let variable = |name: &str| (name == "SEAWALL_PULSAR_PORT").then(|| bad.to_owned());
            assert!(override_by(Settings::default(), &variable).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn unknown_keys_are_errors() {
        assert!(toml::from_str::<Settings>("[pulsar]\nprot = 1").is_err());
        assert!(toml::from_str::<Settings>("unknown = 1").is_err());
        assert!(toml::from_str::<Settings>("[pulsar]\nport = 1").is_ok());
    }
}
