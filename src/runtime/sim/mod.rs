//! Simulation: one seed, one thread, many nodes.
