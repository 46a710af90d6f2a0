//! Runs that failed once with a bug and were made small by `sim shrink`, as it prints them. A seed means such a run only
//! until the code it goes through changes: what is to stay is told again as a scenario, in words.

use crate::support::keeps_every_promise;

/// Seed 7, made small. P1 broken (no_acknowledged_loss): message 598 of persistent://public/default/t0
/// was acknowledged at 1:206:0; the log has nothing there
/// Replay: seawall sim replay 7 --topology standalone --profile swarm --mutant S8 --cuts
/// '{"storm_ms":4750,"messages":159}'
/// It fails with SEAWALL_MUTANT=S8.
/// Strike 1, at 2082 ms: slow_link.
/// Strike 2, at 4785 ms: power_loss.
#[test]
fn seed_7_and_no_acknowledged_loss() {
    keeps_every_promise(
        r#"{"seed":7,"topology":"standalone","profile":"swarm","cuts":{"storm_ms":4750,"messages":159}}"#,
    );
}
