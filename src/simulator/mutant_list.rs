//! Every planted bug: its name in the code (`mutant!("…")`), what it is, and the topology it shows on.
//! `tidy` holds this list against the sources.

use super::plan::Topology;

/// A planted bug.
#[derive(Debug)]
pub struct Mutant {
    /// Its name in the code.
    pub name: &'static str,
    /// What it does wrong.
    pub what: &'static str,
    /// The topology it is hunted on.
    pub topology: Topology,
}

const fn on(topology: Topology, name: &'static str, what: &'static str) -> Mutant {
    Mutant { name, what, topology }
}

use Topology::{Cluster, Standalone};

/// Every planted bug.
pub const MUTANTS: &[Mutant] = &[];
