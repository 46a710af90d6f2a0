//! The configuration of a standalone node: defaults, then the file, then the environment, then flags.
//! Every key has a default; a key that is not known is an error.

mod check;
mod sections;
mod source;

pub(super) use check::check;
pub(super) use sections::Settings;
pub(super) use source::{SettingsError, load};
