//! What is wrong with a configuration, in words that let a person put it right: which key, which value, where
//! it was said, why not, and what is allowed.

use std::fmt;
use std::path::PathBuf;

/// Where a value was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Nowhere.
    Default,
    /// In the file.
    File {
        /// Which.
        path: PathBuf,
        /// Its line, from 1.
        line: usize,
    },
    /// By an environment variable.
    Variable(String),
    /// On the command line.
    Flag(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => formatter.write_str("default"),
            Self::File { path, line } => write!(formatter, "{}:{line}", path.display()),
            Self::Variable(name) => write!(formatter, "variable {name}"),
            Self::Flag(name) => write!(formatter, "flag {name}"),
        }
    }
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Problem {
    /// The file cannot be read.
    #[error("{path}: {reason}", path = path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// The operating system's words.
        reason: String,
    },
    /// The file is not TOML.
    #[error("{origin}: not TOML: {reason}")]
    NotToml {
        /// Where.
        origin: Origin,
        /// The parser's words.
        reason: String,
    },
    /// There is no such key.
    #[error("{origin}: unknown key {key}{}", suggestion_words(.suggestion))]
    UnknownKey {
        /// Where.
        origin: Origin,
        /// The key with its section.
        key: String,
        /// What was meant, if anything is like it.
        suggestion: Option<String>,
    },
    /// A value that cannot be used.
    #[error("{origin}: {key} = {value}: {reason}; allowed: {allowed}")]
    BadValue {
        /// Where.
        origin: Origin,
        /// The key with its section.
        key: String,
        /// As it was written.
        value: String,
        /// Why not.
        reason: String,
        /// What could be said instead.
        allowed: String,
    },
}

fn suggestion_words(suggestion: &Option<String>) -> String {
    suggestion.as_ref().map(|key| format!("; did you mean {key}?")).unwrap_or_default()
}

/// Everything that is wrong with a configuration.
#[derive(Debug, thiserror::Error)]
#[error("{}", lines(.0))]
pub(crate) struct Problems(pub(crate) Vec<Problem>);

fn lines(problems: &[Problem]) -> String {
    let lines: Vec<String> = problems.iter().map(Problem::to_string).collect();
    lines.join("\n")
}

/// The known key most like an unknown one, if one is like it at all.
pub(crate) fn nearest<'a>(key: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    let own = last_part(key);
    let mut best: Option<(usize, &str)> = None;
    for candidate in known {
        // The right word in the wrong section is as good as a near miss in the right one.
        let whole = distance(key, candidate);
        let distance = whole.min(1 + distance(own, last_part(candidate)));
        if best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    let limit = own.len().div_ceil(3).max(2);
    best.filter(|(distance, _)| *distance <= limit).map(|(_, key)| key.to_owned())
}

fn last_part(key: &str) -> &str {
    key.rsplit('.').next().unwrap_or(key)
}

/// Levenshtein's: letters to change, add or drop.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (above, letter) in left.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = above + 1;
        for (at, other) in right.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *other);
            diagonal = row[at + 1];
            row[at + 1] = replaced.min(diagonal + 1).min(row[at] + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_meant_is_found() {
        let known = ["data", "pulsar.port", "http.port", "bookie.write_cache_bytes"];
        let meant = |key| nearest(key, known.into_iter());
        assert_eq!(meant("pulsar.prot").as_deref(), Some("pulsar.port"));
        assert_eq!(meant("broker.write_cache_bytes").as_deref(), Some("bookie.write_cache_bytes"));
        assert_eq!(meant("bookie.write_cash_bytes").as_deref(), Some("bookie.write_cache_bytes"));
        assert_eq!(meant("dta").as_deref(), Some("data"));
        assert_eq!(meant("something.else_altogether"), None);
    }
}
