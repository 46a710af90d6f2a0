//! The configuration of a node: defaults, then the file, then the environment, then flags. Every key has a
//! default; a key that is not known is an error.

mod check;
mod node_config;
mod problem;
mod sections;
mod source;

pub(super) use problem::{Problem, Problems};
pub(super) use sections::{RoleName, Settings};
pub(super) use source::{Effective, Source, flatten};
