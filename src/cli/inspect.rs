//! `seawall inspect`: what is in a bookie's files. Reads only; the node may be down or running.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use super::output::{OutputFormat, OutputOption, complain, say, say_json, table};
use super::{FAILED, GOOD, USAGE};
use crate::bookie::inspect::{self, DataFile, EntryLogListing, JournalRecord};
use crate::runtime::{Disk, DiskErrorKind, DiskResult, real};

/// Look into data files without changing them.
#[derive(Debug, Args)]
pub(super) struct InspectCommand {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// The journal's files, or the records of one.
    ///
    /// Examples:
    ///   seawall inspect journal data
    ///   seawall inspect journal data/journal/FILE -o json
    #[command(verbatim_doc_comment)]
    Journal(InspectOptions),
    /// The entry logs, or the entries of one.
    ///
    /// Examples:
    ///   seawall inspect entry-log data
    ///   seawall inspect entry-log data/ledgers/FILE -o json
    #[command(verbatim_doc_comment)]
    EntryLog(InspectOptions),
    /// The checkpoint: where replay begins, and every ledger.
    ///
    /// Example: seawall inspect checkpoint data
    Checkpoint(InspectOptions),
}

#[derive(Debug, Args)]
struct InspectOptions {
    /// A data folder, the folder of the files, or one file.
    path: PathBuf,
    #[command(flatten)]
    output: OutputOption,
}

/// What a path turned out to be.
enum Found {
    /// A folder with files of the kind.
    Folder(Vec<DataFile>),
    /// One of its files.
    File(PathBuf, u64),
    /// Neither.
    Nothing,
}

/// Performs the command. Damage found is exit code 1.
pub(super) fn inspect(command: &InspectCommand) -> u8 {
    let (What::Journal(options) | What::EntryLog(options) | What::Checkpoint(options)) =
        &command.what;
    let ended = real::run(|| async {
        let disk = real::runtime().disk;
        match &command.what {
            What::Journal(_) => journal(&disk, options).await,
            What::EntryLog(_) => entry_log(&disk, options).await,
            What::Checkpoint(_) => checkpoint(&disk, options).await,
        }
    });
    match ended {
        Ok(Ok(code)) => code,
        Ok(Err(error)) if error.kind == DiskErrorKind::NotFound => {
            complain(&error);
            USAGE
        }
        Ok(Err(error)) => {
            complain(&error);
            FAILED
        }
        Err(error) => {
            complain(&error);
            FAILED
        }
    }
}

async fn journal(disk: &Disk, options: &InspectOptions) -> DiskResult<u8> {
    let found = find(disk, &options.path, "journal", Kind::Journal).await?;
    match found {
        Found::Nothing => Ok(nothing(options, "journal files")),
        Found::Folder(files) => Ok(list(options, &files)),
        Found::File(folder, id) => {
            let records = inspect::journal_records(disk, &folder, id).await?;
            let is_whole =
                !records.iter().any(|one| matches!(one, JournalRecord::DamagedGroup { .. }));
            for record in &records {
                let is_told = match options.output.format {
                    OutputFormat::Json => say_json(record),
                    OutputFormat::Table => say(&journal_line(record)),
                };
                if !is_told {
                    return Ok(FAILED);
                }
            }
            Ok(if is_whole { GOOD } else { FAILED })
        }
    }
}

async fn entry_log(disk: &Disk, options: &InspectOptions) -> DiskResult<u8> {
    let found = find(disk, &options.path, "ledgers", Kind::EntryLog).await?;
    match found {
        Found::Nothing => Ok(nothing(options, "entry logs")),
        Found::Folder(files) => Ok(list(options, &files)),
        Found::File(folder, id) => {
            let listing = inspect::entry_log_entries(disk, &folder, id).await?;
            let is_whole = listing.header_is_good
                && listing.damaged_stretches.is_empty()
                && listing.entries.iter().all(|entry| entry.damage.is_none());
            let is_told = match options.output.format {
                OutputFormat::Json => say_json(&listing),
                OutputFormat::Table => say(&entry_table(&listing)),
            };
            Ok(if is_told && is_whole { GOOD } else { FAILED })
        }
    }
}

async fn checkpoint(disk: &Disk, options: &InspectOptions) -> DiskResult<u8> {
    let folder = options.path.join("ledgers");
    let folder = if disk.exists(&folder).await? { folder } else { options.path.clone() };
    let summary = match inspect::checkpoint(disk, &folder).await? {
        None => return Ok(nothing(options, "checkpoint")),
        Some(Err(damage)) => {
            complain(&format!("{}: {damage}", folder.display()));
            return Ok(FAILED);
        }
        Some(Ok(summary)) => summary,
    };
    if options.output.format == OutputFormat::Json {
        return Ok(if say_json(&summary) { GOOD } else { FAILED });
    }
    let rows: Vec<Vec<String>> = summary
        .ledgers
        .iter()
        .map(|one| {
            let states = [(one.fenced, "fenced"), (one.deleted, "deleted"), (one.limbo, "limbo")];
            let states: Vec<&str> =
                states.iter().filter(|(is_so, _)| *is_so).map(|(_, name)| *name).collect();
            vec![
                one.ledger.to_string(),
                one.last_entry.to_string(),
                one.last_add_confirmed.to_string(),
                states.join(" "),
            ]
        })
        .collect();
    say(&format!("checkpoint {}", summary.number));
    for (mark, number) in summary.marks.iter().zip(1..) {
        say(&format!(
            "replay of journal {number} from file {} offset {} group {}",
            mark.file, mark.offset, mark.sequence
        ));
    }
    let is_told = say(&table(&["ledger", "last entry", "last add confirmed", "state"], &rows));
    Ok(if is_told { GOOD } else { FAILED })
}

/// What kind of file is looked for.
#[derive(Clone, Copy)]
enum Kind {
    Journal,
    EntryLog,
}

impl Kind {
    async fn files(self, disk: &Disk, folder: &Path) -> DiskResult<Vec<DataFile>> {
        let listed = match self {
            Self::Journal => inspect::journal_files(disk, folder).await,
            Self::EntryLog => inspect::entry_logs(disk, folder).await,
        };
        match listed {
            Err(error) if error.kind == DiskErrorKind::NotFound => Ok(Vec::new()),
            other => other,
        }
    }
}

/// A data folder, the folder itself, or a file in it.
async fn find(disk: &Disk, path: &Path, below: &str, kind: Kind) -> DiskResult<Found> {
    if let (Some(parent), Some(name)) = (path.parent(), path.file_name()) {
        let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        let files = kind.files(disk, parent).await?;
        if let Some(file) = files.into_iter().find(|file| name.to_str() == Some(&file.name)) {
            return Ok(Found::File(parent.to_owned(), file.id));
        }
    }
    for folder in [path.to_owned(), path.join(below)] {
        // A path that is a file of another kind cannot be listed and is simply not it.
        let files = kind.files(disk, &folder).await.unwrap_or_default();
        if !files.is_empty() {
            return Ok(Found::Folder(files));
        }
    }
    Ok(Found::Nothing)
}

fn nothing(options: &InspectOptions, what: &str) -> u8 {
    complain(&format!("{}: no {what} there", options.path.display()));
    USAGE
}

fn list(options: &InspectOptions, files: &[DataFile]) -> u8 {
    let is_told = match options.output.format {
        OutputFormat::Json => say_json(&files),
        OutputFormat::Table => {
            let rows: Vec<Vec<String>> = files
                .iter()
                .map(|file| vec![file.name.clone(), file.id.to_string(), file.length.to_string()])
                .collect();
            say(&table(&["file", "id", "bytes"], &rows))
        }
    };
    if is_told { GOOD } else { FAILED }
}

fn journal_line(record: &JournalRecord) -> String {
    match record {
        JournalRecord::Group { offset, sequence, length, records, .. } => {
            format!("group {sequence} at {offset}, {length} bytes, {records} records")
        }
        JournalRecord::DamagedGroup { offset, sequence, damage } => {
            format!("DAMAGED group {sequence} at {offset}: {damage}")
        }
        JournalRecord::Entry { ledger, entry, last_add_confirmed, payload_bytes } => format!(
            "  entry {ledger}:{entry}, {payload_bytes} bytes, last add confirmed {last_add_confirmed}"
        ),
        JournalRecord::Bind { ledger, creator } => {
            format!("  ledger {ledger} of creator {creator:#x}")
        }
        JournalRecord::Fence { ledger, creator } => {
            format!("  fence {ledger} of creator {creator:#x}")
        }
        JournalRecord::Tombstone { ledger, creator } => {
            format!("  tombstone {ledger} of creator {creator:#x}")
        }
    }
}

fn entry_table(listing: &EntryLogListing) -> String {
    let mut rows: Vec<Vec<String>> = listing
        .entries
        .iter()
        .map(|entry| {
            vec![
                entry.offset.to_string(),
                format!("{}:{}", entry.ledger, entry.entry),
                entry.payload_bytes.to_string(),
                entry.last_add_confirmed.to_string(),
                entry.damage.clone().unwrap_or_default(),
            ]
        })
        .collect();
    for (offset, length) in &listing.damaged_stretches {
        let damage = format!("no record for {length} bytes");
        let empty = String::new;
        rows.push(vec![offset.to_string(), empty(), empty(), empty(), damage]);
    }
    let text = table(&["offset", "entry", "payload bytes", "last add confirmed", "damage"], &rows);
    if listing.header_is_good { text } else { format!("DAMAGED header\n{text}") }
}
