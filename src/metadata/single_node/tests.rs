//! Recovery from a log cut at every byte, damaged in the middle, and over snapshots; on real files.
#![allow(clippy::disallowed_methods, reason = "tests damage real files behind the store's back")]

use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;

use super::{SingleNodeConfig, SingleNodeMetadata};
use crate::metadata::{Expect, MetadataClient, MetadataError, MetadataStartError, WatchEvent};
use crate::runtime::real;
use crate::runtime::sim::{World, WorldSettings};

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("seawall-metadata-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn config(&self) -> SingleNodeConfig {
        SingleNodeConfig { tick: Duration::from_millis(5), ..SingleNodeConfig::below(&self.0) }
    }

    fn logs(&self) -> Vec<PathBuf> {
        let mut logs: Vec<PathBuf> = std::fs::read_dir(self.0.join("metadata"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with("log-"))
            .collect();
        logs.sort();
        logs
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

async fn start(folder: &Folder) -> Result<SingleNodeMetadata, MetadataStartError> {
    SingleNodeMetadata::start(real::runtime(), folder.config()).await
}

fn value(number: u64) -> Bytes {
    Bytes::from(number.to_string())
}

async fn filled(folder: &Folder, puts: u64) -> SingleNodeMetadata {
    let store = start(folder).await.unwrap();
    for number in 0..puts {
        store.put(&format!("/k/{number}"), value(number), Expect::Absent, None).await.unwrap();
    }
    store
}

fn cut(path: &Path, length: usize) {
    let bytes = std::fs::read(path).unwrap();
    std::fs::write(path, &bytes[..length]).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_cut_anywhere_gives_a_prefix() {
    let folder = Folder::new("cut");
    let store = filled(&folder, 6).await;
    store.stop().await;
    let log = folder.logs().remove(0);
    let whole = std::fs::read(&log).unwrap();
    let mut kept_before = 0;
    for length in 0..=whole.len() {
        std::fs::write(&log, &whole[..length]).unwrap();
        let store = start(&folder).await.unwrap();
        let kept = store.list("/k/", None, 100).await.unwrap();
        assert!(kept.len() >= kept_before, "cut at {length}");
        kept_before = kept.len();
        for (number, (key, found)) in kept.iter().enumerate() {
            assert_eq!(key, &format!("/k/{number}"));
            assert_eq!(found.value, value(number as u64));
        }
        // What is written behind the cut is there after the next start.
        if length % 16 == 0 {
            store.put("/after", value(length as u64), Expect::Any, None).await.unwrap();
            store.stop().await;
            let store = start(&folder).await.unwrap();
            assert!(store.get("/after").await.unwrap().is_some(), "cut at {length}");
            assert_eq!(store.list("/k/", None, 100).await.unwrap().len(), kept_before);
            store.stop().await;
        } else {
            store.stop().await;
        }
    }
    assert_eq!(kept_before, 6);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damage_in_the_middle_is_refused() {
    let folder = Folder::new("middle");
    filled(&folder, 4).await.stop().await;
    let log = folder.logs().remove(0);
    let whole = std::fs::read(&log).unwrap();
    let last_group = whole.len() - (whole.len() - crate::metadata::durable::FILE_HEADER_BYTES) / 4;
    for offset in 0..last_group {
        if (28..crate::metadata::durable::FILE_HEADER_BYTES).contains(&offset) {
            continue; // Padding of the header.
        }
        let mut bytes = whole.clone();
        bytes[offset] ^= 0x10;
        std::fs::write(&log, &bytes).unwrap();
        let result = start(&folder).await;
        assert!(
            matches!(result, Err(MetadataStartError::Corrupt { .. })),
            "flipped at {offset}, started"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn snapshots_replace_logs() {
    let folder = Folder::new("snapshot");
    let config = SingleNodeConfig { log_bytes: 400, ..folder.config() };
    let store = SingleNodeMetadata::start(real::runtime(), config.clone()).await.unwrap();
    for number in 0..60 {
        store.put(&format!("/k/{}", number % 7), value(number), Expect::Any, None).await.unwrap();
        assert_eq!(store.next_number("/n").await.unwrap(), number + 1);
    }
    store.stop().await;
    let logs = folder.logs();
    assert_eq!(logs.len(), 1, "{logs:?}");
    assert!(!logs[0].ends_with(crate::metadata::durable::log_name(1)));
    let before = store.snapshot();
    let store = SingleNodeMetadata::start(real::runtime(), config).await.unwrap();
    assert_eq!(store.snapshot(), before);
    assert_eq!(store.next_number("/n").await.unwrap(), 61);
    store.stop().await;
    std::fs::remove_file(folder.logs().remove(0)).unwrap();
    assert!(matches!(start(&folder).await, Err(MetadataStartError::Corrupt { .. })));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_snapshot_is_refused() {
    let folder = Folder::new("damaged-snapshot");
    let config = SingleNodeConfig { log_bytes: 100, ..folder.config() };
    let store = SingleNodeMetadata::start(real::runtime(), config).await.unwrap();
    for number in 0..5 {
        store.put("/k/x", value(number), Expect::Any, None).await.unwrap();
    }
    store.stop().await;
    let path = folder.0.join("metadata/snapshot");
    let length = std::fs::read(&path).unwrap().len();
    cut(&path, length - 1);
    assert!(matches!(start(&folder).await, Err(MetadataStartError::Corrupt { .. })));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_end_by_themselves_and_watchers_hear() {
    let folder = Folder::new("session");
    let store = start(&folder).await.unwrap();
    let session = store.open_session(Duration::from_millis(60)).await.unwrap();
    store.put("/b/1", value(1), Expect::Absent, Some(session)).await.unwrap();
    let mut watch = store.watch("/b/").await.unwrap();
    assert_eq!(watch.next().await.unwrap().len(), 1);
    assert!(watch.next().await.unwrap().is_empty());
    store.keep_alive(session).await.unwrap();
    let events = watch.next().await.unwrap();
    assert!(matches!(&events[..], [WatchEvent::Deleted { key, .. }] if key == "/b/1"));
    assert_eq!(store.keep_alive(session).await, Err(MetadataError::SessionExpired));
    store.stop().await;
    assert!(watch.next().await.is_none());
    let late = store.put("/b/1", value(1), Expect::Any, None).await;
    assert!(matches!(late, Err(MetadataError::Unavailable(_))));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_writers_share_syncs_and_one_wins() {
    let folder = Folder::new("group");
    let store = start(&folder).await.unwrap();
    let puts = (0..200).map(|number| {
        let store = store.clone();
        async move { store.put("/one", value(number), Expect::Absent, None).await.is_ok() }
    });
    let won = futures_util::future::join_all(puts).await.into_iter().filter(|won| *won).count();
    assert_eq!(won, 1);
    store.stop().await;
}

/// The group whose sync failed is read back after the crash; from then on it counts, and a power loss must
/// not take it away from under newer groups.
#[test]
fn a_group_read_back_after_its_sync_failed_stays() {
    for seed in 0..30 {
        World::run(seed, WorldSettings::default(), |world| async move {
            let node = world.create_node("metadata", "metadata");
            let config = SingleNodeConfig::below(Path::new("/data"));
            let start = || SingleNodeMetadata::start(node.runtime(), config.clone());
            let store = start().await.unwrap();
            store.put("/k/0", value(0), Expect::Absent, None).await.unwrap();
            node.set_disk(|disk| disk.sync_error_rate = 1.0);
            let failed = store.put("/k/1", value(1), Expect::Absent, None).await;
            assert!(matches!(failed, Err(MetadataError::OutcomeUnknown(_))));
            node.heal_disk();
            node.crash();
            let store = start().await.unwrap();
            assert!(store.get("/k/1").await.unwrap().is_some());
            store.put("/k/2", value(2), Expect::Absent, None).await.unwrap();
            node.power_loss();
            let store = start().await.unwrap();
            for number in 0..3 {
                let found = store.get(&format!("/k/{number}")).await.unwrap();
                assert_eq!(found.unwrap().value, value(number));
            }
        });
    }
}

/// Whoever was answered acts on it at once, so the power may go with the answer.
#[test]
fn an_answer_outlives_a_power_loss_right_after_it() {
    for seed in 0..10 {
        World::run(seed, WorldSettings::default(), |world| async move {
            let node = world.create_node("metadata", "metadata");
            let config = SingleNodeConfig::below(Path::new("/data"));
            let start = || SingleNodeMetadata::start(node.runtime(), config.clone());
            for number in 0..3 {
                let store = start().await.unwrap();
                let key = format!("/k/{number}");
                store.put(&key, value(number), Expect::Absent, None).await.unwrap();
                node.power_loss();
            }
            let store = start().await.unwrap();
            assert_eq!(store.list("/k/", None, 10).await.unwrap().len(), 3);
        });
    }
}
