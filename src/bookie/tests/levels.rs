//! What was written at one format level is there at the other, and a version that does not know a level says so.

use super::*;
use crate::domain::{FormatLevel, Formats};
use crate::runtime::real::runtime;

const FORMER: Formats = Formats::of_version_with(FormatLevel::One);

async fn start_as(folder: &Folder, formats: Formats) -> Result<Bookie, BookieStartError> {
    let config = BookieConfig { formats, ..folder.config() };
    Bookie::start(folder.runtime.clone(), config, Arc::new(Presences::default())).await
}

/// The first four bytes of each file, and of each group in it; nothing of those that were never written.
async fn magics(folder: &Folder) -> Vec<String> {
    let mut magics = Vec::new();
    for (directory, ending) in [("journal", ".journal"), ("ledgers", ".entries")] {
        for (path, _) in folder.files(directory, ending).await {
            let bytes = folder.runtime.disk.read_file(&path).await.unwrap().unwrap();
            let pages = bytes.chunks(4096).map(|page| &page[..4]);
            let magic = pages.filter(|magic| magic.starts_with(b"SW"));
            magics.extend(magic.map(|magic| String::from_utf8(magic.to_vec()).unwrap()));
        }
    }
    magics.sort();
    magics.dedup();
    magics
}

async fn cookies(folder: &Folder) -> Vec<String> {
    let mut formats = Vec::new();
    for directory in ["journal", "ledgers"] {
        let path = folder.path.join(directory).join("cookie");
        let text = folder.runtime.disk.read_file(&path).await.unwrap().unwrap();
        let cookie: serde_json::Value = serde_json::from_slice(&text).unwrap();
        formats.push(cookie["format"].to_string());
    }
    formats
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_level_is_there_after_a_crash_at_the_other() {
    let folder = Folder::new(&runtime()).await;
    let bookie = start_as(&folder, FORMER).await.unwrap();
    // One half in an entry log, the other in the journal only.
    add(&bookie, batch(1, 0..50, 300)).await.unwrap();
    bookie.checkpoint().await.unwrap();
    add(&bookie, batch(1, 50..80, 300)).await.unwrap();
    add(&bookie, batch(2, 0..3, 10)).await.unwrap();
    let copy = folder.crash_copy(false).await;
    bookie.stop().await;
    assert_eq!(magics(&copy).await, ["SWE1", "SWJ1"]);
    assert_eq!(cookies(&copy).await, ["1", "1"]);

    let raised = start_as(&copy, Formats::default()).await.unwrap();
    assert_eq!(cookies(&copy).await, ["2", "2"]);
    assert_holds(&raised, 1, 0..80).await;
    assert_holds(&raised, 2, 0..3).await;
    raised.checkpoint().await.unwrap();
    add(&raised, batch(1, 80..100, 300)).await.unwrap();
    assert_holds(&raised, 1, 0..100).await;
    let next = copy.crash_copy(false).await;
    raised.stop().await;
    let there = magics(&next).await;
    assert!(there.contains(&"SWE2".to_owned()) && there.contains(&"SWJ2".to_owned()), "{there:?}");

    let back = start_as(&next, Formats::writing(FormatLevel::One)).await.unwrap();
    // What is there of level 2 stays.
    assert_eq!(cookies(&next).await, ["2", "2"]);
    assert_holds(&back, 1, 0..100).await;
    add(&back, batch(1, 100..110, 300)).await.unwrap();
    let last = next.crash_copy(true).await;
    back.stop().await;
    for formats in [Formats::writing(FormatLevel::One), Formats::default()] {
        let again = start_as(&last, formats).await.unwrap();
        assert_holds(&again, 1, 0..110).await;
        assert_holds(&again, 2, 0..3).await;
        again.stop().await;
    }
    for folder in [folder, copy, next, last] {
        folder.remove().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_version_that_does_not_know_the_level_refuses_the_folder() {
    let folder = Folder::new(&runtime()).await;
    let bookie = start_as(&folder, FORMER).await.unwrap();
    add(&bookie, batch(1, 0..5, 100)).await.unwrap();
    bookie.stop().await;
    // Upgraded, not raised: there is a way back.
    let bookie = start_as(&folder, Formats::writing(FormatLevel::One)).await.unwrap();
    add(&bookie, batch(1, 5..10, 100)).await.unwrap();
    bookie.stop().await;
    let bookie = start_as(&folder, FORMER).await.unwrap();
    assert_holds(&bookie, 1, 0..10).await;
    bookie.stop().await;
    // Raised, and written nothing yet: there is none.
    start_as(&folder, Formats::default()).await.unwrap().stop().await;
    let Err(refused) = start_as(&folder, FORMER).await else { panic!("it started") };
    assert!(refused.to_string().contains("format 2, this version reads up to 1"), "{refused}");
    let bookie = start_as(&folder, Formats::writing(FormatLevel::One)).await.unwrap();
    assert_holds(&bookie, 1, 0..10).await;
    bookie.stop().await;
    folder.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn raising_that_was_cut_short_goes_on() {
    let folder = Folder::new(&runtime()).await;
    start_as(&folder, FORMER).await.unwrap().stop().await;
    let cookie = folder.path.join("journal/cookie");
    let former = folder.runtime.disk.read_file(&cookie).await.unwrap().unwrap();
    start_as(&folder, Formats::default()).await.unwrap().stop().await;
    write_file(&folder.runtime, &cookie, former).await;
    assert_eq!(cookies(&folder).await, ["1", "2"]);
    // Also where it goes back: the others may have been written since.
    start_as(&folder, Formats::writing(FormatLevel::One)).await.unwrap().stop().await;
    assert_eq!(cookies(&folder).await, ["2", "2"]);
    folder.remove().await;
}
