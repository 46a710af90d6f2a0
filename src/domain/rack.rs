//! The fault domain of a bookie: what shares its power, switch or zone.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Longest name, bytes.
pub const RACK_BYTES_MAX: usize = 128;

/// A rack, zone or whatever else fails as one. Bookies that were told none share the empty one.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Rack(Arc<str>);

/// Not the name of a rack.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a rack: up to {RACK_BYTES_MAX} letters, digits and any of - _ . : /")]
pub struct RackError(String);

impl Rack {
    /// A rack by its name.
    pub fn new(name: &str) -> Result<Self, RackError> {
        let fits = name.len() <= RACK_BYTES_MAX;
        let is_good = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:/".contains(&byte);
        if !fits || !name.bytes().all(is_good) {
            let shown: String = name.chars().take(RACK_BYTES_MAX).collect();
            return Err(RackError(shown));
        }
        Ok(Self(name.into()))
    }
}

impl TryFrom<String> for Rack {
    type Error = RackError;

    fn try_from(name: String) -> Result<Self, RackError> {
        Self::new(&name)
    }
}

impl From<Rack> for String {
    fn from(rack: Rack) -> Self {
        rack.0.as_ref().to_owned()
    }
}

impl fmt::Display for Rack {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}
