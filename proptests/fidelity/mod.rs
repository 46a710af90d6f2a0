//! The simulated disk and network against the operating system: the same random operations on both, and whatever
//! the real one does the model has to allow.

mod crash;
mod disk;
mod mounted;
mod network;

use std::sync::atomic::{AtomicU64, Ordering};

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, TestRunner};

/// Runs a property of operations with so many cases and prints how many operations were compared.
fn compare<S: Strategy>(what: &str, cases: u32, strategy: &S, property: impl Fn(S::Value) -> u64) {
    let compared = AtomicU64::new(0);
    let config =
        Config { cases, max_shrink_iters: 200, failure_persistence: None, ..Config::default() };
    let ended = TestRunner::new(config).run(strategy, |operations| {
        compared.fetch_add(property(operations), Ordering::Relaxed);
        Ok(())
    });
    let compared = compared.into_inner();
    println!("{what}: {compared} operations compared");
    if let Err(failure) = ended {
        panic!("{failure}");
    }
    assert!(compared > u64::from(cases), "{what}: only {compared} operations compared");
}

/// Cases of a test run, or as many as the environment asks for.
#[allow(clippy::disallowed_methods, reason = "a test binary has no command line of its own")]
fn cases(of_a_test_run: u32) -> u32 {
    let asked = std::env::var("SEAWALL_FIDELITY_CASES").ok();
    asked.and_then(|asked| asked.parse().ok()).unwrap_or(of_a_test_run)
}
