//! Protects the gate itself: the same seed gives the same run, bit for bit, and seeds differ.

use seawall::runtime::sim::{Recorder, RecordingLimits};
use seawall::simulator::cuts::Cuts;
use seawall::simulator::plan::Topology;
use seawall::simulator::report::Report;
use seawall::simulator::trial::Trial;
use seawall::simulator::workloads::Workload;

fn hash(seed: u64, topology: Topology) -> (String, u64) {
    let report = report(&Trial::new(seed, topology));
    (report.hash, report.events)
}

fn report(trial: &Trial) -> Report {
    let trial = trial.clone();
    let seed = trial.seed;
    let run = std::thread::spawn(move || seawall::simulator::run(&trial, false).0);
    let report = run.join().unwrap();
    assert_eq!(report.violations, [], "seed {seed}");
    report
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

/// What shrinking leaves out is left out, and nothing else.
#[test]
fn cuts_do_what_they_say() {
    let whole = Trial::new(7, Topology::Standalone);
    let of = |cuts: Cuts| report(&Trial { cuts, ..whole.clone() });
    let kinds = |report: &Report| -> Vec<_> {
        report.strikes.iter().map(|strike| (strike.number, strike.kind)).collect()
    };
    let (before, other) = (of(Cuts::default()), of(Cuts { timing: Some(1), ..Cuts::default() }));
    assert_ne!(before.hash, other.hash, "other latencies are another run");
    assert_eq!(kinds(&before), kinds(&other), "with the same strikes");

    let idle = [Workload::Rewind, Workload::Damage, Workload::Registers].into();
    let sends = [(1, 3), (1, 4), (2, 0)].into_iter().collect();
    let topics = Some(1);
    let few = of(Cuts { idle, topics, sends: Some(sends), consumes_late: true, ..Cuts::default() });
    let published: u64 = few.publishes.iter().sum();
    // One more proves that the topic takes messages again; a strike may keep the others from being sent at all.
    assert!((1..=3 + 3).contains(&published), "{published} messages");
    assert!(before.publishes.iter().sum::<u64>() > 100);
    assert!(few.deliveries >= published, "everything is consumed after the heal");
}

#[test]
fn the_same_seed_is_the_same_run() {
    for topology in [Topology::Standalone, Topology::Cluster] {
        let first = hash(1, topology);
        assert_eq!(first, hash(1, topology));
        assert_ne!(first, hash(2, topology));
    }
}
