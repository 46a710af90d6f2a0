//! Journal files: names, pre-writing, recycling.
//!
//! Two tasks want files: the writer takes one when it rolls, the keeper lets some go. Which files there are
//! is therefore kept in one list under one lock, taken from the folder once at start. A listing made later
//! would be old by the time it is used: a file renamed meanwhile would be handed out twice.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use bytes::Bytes;

use crate::mutant;
use crate::runtime::{CreateMode, Disk, DiskErrorKind, DiskResult, File, OpenMode};

const CHUNK_BYTES: usize = 1024 * 1024;
/// What files are pre-written with; takes no room in the program, nor time to make.
static ZEROS: [u8; CHUNK_BYTES] = [0; CHUNK_BYTES];
/// Files kept ready to be written over, beside those in use.
const SPARES_MAX: usize = 8;
const SPARE_NAME: &str = "next.spare";

/// The name of a journal file.
pub(in crate::bookie) fn journal_file_name(id: u64) -> String {
    format!("{id:016x}.journal")
}

/// The id in a journal file's name.
pub(in crate::bookie) fn journal_file_id(name: &str) -> Option<u64> {
    let id = name.strip_suffix(".journal")?;
    (id.len() == 16).then(|| u64::from_str_radix(id, 16).ok()).flatten()
}

/// Which files there are. Each is in one of the two places, or is being renamed or removed.
#[derive(Default)]
struct Inventory {
    /// Files that may hold groups nothing else has yet, and their lengths.
    used: BTreeMap<u64, u64>,
    /// Files to be used again; at most [`SPARES_MAX`].
    spares: Vec<u64>,
}

/// The journal's folder. Cheap to clone.
#[derive(Clone)]
pub(in crate::bookie) struct JournalFiles {
    disk: Disk,
    directory: PathBuf,
    file_bytes: u64,
    inventory: Arc<Mutex<Inventory>>,
    // Held while a spare is written, so that two tasks never write it at once.
    prewriting: Arc<tokio::sync::Mutex<()>>,
}

impl JournalFiles {
    /// The files of this folder.
    pub fn new(disk: Disk, directory: PathBuf, file_bytes: u64) -> Self {
        Self { disk, directory, file_bytes, inventory: Arc::default(), prewriting: Arc::default() }
    }

    /// Length at which a file is full.
    pub const fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    fn inventory(&self) -> std::sync::MutexGuard<'_, Inventory> {
        self.inventory.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Takes stock of the files former lives have left. Once, before any is begun or retired by this one.
    pub async fn take_stock(&self) -> DiskResult<()> {
        let files = self.list().await?;
        let mut inventory = self.inventory();
        // A first start has stocked spares before: counted a second time, they would be renamed twice.
        let Inventory { used, spares } = &mut *inventory;
        used.extend(files.into_iter().filter(|(id, _)| !spares.contains(id)));
        Ok(())
    }

    /// A group longer than a file made this one longer than the others: it is not used again.
    pub fn outgrown(&self, id: u64, length: u64) {
        self.inventory().used.insert(id, length);
    }

    fn path(&self, id: u64) -> PathBuf {
        self.directory.join(journal_file_name(id))
    }

    /// Ids and lengths of all journal files, in id order.
    pub async fn list(&self) -> DiskResult<Vec<(u64, u64)>> {
        let mut files: Vec<(u64, u64)> = self
            .disk
            .list(&self.directory)
            .await?
            .iter()
            .filter_map(|entry| Some((journal_file_id(&entry.name)?, entry.length)))
            .collect();
        files.sort_unstable();
        Ok(files)
    }

    /// Opens a file for replay.
    pub async fn open(&self, id: u64) -> DiskResult<File> {
        self.disk.open(&self.path(id), CreateMode::Existing, OpenMode::Shared).await
    }

    /// Makes a file called `id` ready for groups: a retired file renamed, an unused spare, or a new one
    /// pre-written now. Its name is durable on return.
    pub async fn begin(&self, id: u64) -> DiskResult<File> {
        let path = self.path(id);
        let retired = self.inventory().spares.pop();
        if let Some(old) = retired {
            crate::reached!("bookie: journal file recycled");
            self.disk.rename(&self.path(old), &path).await?;
            self.inventory().used.insert(id, self.file_bytes);
        } else {
            let _guard = self.prewriting.lock().await;
            let spare = self.directory.join(SPARE_NAME);
            if !self.disk.exists(&spare).await? {
                self.prewrite().await?;
            }
            self.disk.rename(&spare, &path).await?;
            self.inventory().used.insert(id, self.file_bytes);
        }
        if !mutant!("S-name") {
            self.disk.sync_directory(&self.directory).await?;
        }
        self.disk.open(&path, CreateMode::Existing, OpenMode::Dedicated).await
    }

    /// Pre-writes what a journal in steady use turns over, under ids from `first` on, and answers the first
    /// id not used. Done once in a bookie's life, so that no zeros are written beside real work: the files
    /// lie below the mark, and are found as spares. Stops early if the disk is nearly full.
    pub async fn stock(&self, first: u64, unflushed_bytes_max: u64) -> DiskResult<u64> {
        let _guard = self.prewriting.lock().await;
        let wanted = unflushed_bytes_max.div_ceil(self.file_bytes.max(1)) + 3;
        let wanted = wanted.min(SPARES_MAX as u64);
        for id in first..first + wanted {
            let spare = self.directory.join(SPARE_NAME);
            let written = match self.disk.free_space(&self.directory).await? {
                free if free / 4 < self.file_bytes * wanted => return Ok(id),
                _ => self.prewrite().await,
            };
            match written {
                Err(error) if error.kind == DiskErrorKind::Full => return Ok(id),
                written => written?,
            }
            self.disk.rename(&spare, &self.path(id)).await?;
            self.inventory().spares.push(id);
        }
        Ok(first + wanted)
    }

    /// Writes a file full of zeros. Real zeros, not a hole: overwriting allocated blocks needs no
    /// commit of the file system's own journal at every sync.
    async fn prewrite(&self) -> DiskResult<()> {
        let unfinished = self.directory.join("next.unfinished");
        let result = self.write_zeros(&unfinished).await;
        if result.is_err() {
            // Gives the space back if it was that; the first error is the one to tell.
            let _ = self.disk.remove(&unfinished).await;
        }
        result
    }

    async fn write_zeros(&self, unfinished: &Path) -> DiskResult<()> {
        let file =
            self.disk.open(unfinished, CreateMode::CreateIfMissing, OpenMode::Shared).await?;
        file.set_length(0).await?;
        let zeros = Bytes::from_static(&ZEROS);
        let mut offset = 0;
        while offset < self.file_bytes {
            let length = (self.file_bytes - offset).min(CHUNK_BYTES as u64);
            let part = zeros.slice(..usize::try_from(length).unwrap_or(CHUNK_BYTES));
            file.write_at(offset, vec![part]).await?;
            offset += length;
        }
        file.sync().await?;
        self.disk.rename(unfinished, &self.directory.join(SPARE_NAME)).await
    }

    /// Lets the files before `behind` go: a few are kept as spares, the others removed. Called by one task
    /// only. Files that could not be removed are tried again the next time.
    pub async fn retire(&self, behind: u64) -> DiskResult<()> {
        let mut unwanted = self.sort_out(behind);
        while let Some((id, _)) = unwanted.first_key_value() {
            match self.disk.remove(&self.path(*id)).await {
                Err(error) if error.kind != DiskErrorKind::NotFound => {
                    self.inventory().used.append(&mut unwanted);
                    return Err(error);
                }
                _ => unwanted.pop_first(),
            };
        }
        Ok(())
    }

    /// Takes the files before `behind` out of use; returns those not wanted as spares.
    fn sort_out(&self, behind: u64) -> BTreeMap<u64, u64> {
        let mut inventory = self.inventory();
        let kept = inventory.used.split_off(&behind);
        let retired = std::mem::replace(&mut inventory.used, kept);
        let mut unwanted = BTreeMap::new();
        for (id, length) in retired {
            if length == self.file_bytes && inventory.spares.len() < SPARES_MAX {
                inventory.spares.push(id);
            } else {
                unwanted.insert(id, length);
            }
        }
        unwanted
    }
}
