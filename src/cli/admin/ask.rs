//! One request to a node's HTTP port, sent on to where the node says.

use std::time::Duration;

use http::{Method, StatusCode};
use serde_json::Value;

use crate::frontend::admin::exchange_for;
use crate::runtime::Runtime;

/// Longest wait for an answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(70);
/// Brokers asked one after the other.
const REDIRECTIONS_MAX: usize = 5;

/// Why not.
#[derive(Debug, thiserror::Error)]
pub(super) enum AdminError {
    /// The arguments are wrong.
    #[error("{0}")]
    Usage(String),
    /// No answer.
    #[error("{url}: {reason}")]
    Unreachable {
        /// Who was asked.
        url: String,
        /// What went wrong.
        reason: String,
    },
    /// The cluster said no.
    #[error("{reason} ({status})")]
    Refused {
        /// HTTP's word for it.
        status: StatusCode,
        /// The cluster's words.
        reason: String,
    },
    /// The answer is not what was expected.
    #[error("{url} answered something else: {reason}")]
    Unreadable {
        /// Who was asked.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
}

/// A node to ask.
pub(super) struct Connection {
    runtime: Runtime,
    url: String,
}

impl Connection {
    /// Checks the URL; nothing is connected yet.
    pub(super) fn new(runtime: Runtime, url: &str) -> Result<Self, AdminError> {
        let url = url.trim_end_matches('/');
        let address = url.strip_prefix("http://").unwrap_or(url);
        if address.contains('/') || !address.contains(':') {
            return Err(AdminError::Usage(format!("{url}: expected http://host:port")));
        }
        Ok(Self { runtime, url: format!("http://{address}") })
    }

    /// Asks; the answer is JSON or nothing.
    pub(super) async fn ask(&self, method: Method, path: &str) -> Result<Value, AdminError> {
        let (mut http, mut path) = (self.url.clone(), path.to_owned());
        for _ in 0..=REDIRECTIONS_MAX {
            let asking = exchange_for(&self.runtime, method.clone(), &http, &path);
            let answer = match self.runtime.clock.timeout(ANSWER_LIMIT, asking).await {
                Ok(Ok(answer)) => answer,
                Ok(Err(reason)) => return Err(AdminError::Unreachable { url: http, reason }),
                Err(late) => {
                    return Err(AdminError::Unreachable { url: http, reason: late.to_string() });
                }
            };
            if let Some(location) = answer.location.filter(|_| answer.status.is_redirection()) {
                let rest = location.strip_prefix("http://").unwrap_or(&location);
                let (host, rest) = rest.split_once('/').unwrap_or((rest, ""));
                (http, path) = (format!("http://{host}"), format!("/{rest}"));
                continue;
            }
            if !answer.status.is_success() {
                let status = answer.status;
                return Err(AdminError::Refused { status, reason: reason_in(&answer.body) });
            }
            if answer.body.is_empty() {
                return Ok(Value::Null);
            }
            return serde_json::from_slice(&answer.body)
                .map_err(|error| AdminError::Unreadable { url: http, reason: error.to_string() });
        }
        let reason = format!("sent on more than {REDIRECTIONS_MAX} times");
        Err(AdminError::Unreachable { url: self.url.clone(), reason })
    }
}

/// `{"reason": "…"}`, or the body as it is.
fn reason_in(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body).into_owned();
    let reason = serde_json::from_slice::<Value>(body)
        .ok()
        .and_then(|value| value.get("reason").and_then(Value::as_str).map(str::to_owned));
    reason.unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_read_from_what_is_answered() {
        assert_eq!(reason_in(b"{\"reason\": \"no\"}"), "no");
        assert_eq!(reason_in(b"plain"), "plain");
    }
}
