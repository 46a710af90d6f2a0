//! Planted bugs: real bugs of other systems, switched on one at a time to prove that the simulator
//! would have caught them. Without the `mutants` feature `is_active` is constant false.

#[cfg(feature = "mutants")]
static ACTIVE: std::sync::OnceLock<String> = std::sync::OnceLock::new();

/// Names the planted bug of a process that never calls `activate`, such as a test.
pub const VARIABLE: &str = "SEAWALL_MUTANT";

/// True when the planted bug of this name was activated in this process.
#[cfg(feature = "mutants")]
#[allow(
    clippy::disallowed_methods,
    reason = "planted bugs are in no binary that serves, and a test process has no other way in"
)]
pub fn is_active(name: &str) -> bool {
    let active = ACTIVE.get_or_init(|| std::env::var(VARIABLE).unwrap_or_default());
    active == name
}

/// Without the feature no planted bug can be active.
#[cfg(not(feature = "mutants"))]
#[inline(always)]
pub const fn is_active(_name: &str) -> bool {
    false
}

/// Activates one planted bug for the life of the process, before any is asked for. The second call is
/// ignored.
#[cfg(feature = "mutants")]
pub fn activate(name: &str) {
    let _ = ACTIVE.set(name.to_owned());
}
