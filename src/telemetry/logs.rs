//! Where logs go: to standard error, filtered, as lines or as JSON.

use tracing_subscriber::EnvFilter;

/// How logs are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// A line for a person.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// Logs could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The filter does not parse.
    #[error("log filter {filter:?}: {detail}")]
    Filter {
        /// As given.
        filter: String,
        /// The parser's words.
        detail: String,
    },
    /// A subscriber is set already in this process.
    #[error("logs are set up already")]
    Repeated,
}

/// Sends logs of this process to standard error. `filter` has the form `info,seawall::broker=debug`.
/// Called once, by the command line; libraries and tests only emit.
pub fn start(filter: &str, format: LogFormat) -> Result<(), LogError> {
    let parsed = EnvFilter::try_new(filter).map_err(|error| LogError::Filter {
        filter: filter.to_owned(),
        detail: error.to_string(),
    })?;
    let builder = tracing_subscriber::fmt().with_env_filter(parsed).with_writer(std::io::stderr);
    let set = match format {
        LogFormat::Text => builder.with_ansi(false).try_init(),
        LogFormat::Json => builder.json().try_init(),
    };
    set.map_err(|_| LogError::Repeated)
}
