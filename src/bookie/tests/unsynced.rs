//! What a restart reads back although its sync failed; and files that change hands while it goes on.

use super::*;
use crate::bookie::journal::JournalFiles;
use crate::runtime::sim::{World, WorldSettings};

fn config() -> BookieConfig {
    BookieConfig {
        checkpoint_interval: Duration::from_secs(1000),
        garbage_interval: Duration::from_secs(1000),
        free_space_low_bytes: 0,
        ..BookieConfig::below(Path::new("/data"))
    }
}

async fn start(runtime: Runtime) -> Bookie {
    Bookie::start(runtime, config(), Arc::new(Presences::default())).await.unwrap()
}

/// The group whose sync failed is read back after the crash, so it is answered for; it must then survive
/// whatever comes, and a power loss must not leave a hole in front of newer groups.
#[test]
fn a_group_read_back_after_its_sync_failed_stays() {
    for seed in 0..30 {
        World::run(seed, WorldSettings::default(), |world| async move {
            let node = world.create_node("bookie", "bookie");
            let bookie = start(node.runtime()).await;
            add(&bookie, batch(1, 0..3, 100)).await.unwrap();
            node.set_disk(|disk| disk.sync_error_rate = 1.0);
            let failed = add(&bookie, batch(1, 3..4, 100)).await;
            assert!(matches!(failed, Err(AddError::Poisoned(_))));
            node.heal_disk();
            node.crash();
            let bookie = start(node.runtime()).await;
            assert_holds(&bookie, 1, 0..4).await;
            add(&bookie, batch(1, 4..6, 100)).await.unwrap();
            node.power_loss();
            let bookie = start(node.runtime()).await;
            assert_holds(&bookie, 1, 0..6).await;
            // Met again at its second place: not applied twice, not lost.
            node.crash();
            let bookie = start(node.runtime()).await;
            assert_holds(&bookie, 1, 0..6).await;
        });
    }
}

/// The keeper lets files go while the writer takes them.
#[test]
fn a_file_is_never_handed_out_twice() {
    for seed in 0..10 {
        World::run(seed, WorldSettings::default(), |world| async move {
            let node = world.create_node("bookie", "bookie");
            let runtime = node.runtime();
            let folder = Path::new("/journal");
            runtime.disk.create_directory(folder).await.unwrap();
            let files = JournalFiles::new(runtime.disk.clone(), folder.to_owned(), 4096);
            files.take_stock().await.unwrap();
            let reached = Arc::new(AtomicU64::new(0));
            let writing = async {
                for id in 1..300 {
                    files.begin(id).await.unwrap();
                    reached.store(id, Ordering::SeqCst);
                }
            };
            let keeping = async {
                while reached.load(Ordering::SeqCst) < 299 {
                    files.retire(reached.load(Ordering::SeqCst)).await.unwrap();
                    tokio::task::yield_now().await;
                    runtime.clock.sleep(Duration::from_millis(1)).await;
                }
            };
            futures_util::join!(writing, keeping);
            files.retire(299).await.unwrap();
            let left = files.list().await.unwrap();
            assert!(left.len() <= 5, "{left:?}");
            assert_eq!(left.last().unwrap().0, 299);
        });
    }
}
