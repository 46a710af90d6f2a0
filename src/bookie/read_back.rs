//! What replay of the journals fills: ledgers, a half of the write cache, entry logs when that is full.

use std::sync::Arc;

use async_trait::async_trait;

use super::journal::{ReplayError, ReplayRecord, ReplayTarget};
use super::ledger_state::{FenceState, LedgerFacts, LedgerTable};
use super::record::{RecordHeader, RecordKind};
use super::space::Spaces;
use super::storage::{EntryLogWriter, LocationIndex};
use super::write_cache::Half;
use crate::domain::CreatorToken;
use crate::reached;

/// What replay fills.
pub(super) struct ReadBack {
    /// Gets the ledgers and what is said of them.
    pub ledgers: LedgerTable,
    /// Gets what does not fit in memory, as the next two say.
    pub index: LocationIndex,
    /// Writes that.
    pub writer: EntryLogWriter,
    /// Says where.
    pub spaces: Arc<Spaces>,
    /// Gets the entries.
    pub half: Half,
    /// Where it is full.
    pub half_bytes_max: usize,
    /// The journal that is read back now.
    pub journal: usize,
}

#[async_trait]
impl ReplayTarget for ReadBack {
    async fn apply(&mut self, records: Vec<ReplayRecord>) -> Result<(), ReplayError> {
        for (header, payload) in records {
            self.apply_record(header, payload)?;
        }
        if self.half.bytes() >= self.half_bytes_max {
            reached!("bookie: flush during replay");
            let full = std::mem::take(&mut self.half);
            let place = |ledger| self.ledgers.find(ledger).map(|state| self.spaces.place(&state));
            let runs = self.writer.write_half(&full, place, None).await?;
            // The mark stays: were this lost, the next start would replay the same again.
            let inserted = self.index.insert(&runs).and_then(|()| self.index.note_runs());
            inserted.map_err(|error| ReplayError::Index(error.to_string()))?;
        }
        Ok(())
    }
}

impl ReadBack {
    fn apply_record(
        &mut self,
        header: RecordHeader,
        payload: bytes::Bytes,
    ) -> Result<(), ReplayError> {
        let Self { ledgers, half, .. } = self;
        let journal = u8::try_from(self.journal).unwrap_or(u8::MAX);
        let created = || LedgerFacts::new(CreatorToken(header.number), journal);
        let other = ledgers.find(header.ledger).map(|ledger| ledger.journal);
        if let Some(other) = other.filter(|other| *other != self.journal) {
            return Err(ReplayError::Corrupt(format!(
                "journal {} holds records of ledger {}, which is in journal {}",
                self.journal + 1,
                header.ledger,
                other + 1
            )));
        }
        match header.kind {
            RecordKind::Entry => {
                let Some(ledger) = ledgers.find(header.ledger) else {
                    let entry = header.entry;
                    return Err(ReplayError::Corrupt(format!(
                        "the journal holds entry {}:{entry} of a ledger nobody created",
                        header.ledger
                    )));
                };
                let mut facts = ledger.facts();
                if facts.deleted {
                    return Ok(());
                }
                facts.last_entry = facts.last_entry.max(header.entry);
                facts.last_add_confirmed = facts.last_add_confirmed.max(header.last_add_confirmed);
                half.insert(header.ledger, &[header.into_entry(payload)]);
            }
            RecordKind::Bind => {
                ledgers.find_or_create(header.ledger, created()).facts().bind_logged = true;
            }
            RecordKind::Fence => {
                let ledger = ledgers.find_or_create(header.ledger, created());
                let mut facts = ledger.facts();
                facts.bind_logged = true;
                facts.fence = FenceState::Durable;
            }
            RecordKind::Tombstone => {
                let ledger = ledgers.find_or_create(header.ledger, created());
                let mut facts = ledger.facts();
                facts.bind_logged = true;
                facts.deleted = true;
                half.forget(header.ledger);
            }
        }
        Ok(())
    }
}
