//! How fast the simulator is on the loaded cluster: virtual seconds of the whole cluster and facts checked, for a second of
//! one core. Machines differ and are shared, so it is held against a fixed piece of work done in the same run.

use std::collections::BTreeMap;
use std::time::Instant;

use clap::Args;

use super::child::{run_apart, thread_cpu_ms};
use super::seeds::Seeds;
use crate::cli::output::{complain, say};
use crate::cli::{FAILED, GOOD, USAGE};
use crate::runtime::mix;
use crate::simulator::plan::Topology;
use crate::simulator::trial::Trial;

#[derive(Debug, Args)]
pub(super) struct SpeedOptions {
    /// Seeds to run, one after the other.
    #[arg(long, default_value = "0..6")]
    seeds: Seeds,
    /// Fail if it is less than half of what was recorded, against the reference work.
    #[arg(long)]
    check: bool,
}

/// Virtual seconds simulated while the reference work is done once, as measured when this was last looked at (2026-11-30).
const RECORDED: f64 = 26.0;
/// What may be lost of that before it counts as a regression, percent.
const LOSS_MAX_PERCENT: f64 = 50.0;
/// Rounds of the reference work: about a second of a core.
const REFERENCE_ROUNDS: u64 = 10_000_000;
/// Keys of its map.
const REFERENCE_KEYS: u64 = 4096;
/// Bytes of one of its buffers.
const REFERENCE_BYTES: usize = 128;

/// Work of the kinds that a run consists of: an ordered map, small buffers, checksums. The answer depends on all of it.
fn reference_work() -> u64 {
    let mut map: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
    let mut answer = 0;
    for round in 0..REFERENCE_ROUNDS {
        let key = mix(round) % REFERENCE_KEYS;
        let buffer = vec![round as u8; REFERENCE_BYTES];
        answer ^= u64::from(crc32c::crc32c(&buffer));
        if let Some(before) = map.insert(key, buffer) {
            answer = answer.wrapping_add(before.len() as u64);
        }
    }
    answer ^ map.len() as u64
}

/// Milliseconds of a core's time that it takes.
fn time_reference() -> Option<u64> {
    let timed = std::thread::spawn(|| {
        let started = Instant::now();
        let answer = reference_work();
        let real = u64::try_from(started.elapsed().as_millis()).ok();
        (answer != 0).then_some(thread_cpu_ms().or(real)).flatten()
    });
    timed.join().ok().flatten().filter(|ms| *ms > 0)
}

pub(super) fn run(options: &SpeedOptions) -> u8 {
    let Some(before) = time_reference() else {
        complain(&"the reference work could not be timed");
        return USAGE;
    };
    let (mut virtual_ms, mut cpu_ms, mut checked, mut events, mut failed) = (0, 0, 0, 0, 0);
    let (mut committed, mut delivered) = (0, 0);
    for seed in options.seeds.0.clone() {
        let report = run_apart(&Trial::new(seed, Topology::Loaded));
        failed += u64::from(!report.violations.is_empty());
        virtual_ms += report.virtual_ms;
        cpu_ms += report.cpu_ms;
        checked += report.compared.values().sum::<u64>();
        events += report.events;
        committed += report.publishes[0];
        delivered += report.deliveries;
    }
    let after = time_reference().unwrap_or(before);
    let reference_ms = (before + after) as f64 / 2.0;
    let cpu_ms = cpu_ms.max(1) as f64;
    let speed = virtual_ms as f64 / cpu_ms;
    let ratio = speed * reference_ms / 1000.0;
    let per_second = |count: u64| count as f64 * 1000.0 / cpu_ms;
    say(&format!(
        "{} seeds on the loaded cluster, {failed} failed\n\
         {speed:.0} virtual cluster-seconds, {:.0} facts checked, {:.0} messages committed, {:.0} delivered and {:.0} events \
         per core-second\n\
         reference work {reference_ms:.0} ms; {ratio:.1} virtual cluster-seconds meanwhile, {RECORDED:.1} when recorded",
        options.seeds.0.end - options.seeds.0.start,
        per_second(checked),
        per_second(committed),
        per_second(delivered),
        per_second(events),
    ));
    if failed > 0 {
        return FAILED;
    }
    if options.check && is_regression(ratio) {
        complain(&format_args!(
            "the simulator has become slower: {ratio:.1} is more than {LOSS_MAX_PERCENT} % below {RECORDED:.1}"
        ));
        return FAILED;
    }
    GOOD
}

fn is_regression(ratio: f64) -> bool {
    ratio < RECORDED * (100.0 - LOSS_MAX_PERCENT) / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_the_speed_is_a_regression_and_a_little_less_is_not() {
        assert!(!is_regression(RECORDED * 2.0) && !is_regression(RECORDED * 0.6));
        assert!(is_regression(RECORDED * 0.4));
    }
}
