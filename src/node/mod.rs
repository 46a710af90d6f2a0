//! Puts parts together, the same for production and simulation.

/// Bookies in metadata: cookies, registration, the pool of clients, the list of ledgers.
pub mod bookie_registry;
