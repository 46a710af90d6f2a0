//! The index's own metadata against flipped bytes: a bookie starts on it without anybody's doing and finds everything
//! again, whether the damage shows, sends the index back in time, or makes it look for a key for ever.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use seawall::bookie::{Bookie, BookieConfig};
use seawall::runtime::real::{indexes, runtime};
use seawall::runtime::{CreateMode, OpenMode, Runtime};
use seawall::simulator::mutant_hunt::complaint;

use crate::bookie_model::{
    Gone, begin_add, block_on, copy_folder, new_folder, request, sealed, small_config,
};

/// Set in the process that does the damage.
const VARIABLE: &str = "SEAWALL_TEST_INDEX_DAMAGE";
/// Enough runs for an index of several pages.
const LEDGERS: u64 = 300;
const ROUNDS: i64 = 6;

fn config(folder: &Path) -> BookieConfig {
    BookieConfig { write_cache_bytes: 1 << 24, ..small_config(folder) }
}

async fn start(runtime: &Runtime, folder: &Path) -> Bookie {
    let directory = Arc::new(Gone::default());
    Bookie::start(runtime.clone(), config(folder), directory).await.expect("started")
}

/// A stopped bookie's folder: a run of each ledger a round.
async fn filled(runtime: &Runtime) -> PathBuf {
    let folder = new_folder(runtime).await;
    let bookie = start(runtime, &folder).await;
    for round in 0..ROUNDS {
        let waiting: Vec<_> = (1..=LEDGERS)
            .map(|id| begin_add(&bookie, id, false, vec![sealed(id, round, 20, round - 1)]))
            .collect();
        for answer in waiting {
            assert_eq!(answer.await.expect("answered").result, Ok(()));
        }
        bookie.checkpoint().await.expect("completed");
    }
    bookie.stop().await;
    folder
}

async fn assert_whole(runtime: &Runtime, folder: &Path, what: &str) {
    let bookie = start(runtime, folder).await;
    for id in 1..=LEDGERS {
        let mut found = 0;
        while found < ROUNDS {
            let run = bookie.read(request(id, found)).await;
            let run = run.unwrap_or_else(|error| panic!("{what}: {id}:{found}: {error}"));
            found += run.len() as i64;
        }
    }
    bookie.stop().await;
}

async fn flip(runtime: &Runtime, path: &Path, at: u64) {
    let file = runtime.disk.open(path, CreateMode::Existing, OpenMode::Shared).await;
    let file = file.expect("opened");
    let byte = file.read_at(at, 1).await.expect("read")[0] ^ 0x10;
    file.write_at(at, vec![vec![byte].into()]).await.expect("written");
}

async fn damage() {
    // What never ends is given up sooner than in production, but later than a slow disk needs to make a new one.
    let runtime = Runtime { indexes: indexes(Duration::from_secs(5)), ..runtime() };
    let folder = filled(&runtime).await;
    let metadata = Path::new("ledgers/index/metadata");
    let files = runtime.disk.list(&folder.join(metadata)).await.expect("listed");
    let mut flipped = 0;
    for file in files.iter().filter(|file| file.length > 0) {
        for part in 0..6 {
            let at = (file.length - 1) * part / 5;
            let copy = new_folder(&runtime).await;
            copy_folder(&runtime, &folder, &copy, true).await;
            flip(&runtime, &copy.join(metadata).join(&file.name), at).await;
            let what = format!("byte {at} of {}", file.name);
            assert_whole(&runtime, &copy, &what).await;
            runtime.disk.remove_directory(&copy).await.expect("removed");
            flipped += 1;
        }
    }
    assert!(flipped >= 6, "no metadata was found");
    // A start that did not get through, as if the index had ended the process: it is not trusted again.
    let mark = folder.join("ledgers/index.opening");
    let created = runtime.disk.open(&mark, CreateMode::CreateNew, OpenMode::Shared).await;
    drop(created.expect("created"));
    assert_whole(&runtime, &folder, "not got through").await;
    assert!(!runtime.disk.exists(&mark).await.expect("known"));
    runtime.disk.remove_directory(&folder).await.expect("removed");
}

/// Work of the test below, in a process of its own: threads that an index keeps for ever end with it.
#[test]
fn inside() {
    if std::env::var_os(VARIABLE).is_some() {
        block_on(damage());
    }
}

#[test]
#[ignore = "takes minutes: each index that never opens keeps a core busy until the process ends"]
fn a_flipped_byte_in_the_metadata_of_an_index_needs_nobody() {
    assert_eq!(complaint("index_damage::inside", "", &[(VARIABLE, "1")]), None);
}
