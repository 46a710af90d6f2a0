//! A bookie's folders and limits.

use std::path::PathBuf;
use std::time::Duration;

use crate::domain::{Formats, Rack};

/// A bookie's folders and limits.
#[derive(Clone, Debug)]
pub struct BookieConfig {
    /// Folder of the journal, of the first one if there are several; may be on a disk of its own.
    pub journal_directory: PathBuf,
    /// Folders of more journals, each on a disk of its own: each is written and synced on its own, and each ledger
    /// is in one. At most [`JOURNAL_DIRECTORIES_MAX`] with the first; a folder keeps its place in the list for
    /// ever.
    pub more_journal_directories: Vec<PathBuf>,
    /// Folder of the index, the checkpoint file, the facts log and of entry logs.
    pub ledger_directory: PathBuf,
    /// Folders of more entry logs, each on a disk of its own. At most [`LEDGER_DIRECTORIES_MAX`] with the
    /// first; a folder keeps its place in the list for ever.
    pub more_ledger_directories: Vec<PathBuf>,
    /// What this bookie fails together with: copies are spread over racks.
    pub rack: Rack,
    /// Length of one journal file, pre-written with zeros and recycled.
    pub journal_file_bytes: u64,
    /// A journal group is closed at this many bytes.
    pub journal_group_bytes: usize,
    /// After this long without another group an empty one follows the last: proof that it was synced, so
    /// that damage to it is not taken for a torn end.
    pub journal_witness_delay: Duration,
    /// Bytes queued for a journal; adds beyond it are answered `Overloaded`.
    pub journal_queue_bytes: usize,
    /// Each half of the write cache; a full half is flushed to the entry log.
    pub write_cache_bytes: usize,
    /// Entries read ahead for readers in sequence; 0: none are.
    pub read_cache_bytes: usize,
    /// A half that is not empty is flushed after this much time at the latest.
    pub checkpoint_interval: Duration,
    /// Length at which an entry log is closed and the next begun.
    pub entry_log_bytes: u64,
    /// Below this much free space the bookie turns read-only.
    pub free_space_low_bytes: u64,
    /// How often ledgers are compared with metadata and dead space is collected.
    pub garbage_interval: Duration,
    /// Pace of the scrubber, bytes a second; 0 turns it off.
    pub scrub_bytes_per_second: u64,
    /// Which files it writes, and which it reads.
    pub formats: Formats,
}

/// Most journal directories of a bookie.
pub const JOURNAL_DIRECTORIES_MAX: usize = 16;
/// Most ledger directories of a bookie.
pub const LEDGER_DIRECTORIES_MAX: usize = 16;

impl BookieConfig {
    /// All journal folders, the first one first.
    pub fn journal_directories(&self) -> Vec<PathBuf> {
        std::iter::once(&self.journal_directory)
            .chain(&self.more_journal_directories)
            .cloned()
            .collect()
    }

    /// All folders with entry logs, the first one first.
    pub fn ledger_directories(&self) -> Vec<PathBuf> {
        std::iter::once(&self.ledger_directory)
            .chain(&self.more_ledger_directories)
            .cloned()
            .collect()
    }

    /// Defaults below one data folder.
    pub fn below(data: &std::path::Path) -> Self {
        Self {
            journal_directory: data.join("journal"),
            more_journal_directories: Vec::new(),
            ledger_directory: data.join("ledgers"),
            more_ledger_directories: Vec::new(),
            rack: Rack::default(),
            journal_file_bytes: 32 * 1024 * 1024,
            journal_group_bytes: 256 * 1024,
            journal_witness_delay: Duration::from_millis(100),
            journal_queue_bytes: 64 * 1024 * 1024,
            write_cache_bytes: 64 * 1024 * 1024,
            read_cache_bytes: 32 * 1024 * 1024,
            checkpoint_interval: Duration::from_secs(5),
            entry_log_bytes: 512 * 1024 * 1024,
            free_space_low_bytes: 256 * 1024 * 1024,
            garbage_interval: Duration::from_secs(60),
            scrub_bytes_per_second: 4 * 1024 * 1024,
            formats: Formats::default(),
        }
    }
}
