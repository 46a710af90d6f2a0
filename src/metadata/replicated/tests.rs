//! Files of a member: what was persisted is found again, at every place a crash can come.

use std::path::Path;

use super::storage::Storage;
use crate::metadata::consensus::{
    Entry, HardState, MemberId, Membership, Payload, Restored, SnapshotMark, Write,
};
use crate::metadata::store::Store;
use crate::runtime::sim::{World, WorldSettings};

const FOLDER: &str = "/data/metadata-group";

fn founding() -> Restored {
    Restored::founding(Membership::of_voters([(MemberId(1), "a:1".to_owned())]))
}

fn entry(index: u64, term: u64) -> Entry {
    Entry { index, term, payload: Payload::Noop }
}

fn write(entries: Vec<Entry>) -> Write {
    Write { hard_state: None, entries }
}

#[test]
fn what_is_written_is_found_again() {
    World::run(1, WorldSettings::default(), |world| async move {
        let node = world.create_node("n", "n");
        let open = || async { Storage::open(&node.runtime(), Path::new(FOLDER), founding()).await };
        let opened = open().await.unwrap();
        assert_eq!(opened.restored, founding());
        let mut storage = opened.storage;
        let hard_state = HardState { term: 5, vote: Some(MemberId(2)) };
        let first = Write { hard_state: Some(hard_state), entries: vec![entry(2, 2), entry(3, 2)] };
        storage.write(&first).await.unwrap();
        storage.write(&write(vec![entry(3, 5), entry(4, 5)])).await.unwrap();
        node.power_loss();
        let opened = open().await.unwrap();
        assert_eq!(opened.restored.hard_state, hard_state);
        let terms: Vec<u64> = opened.restored.entries.iter().map(|entry| entry.term).collect();
        assert_eq!(terms, [2, 5, 5]);

        let mark = SnapshotMark { index: 3, term: 5, ..founding().snapshot };
        let mut storage = opened.storage;
        let kept = opened.restored.entries.clone();
        storage.begin_anew(mark.clone(), &Store::new(), hard_state, kept).await.unwrap();
        storage.write(&write(vec![entry(5, 5)])).await.unwrap();
        node.power_loss();
        let opened = open().await.unwrap();
        assert_eq!(opened.restored.snapshot, mark);
        assert_eq!(opened.restored.entries, vec![entry(4, 5), entry(5, 5)]);
    });
}

/// Power is lost somewhere inside the installation of a snapshot: either the old log is there, whole, or the
/// snapshot; never neither.
#[test]
fn an_installed_snapshot_is_there_or_the_log_it_replaces() {
    let (mut old, mut new) = (0, 0);
    for seed in 0..200 {
        let is_new = World::run(seed, WorldSettings::default(), |world| async move {
            let node = world.create_node("n", "n");
            let runtime = node.runtime();
            let opened = Storage::open(&runtime, Path::new(FOLDER), founding()).await.unwrap();
            let mut storage = opened.storage;
            let hard_state = HardState { term: 2, vote: None };
            storage.write(&write(vec![entry(2, 2), entry(3, 2)])).await.unwrap();
            let mark = SnapshotMark { index: 9, term: 4, ..founding().snapshot };
            let installing = node.spawn("install", {
                let mark = mark.clone();
                async move {
                    let store = Store::new();
                    let _ = storage.begin_anew(mark, &store, hard_state, Vec::new()).await;
                }
            });
            let micros = world.random("when", seed) % 12_000;
            world.sleep(std::time::Duration::from_micros(micros)).await;
            node.power_loss();
            drop(installing);
            let again = Storage::open(&node.runtime(), Path::new(FOLDER), founding()).await;
            let restored = again.unwrap().restored;
            if restored.snapshot == mark {
                assert!(restored.entries.is_empty());
                true
            } else {
                assert_eq!(restored.entries, vec![entry(2, 2), entry(3, 2)]);
                false
            }
        });
        *(if is_new { &mut new } else { &mut old }) += 1;
    }
    assert!(old > 0 && new > 0, "old {old}, new {new}: one of both was never seen");
}
