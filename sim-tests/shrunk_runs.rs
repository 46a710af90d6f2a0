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

/// Seed 2528, made small. P4 broken (subscription_repeats_nothing):
/// persistent://public/default/t0/shared got 26:0:-1 again in session 11, 490 ms after its
/// acknowledgement was durable; the session was asked for at 21425 ms, its first delivery came at 21592
/// ms
/// Replay: seawall sim replay 2528 --topology swarm --profile swarm --mutant B-stale-loader --cuts
/// '{"strikes":[9,15],"idle":["damage","registers"],"storm_ms":20626,"timing":4,"receiver_queue":2,"ledger_entries":2,"register_clients":1,"messages":106,"sends":{"2":[[53,54],[81,87],[94,95],[99,106]]},"register_calls":0}'
/// It fails with SEAWALL_MUTANT=B-stale-loader.
/// Strike 9, at 8885 ms: power_loss.
/// Strike 15, at 14852 ms: pause.
#[test]
fn seed_2528_and_subscription_repeats_nothing() {
    keeps_every_promise(
        r#"{"seed":2528,"topology":"swarm","profile":"swarm","cuts":{"strikes":[9,15],"idle":["damage","registers"],"storm_ms":20626,"timing":4,"receiver_queue":2,"ledger_entries":2,"register_clients":1,"messages":106,"sends":{"2":[[53,54],[81,87],[94,95],[99,106]]},"register_calls":0}}"#,
    );
}
