//! Repair against a cluster in memory: while bookies are lost, leave, rot, go away and come back, no record
//! ever names a place without the copies, and in the end every copy is where it must be.

use std::time::Duration;

use bytes::Bytes;
use proptest::prelude::*;
use seawall::ledger::Quorum;
use seawall::ledger::repair::{Flaw, FlawKind, RepairConfig, RepairProgress};
use seawall::metadata::Expect;

use crate::repair_world::{Stage, on_stage};

#[derive(Clone, Debug)]
enum Step {
    Create,
    Append(u8, u8),
    Close(u8),
    Lose,
    Rot(u16),
    Drain(u8),
    /// Away and off the list.
    Away(u8, u16),
    /// Off the list; writers still reach it.
    Unregistered(u8, u16),
    Pass(u16),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => Just(Step::Create),
        10 => (any::<u8>(), 1_u8..12).prop_map(|(ledger, count)| Step::Append(ledger, count)),
        3 => any::<u8>().prop_map(Step::Close),
        1 => Just(Step::Lose),
        1 => any::<u16>().prop_map(Step::Rot),
        1 => any::<u8>().prop_map(Step::Drain),
        2 => (any::<u8>(), 100_u16..6000).prop_map(|(bookie, ms)| Step::Away(bookie, ms)),
        2 => (any::<u8>(), 100_u16..6000).prop_map(|(bookie, ms)| Step::Unregistered(bookie, ms)),
        8 => (10_u16..1500).prop_map(Step::Pass),
    ];
    prop::collection::vec(step, 5..50)
}

fn quorums() -> impl Strategy<Value = Quorum> {
    prop_oneof![Just((3, 3, 2)), Just((4, 3, 2)), Just((5, 3, 2)), Just((4, 2, 2))]
        .prop_map(|(ensemble, write, ack)| Quorum::new(ensemble, write, ack).unwrap())
}

fn config() -> RepairConfig {
    RepairConfig {
        lost_bookie_grace: Duration::from_secs(2),
        open_tail_grace: Duration::from_secs(3),
        audit_interval: Duration::from_secs(1),
        check_interval: Duration::from_secs(4),
        check_samples: 0,
        replicator_interval: Duration::from_millis(500),
        batch_entries: 3,
        batch_bytes: 100,
        bytes_per_second: 0,
        ..RepairConfig::default()
    }
}

async fn play(mut stage: Stage, script: Vec<Step>) {
    stage.start_repair();
    let mut losses = 0;
    let mut has_drained = false;
    for step in script {
        match step {
            Step::Create => _ = stage.create().await,
            Step::Append(ledger, count) => stage.append(ledger.into(), count),
            Step::Close(ledger) => stage.close(ledger.into()).await,
            Step::Lose if losses < 2 => {
                losses += 1;
                stage.lose_victim();
            }
            Step::Rot(which) => stage.rot_victim(which.into()),
            Step::Drain(which) if !has_drained => {
                has_drained = true;
                let bookie = stage.other(which.into());
                stage.drains.begin(bookie).await.unwrap();
                stage.change(bookie, |fake| fake.is_draining = true);
            }
            Step::Away(which, ms) => {
                let bookie = stage.other(which.into());
                stage.change(bookie, |fake| (fake.is_up, fake.is_registered) = (false, false));
                stage.pass(Duration::from_millis(ms.into())).await;
                stage.change(bookie, |fake| (fake.is_up, fake.is_registered) = (true, true));
            }
            Step::Unregistered(which, ms) => {
                let bookie = stage.other(which.into());
                stage.change(bookie, |fake| fake.is_registered = false);
                for part in 0..4 {
                    stage.append(part + usize::from(which), 3);
                    stage.pass(Duration::from_millis(u64::from(ms) / 4)).await;
                    stage.check().await;
                }
                stage.change(bookie, |fake| fake.is_registered = true);
            }
            Step::Pass(ms) => stage.pass(Duration::from_millis(ms.into())).await,
            Step::Lose | Step::Drain(_) => {}
        }
        stage.check().await;
    }
    stage.finish().await;
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn repair_keeps_every_copy_where_the_record_says(
        seed in any::<u64>(),
        quorum in quorums(),
        lazy in prop_oneof![Just(0_u64), Just(10), Just(30)],
        script in steps(),
    ) {
        on_stage(seed, quorum, lazy, config(), move |stage| play(stage, script));
    }
}

/// A closed ledger on bookies that are all well, then the victim is lost and marked by hand: no auditor
/// looks.
async fn marked_by_hand(stage: &mut Stage) {
    assert!(stage.create().await);
    stage.append(0, 40);
    stage.pass(Duration::from_secs(3)).await;
    stage.close(0).await;
    let ledgers = stage.metadata.list("/ledgers/", None, 10).await.unwrap();
    let record: seawall::ledger::LedgerRecord =
        serde_json::from_slice(&ledgers[0].1.value).unwrap();
    // Whoever is first in the ensemble is the one to be lost.
    stage.victim = record.fragments[0].ensemble[0];
    let flaw = Flaw { bookie: stage.victim, kind: FlawKind::Lost };
    stage.lose_victim();
    stage.markers.note(record.ledger, &[flaw]).await.unwrap();
}

fn by_hand() -> RepairConfig {
    let never = Duration::from_secs(100_000);
    RepairConfig { lost_bookie_grace: never, check_interval: never, ..config() }
}

#[test]
fn a_marker_outlasts_failed_attempts() {
    let quorum = Quorum::new(3, 3, 2).unwrap();
    on_stage(1, quorum, 0, by_hand(), |mut stage| async move {
        marked_by_hand(&mut stage).await;
        // Nobody can be read for a while.
        stage.bookies.with(|all| all.values_mut().for_each(|fake| fake.is_up = false));
        stage.start_repair();
        stage.pass(Duration::from_secs(30)).await;
        assert_eq!(stage.markers.list().await.unwrap().len(), 1);
        stage.finish().await;
    });
}

#[test]
fn a_locked_ledger_is_left_to_its_holder() {
    let quorum = Quorum::new(3, 3, 2).unwrap();
    on_stage(2, quorum, 0, by_hand(), |mut stage| async move {
        marked_by_hand(&mut stage).await;
        let ledger = stage.markers.list().await.unwrap()[0].ledger;
        let session = stage.metadata.open_session(Duration::from_secs(10)).await.unwrap();
        let key = RepairProgress::key(ledger);
        let taken =
            stage.metadata.put(&key, Bytes::from_static(b"{}"), Expect::Absent, Some(session));
        taken.await.unwrap();
        stage.start_repair();
        for _ in 0..10 {
            stage.pass(Duration::from_secs(2)).await;
            stage.metadata.keep_alive(session).await.unwrap();
            assert!(stage.incomplete().await.is_some(), "a locked ledger was repaired");
        }
        // The holder dies: its session ends, and another goes on.
        stage.finish().await;
    });
}

#[test]
fn a_copy_that_took_long_does_not_undo_the_writers_ensemble_change() {
    let quorum = Quorum::new(3, 3, 2).unwrap();
    let slow = RepairConfig { bytes_per_second: 200, ..by_hand() };
    on_stage(3, quorum, 0, slow, |mut stage| async move {
        assert!(stage.create().await);
        stage.append(0, 40);
        stage.pass(Duration::from_secs(1)).await;
        let ensemble = stage.last_ensemble().await;
        // One bookie of the three goes away: the writer begins a second fragment, and the first can grow no more.
        stage.change(ensemble[1], |fake| (fake.is_up, fake.is_registered) = (false, false));
        stage.append(0, 5);
        stage.pass(Duration::from_secs(4)).await;
        assert_eq!(stage.fragments().await, 2);
        // Another is lost, and its copies of the first fragment are made elsewhere. That takes seconds.
        stage.victim = ensemble[0];
        stage.lose_victim();
        let flaw = Flaw { bookie: ensemble[0], kind: FlawKind::Lost };
        stage.markers.note(stage.ledger().await, &[flaw]).await.unwrap();
        stage.start_repair();
        stage.pass(Duration::from_secs(1)).await;
        // Meanwhile the writer begins a third fragment.
        stage.append(0, 5);
        stage.pass(Duration::from_secs(4)).await;
        assert_eq!(stage.fragments().await, 3);
        for _ in 0..60 {
            stage.pass(Duration::from_millis(500)).await;
            stage.check().await;
        }
        stage.finish().await;
    });
}

/// Striped over four bookies, a run that a sample reads is short; 15 entries remain when 16 parts are made.
#[test]
fn samples_come_by_the_last_entry_of_a_fragment() {
    const ENTRIES: usize = 16 * 12 + 15;
    let quorum = Quorum::new(4, 3, 2).unwrap();
    let sampling = RepairConfig { check_samples: 16, ..config() };
    on_stage(4, quorum, 0, sampling, |mut stage| async move {
        assert!(stage.create().await);
        stage.append(0, ENTRIES as u8);
        stage.pass(Duration::from_secs(3)).await;
        stage.close(0).await;
        let last_ensemble = stage.last_ensemble().await;
        stage.victim = last_ensemble[(ENTRIES - 1) % last_ensemble.len()];
        // Which of the victim's copies the last is, they being in order.
        stage.rot_victim(stage.copies_of_victim() - 1);
        assert!(stage.incomplete().await.is_some());
        stage.start_repair();
        stage.finish().await;
    });
}
