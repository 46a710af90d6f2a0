//! Planted bugs of consensus: each must be caught by the exploration or by a storm. A planted bug is
//! switched on for the life of a process, so each is hunted in a process of its own.
#![cfg(feature = "mutants")]
#![allow(
    clippy::disallowed_methods,
    reason = "a test that starts itself again, once for each planted bug"
)]

use std::process::{Command, Stdio};

use crate::consensus_exploration::hunt as explore;
use crate::consensus_model::{calm, figure_eight, storm};

/// Says which planted bug the child hunts.
const VARIABLE: &str = "SEAWALL_CONSENSUS_MUTANT";
/// Storms a child tries.
const STORMS: u64 = 4_000;

/// Name, and whether the exploration, with its small bounds, is what must catch it.
const PLANTED: &[(&str, bool)] = &[
    ("M1", true),
    ("M2", false),
    ("M5", true),
    ("M7", false),
    ("M8", false),
    ("M19", true),
    ("M-install-members", false),
    ("M-joint", false),
    ("M-old-term", false),
    ("M-read", true),
    ("M-snapshot-members", false),
    ("M-stale-vote", false),
    ("M-truncate", false),
    ("M-unsynced-append", false),
];

/// The same numbers for the same seed, everywhere.
fn script(seed: u64) -> Vec<(u8, u16, u16)> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    };
    let length = 100 + next() % 500;
    (0..length).map(|_| (next() as u8, next() as u16, next() as u16)).collect()
}

fn storms() -> Option<String> {
    if let Err(violation) = figure_eight() {
        return Some(format!("figure eight: {}", violation.0));
    }
    for seed in 0..STORMS {
        let nodes = if seed % 2 == 0 { 3 } else { 5 };
        let caught = storm(nodes, &[1, 2, 3], &script(seed)).and_then(|mut world| calm(&mut world));
        if let Err(violation) = caught {
            return Some(format!("storm {seed}: {}", violation.0));
        }
    }
    None
}

/// Run as a child. A broken invariant is a panic, which counts as caught.
#[test]
#[ignore = "hunts the planted bug that a variable names"]
fn child() {
    let name = std::env::var(VARIABLE).unwrap_or_default();
    let (name, explored) = name.split_once(' ').unwrap_or((&name, ""));
    seawall::invariant::mutants::activate(name);
    let caught = if explored.is_empty() { storms() } else { explore() };
    match caught {
        Some(how) => panic!("caught: {how}"),
        None => println!("{name} escaped"),
    }
}

fn is_caught(name: &str, explored: bool) -> bool {
    let variable = format!("{name}{}", if explored { " explored" } else { "" });
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "consensus_mutants::child", "--ignored", "--nocapture"])
        .env(VARIABLE, variable)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let why = text.lines().find(|line| line.contains("caught:") || line.contains("violated"));
    println!("{name} (explored: {explored}): {}", why.unwrap_or("escaped"));
    !output.status.success()
}

#[test]
fn each_planted_bug_is_caught() {
    let escaped: Vec<_> =
        PLANTED.iter().filter(|(name, explored)| !is_caught(name, *explored)).collect();
    assert!(escaped.is_empty(), "escaped: {escaped:?}");
}

/// Without a planted bug nothing is caught.
#[test]
fn storms_without_a_planted_bug_pass() {
    for seed in 0..100 {
        let nodes = if seed % 2 == 0 { 3 } else { 5 };
        let mut world = storm(nodes, &[1, 2, 3], &script(seed)).map_err(|found| found.0).unwrap();
        calm(&mut world).map_err(|found| found.0).unwrap();
    }
}

/// Storms without a planted bug, many.
#[test]
#[ignore = "long"]
fn storms_for_a_while() {
    for seed in 1_000_000..1_020_000 {
        let nodes = if seed % 2 == 0 { 3 } else { 5 };
        let mut world = storm(nodes, &[1, 2, 3], &script(seed))
            .map_err(|found| format!("{seed}: {}", found.0))
            .unwrap();
        calm(&mut world).map_err(|found| format!("{seed}: {}", found.0)).unwrap();
    }
}
