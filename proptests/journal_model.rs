//! Journals against lists: after damage at any byte of one, a bookie either starts with exactly the groups before a
//! torn end of it and all of the others, or refuses because a damaged group has good ones after it. It never starts
//! with a hole.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use proptest::prelude::*;
use seawall::bookie::inspect::{self, JournalRecord};
use seawall::bookie::{Bookie, BookieConfig, BookieStartError};
use seawall::domain::ReadError;
use seawall::runtime::{CreateMode, OpenMode, Runtime};

use crate::bookie_model::{
    Gone, begin_add, block_on, copy_folder, new_folder, request, sealed, small_config,
};

#[derive(Clone, Debug)]
enum Damage {
    Cut,
    Zeros,
    Flip,
}

/// A group as the model sees it.
struct Group {
    file: u64,
    offset: u64,
    end: u64,
    entries: Vec<(u64, i64)>,
}

async fn groups(runtime: &Runtime, journal: &Path) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for file in inspect::journal_files(&runtime.disk, journal).await.expect("listed") {
        let records = inspect::journal_records(&runtime.disk, journal, file.id).await;
        for record in records.expect("read") {
            match record {
                JournalRecord::Group { offset, used, .. } => {
                    let entries = Vec::new();
                    groups.push(Group { file: file.id, offset, end: offset + used, entries });
                }
                JournalRecord::Entry { ledger, entry, .. } => {
                    let group = groups.last_mut().expect("a group comes first");
                    group.entries.push((ledger.0, entry.0));
                }
                JournalRecord::Bind { .. } => {}
                other => panic!("unexpected {other:?}"),
            }
        }
    }
    groups
}

fn journal_folders(folder: &Path, journals: usize) -> Vec<PathBuf> {
    let names = (2..=journals).map(|number| format!("journal-{number}"));
    std::iter::once("journal".to_owned()).chain(names).map(|name| folder.join(name)).collect()
}

/// What a killed process would leave after these adds, all of them in the journal alone. `None` if the keeper came
/// between: it looks once more after a checkpoint, and what was added by then is in an entry log, too.
async fn journal_of(
    runtime: &Runtime,
    config: &mut BookieConfig,
    adds: &[(u64, i64, usize, bool)],
    journals: usize,
) -> Option<PathBuf> {
    let folder = new_folder(runtime).await;
    let more = journal_folders(&folder, journals).split_off(1);
    *config = BookieConfig {
        write_cache_bytes: 1 << 24,
        more_journal_directories: more,
        ..small_config(&folder)
    };
    let directory = Arc::new(Gone::default());
    let bookie = Bookie::start(runtime.clone(), config.clone(), directory).await;
    let bookie = bookie.expect("started");
    bookie.checkpoint().await.expect("completed");
    let mut next = [0_i64; 4];
    let mut waiting = Vec::new();
    for (ledger, count, bytes, wait) in adds.iter().copied() {
        let first = next[ledger as usize];
        next[ledger as usize] += count;
        let entries =
            (first..first + count).map(|entry| sealed(ledger, entry, bytes, entry - 1)).collect();
        waiting.push(begin_add(&bookie, ledger, false, entries));
        if wait {
            for answer in waiting.drain(..) {
                assert_eq!(answer.await.expect("answered").result, Ok(()));
            }
        }
    }
    for answer in waiting {
        assert_eq!(answer.await.expect("answered").result, Ok(()));
    }
    let copy = new_folder(runtime).await;
    copy_folder(runtime, &folder, &copy, true).await;
    bookie.stop().await;
    runtime.disk.remove_directory(&folder).await.expect("removed");
    let logs = inspect::entry_logs(&runtime.disk, &copy.join("ledgers")).await.expect("listed");
    if logs.is_empty() {
        return Some(copy);
    }
    runtime.disk.remove_directory(&copy).await.expect("removed");
    None
}

async fn run(
    adds: Vec<(u64, i64, usize, bool)>,
    damage: Damage,
    place: f64,
    journals: usize,
    which: usize,
) {
    let runtime = seawall::runtime::real::runtime();
    let directory = Arc::new(Gone::default());
    let mut config = small_config(Path::new("/"));
    let mut copy = None;
    for _ in 0..100 {
        copy = journal_of(&runtime, &mut config, &adds, journals).await;
        if copy.is_some() {
            break;
        }
    }
    let copy = copy.expect("the keeper comes between now and then only");

    let mut lists = Vec::new();
    for journal in journal_folders(&copy, journals) {
        let groups = groups(&runtime, &journal).await;
        lists.push((journal, groups));
    }
    // One that something was added to; what is in the others stays.
    lists.rotate_left(which % journals);
    let used =
        lists.iter().position(|(_, groups)| !groups.is_empty()).expect("something was added");
    let (journal, groups) = lists.remove(used);
    let others: Vec<Group> = lists.into_iter().flat_map(|(_, groups)| groups).collect();
    let last_file = groups.last().expect("not empty").file;
    let path = journal.join(format!("{last_file:016x}.journal"));
    let file = runtime.disk.open(&path, CreateMode::Existing, OpenMode::Shared).await;
    let file = file.expect("opened");
    let length = file.length().await.expect("known");
    let used = groups.last().map_or(0, |group| group.end);
    let at = ((used + 5000).min(length - 1) as f64 * place) as u64;
    match damage {
        Damage::Cut => file.set_length(at).await.expect("cut"),
        Damage::Zeros => {
            let zeros = vec![0_u8; usize::try_from(length - at).expect("small")];
            file.write_at(at, vec![zeros.into()]).await.expect("written");
        }
        Damage::Flip => {
            let byte = file.read_at(at, 1).await.expect("read")[0] ^ 1;
            file.write_at(at, vec![vec![byte].into()]).await.expect("written");
        }
    }
    let is_hit = |group: &Group| {
        group.file == last_file
            && match damage {
                Damage::Cut => at < group.end,
                // Zeros written over zeros damage nothing: bodies end in something else.
                Damage::Zeros => at < group.end,
                Damage::Flip => group.offset <= at && at < group.end,
            }
    };
    let first_hit = groups.iter().position(is_hit);
    let all_after_hit = first_hit.is_none_or(|first| groups[first..].iter().all(is_hit));
    let mut folders = journal_folders(&copy, journals);
    config.more_journal_directories = folders.split_off(1);
    config.journal_directory = copy.join("journal");
    config.ledger_directory = copy.join("ledgers");
    let started = Bookie::start(runtime.clone(), config, directory).await;
    match started {
        Ok(bookie) => {
            assert!(all_after_hit, "started with a hole");
            let kept = &groups[..first_hit.unwrap_or(groups.len())];
            let mut expected = [0_i64; 4];
            for (ledger, entry) in kept.iter().chain(&others).flat_map(|group| &group.entries) {
                expected[*ledger as usize] = entry + 1;
            }
            for ledger in 1..4_u64 {
                let mut entry = 0;
                while let Ok(run) = bookie.read(request(ledger, entry)).await {
                    entry += run.len() as i64;
                }
                assert_eq!(entry, expected[ledger as usize], "ledger {ledger}");
                let end = bookie.read(request(ledger, entry)).await;
                assert_eq!(end, Err(ReadError::Absent));
            }
            bookie.stop().await;
        }
        Err(BookieStartError::Corrupt(_)) => assert!(!all_after_hit, "refused a torn end"),
        Err(error) => panic!("{error}"),
    }
    runtime.disk.remove_directory(&copy).await.expect("removed");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn a_journal_is_a_list_with_an_end(
        adds in proptest::collection::vec((1..4_u64, 1..8_i64, 4..3000_usize, any::<bool>()), 1..30),
        damage in prop_oneof![Just(Damage::Cut), Just(Damage::Zeros), Just(Damage::Flip)],
        place in 0.0..1.0_f64,
        journals in 1..4_usize,
        which in 0..3_usize,
    ) {
        block_on(run(adds, damage, place, journals, which));
    }
}
