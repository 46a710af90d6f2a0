//! A file that a campaign writes at its end, made at its beginning: hours of work must not end in a folder that is
//! not there.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

pub(super) struct OutputFile {
    path: PathBuf,
    file: File,
}

impl OutputFile {
    /// Begins the file; what was there before is gone.
    pub(super) fn begin(path: &Path) -> Result<Self, String> {
        let file = File::create(path)
            .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        Ok(Self { path: path.to_owned(), file })
    }

    /// Writes all of it.
    pub(super) fn finish(mut self, text: &str) -> Result<(), String> {
        let written = self.file.write_all(text.as_bytes()).and_then(|()| self.file.sync_all());
        written.map_err(|error| format!("cannot write {}: {error}", self.path.display()))
    }
}
