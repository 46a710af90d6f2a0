//! Looks at a bookie's files without changing them: what `seawall inspect` prints. Damage is reported as a
//! fact like any other and never stops the listing of what is behind it.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use super::journal::{
    GROUP_ALIGNMENT, GROUP_HEADER_BYTES, GroupDamage, GroupHeader, Window, journal_file_id,
    journal_file_name,
};
use super::ledger_state::{FenceState, LedgerFacts};
use super::record::{RECORD_HEADER_BYTES_MAX, RecordHeader, RecordKind};
use super::storage::{
    CheckpointFile, FactsError, LOG_HEADER_BYTES, entry_log_id, entry_log_name, log_level,
    read_facts,
};
use crate::domain::{EntryId, LedgerId};
use crate::runtime::{CreateMode, Disk, DiskResult, OpenMode};

/// One file of a bookie.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DataFile {
    /// Its name in its folder.
    pub name: String,
    /// The id in the name.
    pub id: u64,
    /// Length in bytes.
    pub length: u64,
}

/// What a journal group or record says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum JournalRecord {
    /// Begins a group that checks out.
    Group {
        /// Offset in the file.
        offset: u64,
        /// Its number.
        sequence: u64,
        /// Bytes, padding included.
        length: u64,
        /// The same without the padding.
        used: u64,
        /// Number of records, listed next.
        records: u32,
    },
    /// A group whose header is good and whose records are not.
    DamagedGroup {
        /// Offset in the file.
        offset: u64,
        /// Its number.
        sequence: u64,
        /// What is wrong.
        damage: String,
    },
    /// An entry.
    Entry {
        /// The ledger.
        ledger: LedgerId,
        /// The entry.
        entry: EntryId,
        /// Carried by the entry.
        last_add_confirmed: EntryId,
        /// Payload bytes.
        payload_bytes: u64,
    },
    /// A ledger and whose it is.
    Bind {
        /// The ledger.
        ledger: LedgerId,
        /// The creator token.
        creator: u64,
    },
    /// A fence.
    Fence {
        /// The ledger.
        ledger: LedgerId,
        /// The creator token.
        creator: u64,
    },
    /// A tombstone.
    Tombstone {
        /// The ledger.
        ledger: LedgerId,
        /// The creator token.
        creator: u64,
    },
}

/// One record of an entry log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LoggedEntry {
    /// Offset of the record in the file.
    pub offset: u64,
    /// The ledger.
    pub ledger: LedgerId,
    /// The entry.
    pub entry: EntryId,
    /// Carried by the entry.
    pub last_add_confirmed: EntryId,
    /// Payload bytes.
    pub payload_bytes: u64,
    /// What is wrong with it, if anything.
    pub damage: Option<String>,
}

/// The records of an entry log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct EntryLogListing {
    /// The file's header checks out.
    pub header_is_good: bool,
    /// Its records, in file order.
    pub entries: Vec<LoggedEntry>,
    /// Stretches that are no records: offset and length.
    pub damaged_stretches: Vec<(u64, u64)>,
}

/// One ledger in the checkpoint file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LedgerSummary {
    /// The ledger.
    pub ledger: LedgerId,
    /// The creator token.
    pub creator: u64,
    /// Fenced or not.
    pub fenced: bool,
    /// Deleted or not.
    pub deleted: bool,
    /// A missing entry is unknown rather than absent.
    pub limbo: bool,
    /// Which journal its records go to, counted from 1.
    pub journal: u64,
    /// The highest told.
    pub last_add_confirmed: EntryId,
    /// The highest stored.
    pub last_entry: EntryId,
}

/// A journal's mark.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct JournalMark {
    /// The file.
    pub file: u64,
    /// The offset there.
    pub offset: u64,
    /// The number of the group expected there.
    pub sequence: u64,
}

/// The content of the checkpoint file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CheckpointSummary {
    /// Its number.
    pub number: u64,
    /// Where replay of each journal would begin.
    pub marks: Vec<JournalMark>,
    /// Entry logs and how many bytes of each count.
    pub entry_logs: Vec<(u64, u64)>,
    /// Ledgers, in id order.
    pub ledgers: Vec<LedgerSummary>,
}

async fn files(
    disk: &Disk,
    folder: &Path,
    id_of: fn(&str) -> Option<u64>,
) -> DiskResult<Vec<DataFile>> {
    let names = disk.list(folder).await?;
    let files = names.into_iter().filter_map(|entry| {
        let id = id_of(&entry.name)?;
        Some(DataFile { name: entry.name, id, length: entry.length })
    });
    Ok(files.collect())
}

/// The journal files of a folder, in id order.
pub async fn journal_files(disk: &Disk, folder: &Path) -> DiskResult<Vec<DataFile>> {
    files(disk, folder, journal_file_id).await
}

/// The entry logs of a folder, in id order.
pub async fn entry_logs(disk: &Disk, folder: &Path) -> DiskResult<Vec<DataFile>> {
    files(disk, folder, entry_log_id).await
}

/// The groups and records of one journal file, in file order. Groups of the file's previous lives are not
/// listed.
pub async fn journal_records(
    disk: &Disk,
    folder: &Path,
    id: u64,
) -> DiskResult<Vec<JournalRecord>> {
    let path = folder.join(journal_file_name(id));
    let file = disk.open(&path, CreateMode::Existing, OpenMode::Shared).await?;
    let length = file.length().await?;
    let mut window = Window::new(&file);
    let mut listing = Vec::new();
    let mut offset = 0;
    while offset < length {
        match window.group(id, offset).await? {
            Ok(group) => {
                listing.push(JournalRecord::Group {
                    offset,
                    sequence: group.header.sequence,
                    length: group.header.padded_length(),
                    used: GROUP_HEADER_BYTES as u64 + u64::from(group.header.body_length),
                    records: group.header.records,
                });
                offset += group.header.padded_length();
                listing.extend(group.records.into_iter().map(|(record, _)| describe(&record)));
            }
            Err(GroupDamage::Body(damage)) => {
                let header = window.bytes(offset, GROUP_HEADER_BYTES).await?;
                if let Some(header) = GroupHeader::decode(&header, id, offset) {
                    let sequence = header.sequence;
                    listing.push(JournalRecord::DamagedGroup { offset, sequence, damage });
                }
                offset += GROUP_ALIGNMENT as u64;
            }
            Err(GroupDamage::NoHeader) => offset += GROUP_ALIGNMENT as u64,
        }
    }
    Ok(listing)
}

fn describe(record: &RecordHeader) -> JournalRecord {
    let (ledger, creator) = (record.ledger, record.number);
    match record.kind {
        RecordKind::Entry => JournalRecord::Entry {
            ledger,
            entry: record.entry,
            last_add_confirmed: record.last_add_confirmed,
            payload_bytes: u64::from(record.payload_length),
        },
        RecordKind::Bind => JournalRecord::Bind { ledger, creator },
        RecordKind::Fence => JournalRecord::Fence { ledger, creator },
        RecordKind::Tombstone => JournalRecord::Tombstone { ledger, creator },
    }
}

/// The records of one entry log.
pub async fn entry_log_entries(disk: &Disk, folder: &Path, id: u64) -> DiskResult<EntryLogListing> {
    let path = folder.join(entry_log_name(id));
    let file = disk.open(&path, CreateMode::Existing, OpenMode::Shared).await?;
    let length = file.length().await?;
    let mut window = Window::new(&file);
    let level = log_level(&window.bytes(0, LOG_HEADER_BYTES).await?, id);
    let mut listing =
        EntryLogListing { header_is_good: level.is_some(), ..EntryLogListing::default() };
    let decode = |bytes: &[u8]| match level {
        Some(level) => RecordHeader::decode(bytes, level),
        None => RecordHeader::decode_any(bytes),
    };
    let mut at = LOG_HEADER_BYTES as u64;
    let mut damage_begins = None;
    while at < length {
        let bytes = window.bytes(at, RECORD_HEADER_BYTES_MAX).await?;
        let whole = decode(&bytes).filter(|header| at + header.total_length() as u64 <= length);
        let Some(header) = whole else {
            damage_begins.get_or_insert(at);
            at += 1;
            continue;
        };
        if let Some(begin) = damage_begins.take() {
            listing.damaged_stretches.push((begin, at - begin));
        }
        let record = window.bytes(at, header.total_length()).await?;
        let entry = header.into_entry(record.slice(header.length().min(record.len())..));
        listing.entries.push(LoggedEntry {
            offset: at,
            ledger: entry.ledger,
            entry: entry.entry,
            last_add_confirmed: entry.last_add_confirmed,
            payload_bytes: entry.payload.len() as u64,
            damage: entry.verify_digest().err().map(|damage| damage.to_string()),
        });
        at += header.total_length() as u64;
    }
    if let Some(begin) = damage_begins {
        listing.damaged_stretches.push((begin, length - begin));
    }
    Ok(listing)
}

/// The content of the checkpoint file of a ledger folder, with the facts log it names: `None` if there is none,
/// the inner error says what is wrong with either.
pub async fn checkpoint(
    disk: &Disk,
    folder: &Path,
) -> DiskResult<Option<Result<CheckpointSummary, String>>> {
    let Some(bytes) = disk.read_file(&CheckpointFile::path(folder)).await? else {
        return Ok(None);
    };
    let file = match CheckpointFile::decode(&bytes) {
        Ok(file) => file,
        Err(damage) => return Ok(Some(Err(damage))),
    };
    match read_facts(disk, folder, file.facts).await {
        Ok(ledgers) => Ok(Some(Ok(summarize(file, ledgers)))),
        Err(FactsError::Damaged(damage)) => Ok(Some(Err(damage))),
        Err(FactsError::Disk(error)) => Err(error),
    }
}

fn summarize(file: CheckpointFile, ledgers: BTreeMap<LedgerId, LedgerFacts>) -> CheckpointSummary {
    let ledgers = ledgers.into_iter().map(|(ledger, facts)| LedgerSummary {
        ledger,
        creator: facts.creator.0,
        fenced: facts.fence != FenceState::Open,
        deleted: facts.deleted,
        limbo: facts.limbo,
        journal: u64::from(facts.journal) + 1,
        last_add_confirmed: facts.last_add_confirmed,
        last_entry: facts.last_entry,
    });
    let marks = file.marks.iter().map(|mark| JournalMark {
        file: mark.file,
        offset: mark.offset,
        sequence: mark.sequence,
    });
    CheckpointSummary {
        number: file.number,
        marks: marks.collect(),
        entry_logs: file.extents.into_iter().collect(),
        ledgers: ledgers.collect(),
    }
}
