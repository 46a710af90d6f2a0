//! Cookies: who a folder belongs to.
//!
//! Each of the two folders holds a file `cookie` (JSON: format, bookie id, role). A bookie's *no* is a promise
//! about the past, so a folder that lost its content must not answer in the old name: if one cookie is
//! missing or different while the other is there, or data is there without cookies, the bookie does not
//! start. A first start is marked by the file `stamping` in the ledger folder until both cookies are
//! durable, so that a crash in the middle of it is not taken for a lost disk.

use std::path::Path;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::{BookieConfig, BookieStartError};
use crate::domain::BookieId;
use crate::runtime::{DiskErrorKind, DiskResult, Runtime};
use crate::{mutant, reached};

const FORMAT: u32 = 2;
const COOKIE_NAME: &str = "cookie";
const STAMPING_NAME: &str = "stamping";

/// The content of a cookie.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Cookie {
    format: u32,
    bookie: String,
    role: String,
}

impl Cookie {
    fn new(id: BookieId, role: &str) -> Self {
        Self { format: FORMAT, bookie: id.to_string(), role: role.to_owned() }
    }
}

/// What the cookies say.
pub(super) enum Identity {
    /// Both are there and agree.
    Known(BookieId),
    /// The folders are empty, or a first start was cut short. [`stamp`] must follow.
    Fresh,
}

/// Reads the cookies of both folders.
pub(super) async fn identify(
    runtime: &Runtime,
    config: &BookieConfig,
) -> Result<Identity, BookieStartError> {
    let disk = &runtime.disk;
    if disk.exists(&config.ledger_directory.join(STAMPING_NAME)).await? {
        reached!("bookie: first start cut short");
        return Ok(Identity::Fresh);
    }
    let journal = read(runtime, &config.journal_directory, "journal").await?;
    let ledgers = read(runtime, &config.ledger_directory, "ledgers").await?;
    match (journal, ledgers) {
        (Some(journal), Some(ledgers)) if journal == ledgers => Ok(Identity::Known(journal)),
        (Some(journal), Some(ledgers)) => Err(BookieStartError::Cookie(format!(
            "the journal folder belongs to bookie {journal}, the ledger folder to {ledgers}"
        ))),
        (None, None) => {
            for folder in [&config.journal_directory, &config.ledger_directory] {
                if has_data(runtime, folder).await? {
                    let folder = folder.display();
                    let message = format!("there is data in {folder} but no cookie");
                    return Err(BookieStartError::Cookie(message));
                }
            }
            Ok(Identity::Fresh)
        }
        (None, Some(_)) | (Some(_), None) if mutant!("S19") => Ok(Identity::Fresh),
        (None, Some(id)) => Err(missing(&config.journal_directory, id)),
        (Some(id), None) => Err(missing(&config.ledger_directory, id)),
    }
}

fn missing(folder: &Path, id: BookieId) -> BookieStartError {
    reached!("bookie: one cookie missing");
    let folder = folder.display();
    BookieStartError::Cookie(format!("{folder} has no cookie, the other folder is bookie {id}'s"))
}

/// Marks the beginning of a first start. Nothing is acknowledged until [`finish_stamping`] returns.
pub(super) async fn begin_stamping(runtime: &Runtime, config: &BookieConfig) -> DiskResult<()> {
    runtime.disk.replace_file(&config.ledger_directory.join(STAMPING_NAME), Bytes::new()).await
}

/// Writes both cookies, then ends the first start.
pub(super) async fn finish_stamping(
    runtime: &Runtime,
    config: &BookieConfig,
    id: BookieId,
) -> DiskResult<()> {
    let disk = &runtime.disk;
    let folders = [(&config.journal_directory, "journal"), (&config.ledger_directory, "ledgers")];
    for (folder, role) in folders {
        let text = serde_json::to_vec_pretty(&Cookie::new(id, role)).unwrap_or_default();
        disk.replace_file(&folder.join(COOKIE_NAME), Bytes::from(text)).await?;
    }
    disk.remove(&config.ledger_directory.join(STAMPING_NAME)).await?;
    disk.sync_directory(&config.ledger_directory).await
}

async fn read(
    runtime: &Runtime,
    folder: &Path,
    role: &str,
) -> Result<Option<BookieId>, BookieStartError> {
    let path = folder.join(COOKIE_NAME);
    let Some(text) = runtime.disk.read_file(&path).await? else { return Ok(None) };
    let wrong = |what: &str| BookieStartError::Cookie(format!("{}: {what}", path.display()));
    let cookie: Cookie = serde_json::from_slice(&text).map_err(|_| wrong("not a cookie"))?;
    if cookie.format != FORMAT {
        return Err(wrong("a format this version does not know"));
    }
    if cookie.role != role {
        return Err(wrong("the cookie of the other folder"));
    }
    let id = u64::from_str_radix(&cookie.bookie, 16).map_err(|_| wrong("not a bookie id"))?;
    Ok(Some(BookieId(id)))
}

async fn has_data(runtime: &Runtime, folder: &Path) -> DiskResult<bool> {
    match runtime.disk.list(folder).await {
        Ok(names) => Ok(names.iter().any(|entry| {
            entry.name == "checkpoint"
                || entry.name.ends_with(".journal")
                || entry.name.ends_with(".entries")
                || entry.name.ends_with(".facts")
        })),
        Err(error) if error.kind == DiskErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}
