//! Ordered indexes: what both runtimes promise, and the prefix rule of a crash.

use std::path::Path;

use bytes::Bytes;
use seawall::runtime::IndexChange;
use seawall::runtime::sim::World;

use crate::both_conformance::{Place, on_real, on_sim, quick};

fn put(key: u32, value: u32) -> IndexChange {
    let (key, value) = (key.to_be_bytes().to_vec(), value.to_be_bytes().to_vec());
    IndexChange::Put { key: key.into(), value: value.into() }
}

fn remove(key: u32) -> IndexChange {
    IndexChange::Remove { key: key.to_be_bytes().to_vec().into() }
}

async fn pairs_are_found_in_order(place: Place) {
    let path = place.folder.join("index");
    let indexes = place.runtime.indexes;
    let index = indexes.open(&path).await.unwrap();
    index.apply((0..100).map(|key| put(key * 10, key)).collect()).unwrap();
    index.apply(vec![remove(50), put(60, 1), put(60, 2), remove(12345)]).unwrap();
    let key = |number: u32| number.to_be_bytes();
    let value = |number: u32| Bytes::from(number.to_be_bytes().to_vec());
    assert_eq!(index.get(&key(50)).unwrap(), None);
    assert_eq!(index.get(&key(60)).unwrap(), Some(value(2)));
    assert_eq!(index.at_or_below(&key(59)).unwrap(), Some((value(40), value(4))));
    assert_eq!(index.at_or_below(&key(40)).unwrap(), Some((value(40), value(4))));
    let range = index.range(&key(35), &key(70), 10).unwrap();
    assert_eq!(range, [(value(40), value(4)), (value(60), value(2))]);
    assert_eq!(index.range(&key(0), &key(1000), 3).unwrap().len(), 3);
    index.flush().await.unwrap();
    drop(index);
    let index = indexes.open(&path).await.unwrap();
    assert_eq!(index.get(&key(60)).unwrap(), Some(value(2)));
    drop(index);
    indexes.destroy(&path).await.unwrap();
    indexes.destroy(&path).await.unwrap();
    let index = indexes.open(&path).await.unwrap();
    assert_eq!(index.get(&key(60)).unwrap(), None);
    assert_eq!(index.at_or_below(&key(60)).unwrap(), None);
}

#[test]
fn pairs_are_found_in_order_on_both() {
    on_real(pairs_are_found_in_order);
    on_sim(pairs_are_found_in_order);
}

#[test]
fn a_crash_keeps_a_prefix_of_the_unflushed_changes() {
    let (mut none, mut all, mut some) = (0, 0, 0);
    for seed in 0..60 {
        let kept = World::run(seed, quick(), |world| async move {
            let node = world.create_node("node", "node");
            let index = node.runtime().indexes.open(Path::new("/index")).await.unwrap();
            index.apply(vec![put(0, 0)]).unwrap();
            index.flush().await.unwrap();
            for number in 1..=20 {
                index.apply(vec![put(number, number)]).unwrap();
            }
            assert!(if seed % 2 == 0 { node.crash() } else { node.power_loss() });
            assert!(index.get(&[0]).is_err());
            let index = node.runtime().indexes.open(Path::new("/index")).await.unwrap();
            let pairs = index.range(&[], &[255; 5], 100).unwrap();
            for (number, (key, _)) in pairs.iter().enumerate() {
                assert_eq!(&key[..], (number as u32).to_be_bytes());
            }
            pairs.len()
        });
        match kept {
            1 => none += 1,
            21 => all += 1,
            2..=20 => some += 1,
            _ => panic!("the flushed pair is gone"),
        }
    }
    assert!(none > 5 && all > 5 && some > 5, "{none} {all} {some}");
}

#[test]
fn a_broken_index_opens_again_once_destroyed() {
    World::run(1, quick(), |world| async move {
        let node = world.create_node("node", "node");
        let indexes = node.runtime().indexes;
        let path = Path::new("/index");
        drop(indexes.open(path).await.unwrap());
        assert!(node.break_indexes(|found| found == path));
        assert!(indexes.open(path).await.is_err());
        indexes.destroy(path).await.unwrap();
        assert!(indexes.open(path).await.is_ok());
    });
}
