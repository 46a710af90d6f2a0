//! Snapshots of a member: taken, sent, received.

use super::driver::Driver;
use super::storage::decode_snapshot;
use crate::metadata::consensus::{
    Body, Entry, Event, HardState, Index, MemberId, Message, SnapshotMark, SnapshotPart, Term,
};
use crate::{in_state, mutant, reached};

impl Driver {
    /// Writes the applied state and begins the log anew, with some entries before the snapshot for members
    /// that are a little behind.
    pub(super) async fn take_snapshot(&mut self) -> Result<(), String> {
        let applied = if mutant!("M10") { self.machine.log().last_index() } else { self.applied };
        let Some(mark) = self.machine.mark_at(applied) else { return Ok(()) };
        if mark.index <= self.storage.snapshot().index {
            // Nothing new is committed: the log stays as long as it is.
            return Ok(());
        }
        reached!("metadata: a member took a snapshot");
        let _state = in_state!("metadata: a snapshot is taken");
        let store = self.shared.visible().store.clone();
        let keep_from = self.keep_from(mark.index);
        let kept: Vec<Entry> = self
            .machine
            .log()
            .entries()
            .filter(|entry| entry.index >= keep_from)
            .cloned()
            .collect();
        let hard_state = self.machine.hard_state();
        self.storage
            .begin_anew(mark.clone(), &store, hard_state, kept)
            .await
            .map_err(|error| error.to_string())?;
        let mut effects = Vec::new();
        self.step(Event::SnapshotTaken { mark, keep_from }, &mut effects);
        crate::invariant!(effects.is_empty(), "a snapshot had effects");
        Ok(())
    }

    /// The first entry kept behind a snapshot up to `mark`: so many at most, and so many bytes.
    fn keep_from(&self, mark: Index) -> Index {
        let limits = &self.config.limits;
        let mut bytes = 0;
        let covered = self.machine.log().entries().rev().filter(|entry| entry.index <= mark);
        let kept = covered.take(usize::try_from(limits.log_kept).unwrap_or(usize::MAX));
        let fits = |entry: &&Entry| {
            bytes += entry.cost() as u64;
            bytes <= limits.log_kept_bytes()
        };
        kept.take_while(fits).last().map_or(mark + 1, |entry| entry.index)
    }

    /// Sends a piece of the newest snapshot, if it is still the one meant.
    pub(super) async fn send_snapshot(
        &mut self,
        to: MemberId,
        term: Term,
        mark: SnapshotMark,
        offset: u64,
    ) -> Result<(), String> {
        if mark != *self.storage.snapshot() || offset >= self.storage.snapshot_bytes() {
            return Ok(());
        }
        let part = self.storage.snapshot_part(offset, self.config.limits.snapshot_part).await;
        let (data, last) = match part {
            Ok(part) => part,
            Err(error) => {
                tracing::warn!(%error, "a snapshot could not be read to be sent");
                return Ok(());
            }
        };
        let body = Body::Snapshot(SnapshotPart { mark, offset, data, last });
        self.send(to, &Message { term, body });
        Ok(())
    }

    /// Keeps a piece of a snapshot being received, in memory: it becomes the state, which is there too.
    pub(super) fn store_part(&mut self, offset: u64, data: &[u8]) -> Result<(), String> {
        if offset == 0 {
            self.incoming.clear();
        }
        if self.incoming.len() as u64 != offset {
            return Err(format!("a piece of a snapshot at {offset} does not follow"));
        }
        if self.incoming.len() + data.len() > self.config.snapshot_bytes_max {
            return Err("a snapshot is longer than allowed".to_owned());
        }
        self.incoming.extend_from_slice(data);
        Ok(())
    }

    /// The pieces become snapshot file, log and state. A watcher cannot be told what it missed: watches end.
    pub(super) async fn install(
        &mut self,
        mark: SnapshotMark,
        hard_state: HardState,
        entries: Vec<Entry>,
    ) -> Result<(), String> {
        reached!("metadata: a member installed a snapshot");
        let _state = in_state!("metadata: a snapshot is installed");
        let payload = bytes::Bytes::from(std::mem::take(&mut self.incoming));
        let (sent, store) = decode_snapshot(payload)?;
        if sent != mark {
            return Err(format!("the snapshot of {} says it is of {}", mark.index, sent.index));
        }
        let id = self.config.id;
        self.config.observer.tell(|observer| observer.installs(id, &mark, hard_state, &entries));
        if !mutant!("M-install") {
            let written = self.storage.begin_anew(mark.clone(), &store, hard_state, entries).await;
            written.map_err(|error| error.to_string())?;
        }
        let mut visible = self.shared.visible();
        visible.watches.begin_anew(store.revision());
        visible.store = store;
        self.applied = mark.index;
        self.config.observer.tell(|observer| observer.installed(self.config.id, &mark));
        Ok(())
    }
}
