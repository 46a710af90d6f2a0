//! One binary of model and codec properties.

mod both_conformance;
mod clock_conformance;
mod disk_conformance;
mod index_conformance;
mod network_conformance;
