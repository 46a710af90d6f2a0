//! Protects the gate itself: the same seed gives the same run, bit for bit, and seeds differ.

use seawall::simulator::plan::Topology;
use seawall::simulator::trial::Trial;

fn hash(seed: u64, topology: Topology) -> (String, u64) {
    let trial = Trial::new(seed, topology);
    let run = std::thread::spawn(move || seawall::simulator::run(&trial, false).0);
    let report = run.join().unwrap();
    assert_eq!(report.violations, [], "seed {seed}");
    (report.hash, report.events)
}

#[test]
fn the_same_seed_is_the_same_run() {
    for topology in [Topology::Standalone, Topology::Cluster] {
        let first = hash(1, topology);
        assert_eq!(first, hash(1, topology));
        assert_ne!(first, hash(2, topology));
    }
}
