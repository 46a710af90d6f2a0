//! Protects the gate itself: the same seed gives the same run, bit for bit, and seeds differ.

use seawall::runtime::sim::{Recorder, RecordingLimits};
use seawall::simulator::plan::Topology;
use seawall::simulator::trial::Trial;

fn hash(seed: u64, topology: Topology) -> (String, u64) {
    let trial = Trial::new(seed, topology);
    let run = std::thread::spawn(move || seawall::simulator::run(&trial, false).0);
    let report = run.join().unwrap();
    assert_eq!(report.violations, [], "seed {seed}");
    (report.hash, report.events)
}

/// A recording writes down and does nothing else.
#[test]
fn a_recorded_run_is_the_same_run() {
    for (seed, topology) in [(1, Topology::Standalone), (5, Topology::Swarm)] {
        let trial = Trial::new(seed, topology);
        let run = std::thread::spawn(move || {
            let recorder = Recorder::within(RecordingLimits::default());
            let (report, run) = seawall::simulator::run_recorded(&trial, false, recorder);
            ((report.hash, report.events), run.recording)
        });
        let (hash_recorded, recording) = run.join().unwrap();
        assert_eq!(hash_recorded, hash(seed, topology), "seed {seed}");
        assert!(recording.records.len() > 1000);
        for record in &recording.records {
            assert!(record.cause < record.number, "{record:?}");
        }
    }
}

#[test]
fn the_same_seed_is_the_same_run() {
    for topology in [Topology::Standalone, Topology::Cluster] {
        let first = hash(1, topology);
        assert_eq!(first, hash(1, topology));
        assert_ne!(first, hash(2, topology));
    }
}
