//! Cookies: who a folder belongs to.
//!
//! Each folder holds a file `cookie` (JSON: format, bookie id, role; the first ledger folder's also names the
//! roles of all folders if there are more than two). A bookie's *no* is a promise about the past, so a folder
//! that lost its content must not answer in the old name: if a cookie is missing or different while another is
//! there, or data is there without cookies, the bookie does not start. A first start is marked by the file
//! `stamping` in the ledger folder until all cookies are durable, so that a crash in the middle of it is not
//! taken for a lost disk.
//!
//! A folder is added by an operator's word only: a file `adopt` in the empty folder, which was never the
//! bookie's.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::{BookieConfig, BookieStartError};
use crate::domain::BookieId;
use crate::runtime::{DiskErrorKind, DiskResult, Runtime};
use crate::{mutant, reached};

const COOKIE_NAME: &str = "cookie";
const STAMPING_NAME: &str = "stamping";

/// Makes the bookie take an empty folder that was not its own before.
const ADOPT_NAME: &str = "adopt";
const JOURNAL: &str = "journal";
const LEDGERS: &str = "ledgers";

/// The content of a cookie.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Cookie {
    format: u32,
    bookie: String,
    role: String,
    /// Roles of all folders; none: `journal` and `ledgers`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    folders: Vec<String>,
}

/// A folder of the bookie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Folder {
    /// Where it is.
    pub path: PathBuf,
    role: String,
}

/// All folders: the first journal's, the first ledger directory, the others of either kind by their place in the
/// list.
pub(super) fn folders(config: &BookieConfig) -> Vec<Folder> {
    let folder = |path: &Path, role: String| Folder { path: path.to_owned(), role };
    let others = |more: &[PathBuf], kind: &str| -> Vec<Folder> {
        more.iter().zip(2..).map(|(path, n)| folder(path, format!("{kind}-{n}"))).collect()
    };
    [
        folder(&config.journal_directory, JOURNAL.to_owned()),
        folder(&config.ledger_directory, LEDGERS.to_owned()),
    ]
    .into_iter()
    .chain(others(&config.more_ledger_directories, LEDGERS))
    .chain(others(&config.more_journal_directories, JOURNAL))
    .collect()
}

/// What the cookies say, and the format that they are to have.
pub(super) struct Identified {
    /// Who the folders belong to.
    pub identity: Identity,
    /// The format of the level that is written, or the higher one that was.
    pub format: u32,
    /// Folders whose cookies have a lower format. [`raise`] must follow.
    pub behind: Vec<Folder>,
}

/// What the cookies say.
pub(super) enum Identity {
    /// All are there and agree.
    Known(BookieId),
    /// The same but for new folders the operator wants added. [`adopt`] must follow.
    Grown(BookieId, Vec<Folder>),
    /// The folders are empty, or a first start was cut short. [`finish_stamping`] must follow.
    Fresh,
}

/// Reads the cookies of all folders.
pub(super) async fn identify(
    runtime: &Runtime,
    config: &BookieConfig,
) -> Result<Identified, BookieStartError> {
    let disk = &runtime.disk;
    let written = config.formats.writes.stored().cookie;
    let found = |identity| Identified { identity, format: written, behind: Vec::new() };
    if disk.exists(&config.ledger_directory.join(STAMPING_NAME)).await? {
        reached!("bookie: first start cut short");
        return Ok(found(Identity::Fresh));
    }
    let folders = folders(config);
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for folder in &folders {
        match read(runtime, config, folder).await? {
            Some((id, cookie)) => with.push((folder, id, cookie)),
            None => without.push(folder),
        }
    }
    let Some((first, id, _)) = with.first() else {
        for folder in &folders {
            refuse_data(runtime, folder).await?;
        }
        return Ok(found(Identity::Fresh));
    };
    if let Some((other, theirs, _)) = with.iter().find(|(_, theirs, _)| theirs != id) {
        let (first, other) = (first.path.display(), other.path.display());
        let message = format!("{first} belongs to bookie {id}, {other} to {theirs}");
        return Err(BookieStartError::Cookie(message));
    }
    if !without.is_empty() && mutant!("S19") {
        return Ok(found(Identity::Fresh));
    }
    let listed = with.iter().find(|(folder, ..)| folder.role == LEDGERS);
    let known = match listed {
        Some((_, _, cookie)) if !cookie.folders.is_empty() => cookie.folders.clone(),
        _ => vec![JOURNAL.to_owned(), LEDGERS.to_owned()],
    };
    if let Some(role) = known.iter().find(|role| !folders.iter().any(|f| f.role == **role)) {
        reached!("bookie: a folder is not in the configuration");
        let message =
            format!("bookie {id} has a folder {role:?} that the configuration leaves out");
        return Err(BookieStartError::Cookie(message));
    }
    let mut added: Vec<Folder> = Vec::new();
    for folder in without {
        if known.contains(&folder.role) {
            reached!("bookie: one cookie missing");
            let path = folder.path.display();
            let message = format!("{path} has no cookie, the other folders are bookie {id}'s");
            return Err(BookieStartError::Cookie(message));
        }
        if !disk.exists(&folder.path.join(ADOPT_NAME)).await? {
            reached!("bookie: a new folder without a word of the operator");
            let (path, role) = (folder.path.display(), &folder.role);
            let message = format!(
                "{path} ({role:?}) is not one of bookie {id}'s folders; to add it, put an empty \
                 file named {ADOPT_NAME} in it"
            );
            return Err(BookieStartError::Cookie(message));
        }
        refuse_data(runtime, folder).await?;
        added.push(folder.clone());
    }
    // An adoption that was cut short has left the cookie and not the list.
    added
        .extend(with.iter().filter(|(f, ..)| !known.contains(&f.role)).map(|(f, ..)| (*f).clone()));
    let format = with.iter().map(|(.., cookie)| cookie.format).fold(written, u32::max);
    let behind = with.iter().filter(|(.., cookie)| cookie.format < format);
    let behind = behind.map(|(folder, ..)| (*folder).clone()).collect();
    let identity = match added.is_empty() {
        true => Identity::Known(*id),
        false => Identity::Grown(*id, added),
    };
    Ok(Identified { identity, format, behind })
}

/// Gives cookies the format of the level that is about to be written, before anything else is: a version that
/// does not know the level refuses the folder by its cookie. Never back: what was written stays.
pub(super) async fn raise(
    runtime: &Runtime,
    config: &BookieConfig,
    id: BookieId,
    format: u32,
    behind: &[Folder],
) -> DiskResult<()> {
    if behind.is_empty() || mutant!("V-cookie") {
        return Ok(());
    }
    reached!("bookie: cookies raised to another format level");
    let folders = folders(config);
    for folder in behind {
        write(runtime, folder, id, format, &folders).await?;
    }
    Ok(())
}

/// Makes empty folders the bookie's: first their cookies, then the list.
pub(super) async fn adopt(
    runtime: &Runtime,
    config: &BookieConfig,
    id: BookieId,
    added: &[Folder],
    format: u32,
) -> DiskResult<()> {
    reached!("bookie: folder added");
    let folders = folders(config);
    let first = folders.iter().filter(|folder| folder.role == LEDGERS);
    for folder in added.iter().chain(first) {
        write(runtime, folder, id, format, &folders).await?;
    }
    for folder in added {
        match runtime.disk.remove(&folder.path.join(ADOPT_NAME)).await {
            Err(error) if error.kind != DiskErrorKind::NotFound => return Err(error),
            _ => tracing::info!(folder = %folder.path.display(), "folder added"),
        }
    }
    Ok(())
}

async fn write(
    runtime: &Runtime,
    folder: &Folder,
    id: BookieId,
    format: u32,
    folders: &[Folder],
) -> DiskResult<()> {
    let lists = folder.role == LEDGERS && folders.len() > 2;
    let cookie = Cookie {
        format,
        bookie: id.to_string(),
        role: folder.role.clone(),
        folders: folders.iter().filter(|_| lists).map(|folder| folder.role.clone()).collect(),
    };
    let text = serde_json::to_vec_pretty(&cookie).unwrap_or_default();
    runtime.disk.replace_file(&folder.path.join(COOKIE_NAME), Bytes::from(text)).await
}

/// Marks the beginning of a first start. Nothing is acknowledged until [`finish_stamping`] returns.
pub(super) async fn begin_stamping(runtime: &Runtime, config: &BookieConfig) -> DiskResult<()> {
    runtime.disk.replace_file(&config.ledger_directory.join(STAMPING_NAME), Bytes::new()).await
}

/// Writes all cookies, then ends the first start.
pub(super) async fn finish_stamping(
    runtime: &Runtime,
    config: &BookieConfig,
    id: BookieId,
) -> DiskResult<()> {
    let disk = &runtime.disk;
    let folders = folders(config);
    let format = config.formats.writes.stored().cookie;
    if mutant!("S-stamp") {
        disk.remove(&config.ledger_directory.join(STAMPING_NAME)).await?;
    }
    for folder in &folders {
        write(runtime, folder, id, format, &folders).await?;
    }
    if mutant!("S-stamp") {
        return Ok(());
    }
    disk.remove(&config.ledger_directory.join(STAMPING_NAME)).await?;
    disk.sync_directory(&config.ledger_directory).await
}

async fn read(
    runtime: &Runtime,
    config: &BookieConfig,
    folder: &Folder,
) -> Result<Option<(BookieId, Cookie)>, BookieStartError> {
    let path = folder.path.join(COOKIE_NAME);
    let Some(text) = runtime.disk.read_file(&path).await? else { return Ok(None) };
    let wrong = |what: &str| BookieStartError::Cookie(format!("{}: {what}", path.display()));
    let cookie: Cookie = serde_json::from_slice(&text).map_err(|_| wrong("not a cookie"))?;
    let reads_up_to = config.formats.reads_up_to;
    if reads_up_to.known(|formats| formats.cookie == cookie.format).is_none() {
        let (found, known) = (cookie.format, reads_up_to.stored().cookie);
        return Err(wrong(&format!("format {found}, this version reads up to {known}")));
    }
    if cookie.role != folder.role {
        let what = format!("this is folder {:?}, configured as {:?}", cookie.role, folder.role);
        return Err(wrong(&what));
    }
    let id = u64::from_str_radix(&cookie.bookie, 16).map_err(|_| wrong("not a bookie id"))?;
    Ok(Some((BookieId(id), cookie)))
}

async fn refuse_data(runtime: &Runtime, folder: &Folder) -> Result<(), BookieStartError> {
    if has_data(runtime, &folder.path).await? {
        let message = format!("there is data in {} but no cookie", folder.path.display());
        return Err(BookieStartError::Cookie(message));
    }
    Ok(())
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
