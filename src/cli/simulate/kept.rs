//! What a campaign keeps of its runs, so that it can be interrupted and go on: a file of one JSON value a line, first what
//! was asked for and by which binary, then a report a run. Written and flushed line by line; a last line that was cut off
//! counts as not written. It is locked while a campaign uses it: the lines of two would be mixed.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::simulator::report::Report;

/// What all runs of a file have in common. A seed means the same run only for the same binary.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Heading {
    pub(super) campaign: String,
    pub(super) binary: String,
}

impl Heading {
    pub(super) fn new(campaign: String) -> Result<Self, String> {
        let read = std::env::current_exe().and_then(std::fs::read);
        let bytes = read.map_err(|error| format!("cannot read the own binary: {error}"))?;
        let binary = format!("{:08x}-{}", crc32c::crc32c(&bytes), bytes.len());
        Ok(Self { campaign, binary })
    }

    /// Why runs of a file with the heading `found` are not this campaign's.
    fn complain(&self, path: &Path, found: &Self) -> String {
        let path = path.display();
        if found.campaign != self.campaign {
            return format!(
                "{path} is of another campaign: it has runs of `sim run {}`, asked for is `sim run {}`",
                found.campaign, self.campaign
            );
        }
        format!(
            "{path} has runs of another binary ({}, this one is {}), in which a seed may mean another run: go on with that \
             one, or begin another file",
            found.binary, self.binary
        )
    }
}

/// The file of a campaign.
pub(super) struct Kept {
    path: PathBuf,
    file: File,
}

impl Kept {
    /// Opens or begins the file; what is in it already, by seed.
    pub(super) fn open(
        path: &Path,
        heading: &Heading,
    ) -> Result<(Self, BTreeMap<u64, Report>), String> {
        let wrong = |error: std::io::Error| format!("cannot use {}: {error}", path.display());
        let opened =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
        let mut file = opened.map_err(wrong)?;
        file.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => {
                format!("{} is in use by another campaign that is under way", path.display())
            }
            TryLockError::Error(error) => wrong(error),
        })?;
        let (mut reports, mut good, mut has_heading) = (BTreeMap::new(), 0, false);
        let mut reader = BufReader::new(&file);
        loop {
            let mut line = Vec::new();
            let length = reader.read_until(b'\n', &mut line).map_err(wrong)?;
            if line.last() != Some(&b'\n') {
                break;
            }
            if has_heading {
                let report: Report = serde_json::from_slice(&line).map_err(|error| {
                    format!("{} at byte {good} is no report: {error}", path.display())
                })?;
                reports.insert(report.trial.seed, report);
            } else {
                let found: Heading = serde_json::from_slice(&line)
                    .map_err(|_| format!("{} is not the file of a campaign", path.display()))?;
                if found != *heading {
                    return Err(heading.complain(path, &found));
                }
                has_heading = true;
            }
            good += length as u64;
        }
        file.set_len(good).map_err(wrong)?;
        file.seek(SeekFrom::Start(good)).map_err(wrong)?;
        let mut kept = Self { path: path.to_owned(), file };
        if !has_heading {
            kept.add(heading)?;
        }
        Ok((kept, reports))
    }

    /// Adds a line.
    pub(super) fn add(&mut self, value: &impl Serialize) -> Result<(), String> {
        let mut line = serde_json::to_vec(value).map_err(|error| error.to_string())?;
        line.push(b'\n');
        let written = self.file.write_all(&line);
        written.map_err(|error| format!("cannot write {}: {error}", self.path.display()))
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        // Closing is not enough: a child that is being started may still have the file for a moment.
        let _ = self.file.unlock();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulator::checkers::Violation;
    use crate::simulator::plan::Topology;
    use crate::simulator::trial::Trial;

    fn report(seed: u64) -> Report {
        let violation =
            Violation { promise: "P1".to_owned(), checker: String::new(), detail: String::new() };
        Report::of_failure(Trial::new(seed, Topology::Swarm), violation)
    }

    #[test]
    fn a_campaign_goes_on_where_it_was_cut_off() {
        let path = std::env::temp_dir().join(format!("seawall-kept-{}", std::process::id()));
        let heading = |what: &str| Heading { campaign: what.to_owned(), binary: "b".to_owned() };
        let (mut kept, none) = Kept::open(&path, &heading("one")).unwrap();
        assert!(none.is_empty());
        let second = Kept::open(&path, &heading("one")).err().unwrap();
        assert!(second.contains("in use") && second.contains("seawall-kept-"), "{second}");
        kept.add(&report(3)).unwrap();
        kept.add(&report(4)).unwrap();
        drop(kept);
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, &whole[..whole.len() - 5]).unwrap();
        let (mut kept, found) = Kept::open(&path, &heading("one")).unwrap();
        assert_eq!(found.keys().copied().collect::<Vec<_>>(), [3], "the last line was cut off");
        assert_eq!(found[&3].violations.len(), 1);
        kept.add(&report(9)).unwrap();
        drop(kept);
        let (_, found) = Kept::open(&path, &heading("one")).unwrap();
        assert_eq!(found.keys().copied().collect::<Vec<_>>(), [3, 9]);
        let other = Kept::open(&path, &heading("two")).err().unwrap();
        assert!(other.contains("runs of `sim run one`, asked for is `sim run two`"), "{other}");
        let newer = Heading { binary: "c".to_owned(), ..heading("one") };
        let other = Kept::open(&path, &newer).err().unwrap();
        assert!(other.contains("another binary (b, this one is c)"), "{other}");
        std::fs::write(&path, "hello\n").unwrap();
        assert!(Kept::open(&path, &heading("one")).err().unwrap().contains("not the file"));
        std::fs::remove_file(&path).unwrap();
    }
}
