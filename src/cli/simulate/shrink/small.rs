//! Small runs of other seeds: some hundred of them fit into the time of a few large ones.

use std::time::Duration;

use crate::runtime::mix;
use crate::simulator::cuts::Cuts;
use crate::simulator::plan::Plan;
use crate::simulator::steps::Steps;
use crate::simulator::trial::Trial;

/// Small runs that are tried afresh: messages of each producer (and calls of each client of metadata), and strikes.
pub(super) const SMALL: [(u64, u64); 4] = [(1, 1), (3, 1), (4, 2), (8, 3)];
/// A client of metadata asks about every so many milliseconds.
const REGISTER_PAUSE_MS: u64 = 80;

/// A run in which few messages are sent, in half of all cases the first ones and else at some moment, and few strikes come.
pub(super) fn small_trial(trial: &Trial, (steps, strikes): (u64, u64)) -> Trial {
    let (seed, whole) = (trial.seed, Plan::of(&Trial { cuts: Cuts::default(), ..trial.clone() }));
    let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    // Strikes come after the first interval, up to two intervals apart.
    let storm_ms = millis(whole.fault_interval).saturating_mul(2 * strikes + 1);
    let storm_ms = storm_ms.min(millis(whole.safety_phase));
    let window = |clients: std::ops::Range<u64>, pause_ms: u64| -> Steps {
        let room = storm_ms / pause_ms.max(1) + 1;
        clients
            .flat_map(|client| {
                let from = match seed % 2 {
                    0 => mix(mix(seed) ^ client) % room,
                    // While everything is being opened much comes at once.
                    _ => 0,
                };
                (from..from + steps).map(move |step| (client, step))
            })
            .collect()
    };
    let mut trial = trial.clone();
    let plan = Plan::of(&trial);
    let producers = u64::from(plan.topics) * u64::from(plan.producers);
    let cuts = &mut trial.cuts;
    cuts.storm_ms = Some(storm_ms);
    cuts.strikes = Some((1..=strikes).collect());
    // Half of them without acknowledgements in between.
    cuts.consumes_late |= mix(!seed).is_multiple_of(2);
    cuts.messages = None;
    cuts.sends = Some(window(1..producers + 1, millis(whole.publish_interval)));
    cuts.register_calls = None;
    cuts.calls = Some(window(0..plan.register_clients.into(), REGISTER_PAUSE_MS));
    trial
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulator::plan::Topology;

    #[test]
    fn a_small_run_has_few_of_everything_and_keeps_the_settings() {
        let trial = Trial::new(4, Topology::Swarm);
        let whole = Plan::of(&trial);
        for (seed, size) in (5..50).zip(SMALL.iter().cycle()) {
            let other = Trial { seed, settings: Some(4), ..trial.clone() };
            let small = small_trial(&other, *size);
            assert_eq!((small.seed, small.settings), (seed, Some(4)));
            let plan = Plan::of(&small);
            assert_eq!(plan.shape, whole.shape);
            assert!(plan.safety_phase <= whole.safety_phase);
            let sends = plan.sends.map_or(0, |sends| sends.each().count()) as u64;
            assert_eq!(sends, u64::from(plan.topics * plan.producers) * size.0);
            assert_eq!(plan.strikes.map(|strikes| strikes.len() as u64), Some(size.1));
        }
    }
}
