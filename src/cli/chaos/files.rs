//! Damage to the files of a node that does not run.

use std::fs;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::runtime::mix;

/// The head of an entry log, which names it: without it the log is not one.
const LOG_HEADER_BYTES: u64 = 64;

/// Flips a bit each in some bytes of the bookie's entry logs; says where.
pub(super) fn flip_bytes(data: &Path, bytes: u64, seed: u64) -> String {
    let mut logs: Vec<PathBuf> = fs::read_dir(data.join("ledgers"))
        .map(|entries| entries.flatten().map(|entry| entry.path()).collect())
        .unwrap_or_default();
    logs.retain(|path| path.extension().is_some_and(|end| end == "entries"));
    logs.sort();
    let mut told = Vec::new();
    for number in 0..bytes {
        let draw = mix(mix(seed) ^ number);
        let Some(log) = logs.get(draw as usize % logs.len().max(1)) else { break };
        let length = fs::metadata(log).map_or(0, |facts| facts.len());
        if length <= LOG_HEADER_BYTES {
            continue;
        }
        let at = LOG_HEADER_BYTES + mix(draw) % (length - LOG_HEADER_BYTES);
        let name = log.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match flip(log, at) {
            Ok(()) => told.push(format!("{name}:{at}")),
            Err(error) => told.push(format!("{name}: {error}")),
        }
    }
    format!(
        "flipped a bit at {}",
        if told.is_empty() { "no place".to_owned() } else { told.join(", ") }
    )
}

fn flip(path: &Path, at: u64) -> std::io::Result<()> {
    let mut file = fs::OpenOptions::new().read(true).write(true).open(path)?;
    let mut byte = [0];
    file.seek(SeekFrom::Start(at))?;
    file.read_exact(&mut byte)?;
    byte[0] ^= 1;
    file.seek(SeekFrom::Start(at))?;
    file.write_all(&byte)
}

/// Deletes the index: it is made anew.
pub(super) fn remove_index(data: &Path) {
    remove(&data.join("ledgers").join("index"));
}

/// Deletes all the bookie stored, and who it was, as when its disks are replaced.
pub(super) fn remove_bookie(data: &Path) {
    remove(&data.join("journal"));
    remove(&data.join("ledgers"));
    // Not there if the bookie had not been made yet.
    let _ = fs::remove_file(data.join("bookie-id"));
}

fn remove(folder: &Path) {
    if let Err(error) = fs::remove_dir_all(folder)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        tracing::warn!(folder = %folder.display(), %error, "cannot be removed");
    }
}
