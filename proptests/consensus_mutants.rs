//! Planted bugs of consensus: each must be caught by the exploration or by a storm. A planted bug is
//! switched on for the life of a process, so each is hunted in a process of its own.
#![cfg(feature = "mutants")]
#![allow(
    clippy::disallowed_methods,
    reason = "a test that starts itself again, once for each planted bug"
)]

use std::panic::catch_unwind;
use std::process::{Command, Stdio};

use crate::consensus_exploration::hunt as explore;
use crate::consensus_model::{calm, figure_eight, storm};
use seawall::simulator::mutant_list::median;

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
    ("M11", false),
    ("M19", true),
    ("M-install-members", false),
    ("M-joint", false),
    ("M-old-term", false),
    ("M-read", true),
    ("M-snapshot-members", false),
    ("M-stale-vote", false),
    ("M-truncate", false),
    ("M-unsynced-append", false),
    ("P8", false),
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

fn storms(first: u64) -> Option<String> {
    if first == 0
        && let Err(violation) = figure_eight()
    {
        return Some(format!("figure eight: {}", violation.0));
    }
    for seed in first..first + STORMS {
        let nodes = if seed % 2 == 0 { 3 } else { 5 };
        let one = || storm(nodes, &[1, 2, 3], &script(seed)).and_then(|mut world| calm(&mut world));
        match catch_unwind(one) {
            Ok(Ok(_)) => {}
            Ok(Err(violation)) => return Some(format!("storm {seed}: {}", violation.0)),
            Err(_) => return Some(format!("storm {seed}: a broken invariant")),
        }
    }
    None
}

/// Run as a child.
#[test]
#[ignore = "hunts the planted bug that a variable names"]
fn child() {
    let task = std::env::var(VARIABLE).unwrap_or_default();
    let (name, how) = task.split_once(' ').unwrap_or((&task, ""));
    seawall::invariant::mutants::activate(name);
    let caught = match how {
        "explored" => explore(),
        first => storms(first.parse().unwrap_or(0)),
    };
    match caught {
        Some(how) => panic!("caught: {how}"),
        None => println!("{name} escaped"),
    }
}

/// What a child that hunts this bug said, and whether it was caught.
fn hunt(name: &str, how: &str) -> (String, bool) {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "consensus_mutants::child", "--ignored", "--nocapture"])
        .env(VARIABLE, format!("{name} {how}"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    (String::from_utf8_lossy(&output.stderr).into_owned(), !output.status.success())
}

fn is_caught(name: &str, explored: bool) -> bool {
    let (text, caught) = hunt(name, if explored { "explored" } else { "" });
    let why = text.lines().find(|line| line.contains("caught:") || line.contains("violated"));
    println!("{name} (explored: {explored}): {}", why.unwrap_or("escaped"));
    caught
}

/// The table of `docs/internals/mutants.md`: storms until caught, the median of five hunts that begin elsewhere. The
/// scripted Figure 8 does not count here.
#[test]
#[ignore = "prints a table, asserts nothing that the others do not"]
fn how_soon() {
    for (name, _) in PLANTED {
        let storms = |hunted: u64| {
            let first = hunted * 100_000;
            let (text, _) = hunt(name, &first.to_string());
            let storm = text.split("caught: storm ").nth(1)?.split(':').next()?;
            Some(storm.parse::<u64>().ok()? - first + 1)
        };
        let median = median((1..=5).map(storms).collect());
        let storms = median.map_or("escaped".to_owned(), |storms| storms.to_string());
        println!("| {name} | `proptests/consensus_mutants.rs` | {storms} |");
    }
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
