//! A read of a ledger: one answer is made when the one before is taken.

use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use tokio::sync::OwnedSemaphorePermit;
use tonic::Status;

use crate::domain::{EntryId, LedgerId};
use crate::frontend::grpc::GrpcConfig;
use crate::frontend::grpc::refusal::Refusal;
use crate::ledger::{LedgerClient, LedgerReadError, LedgerReader, LedgerState};
use crate::rpc::generated::public as wire;

/// Entries of one answer.
const ENTRIES_MAX: u32 = 1024;

pub(super) struct ReadSession {
    ledgers: LedgerClient,
    reader: LedgerReader,
    next: EntryId,
    last: Option<EntryId>,
    follow: bool,
    config: GrpcConfig,
    _permit: OwnedSemaphorePermit,
}

impl ReadSession {
    pub(super) fn new(
        ledgers: LedgerClient,
        reader: LedgerReader,
        request: &wire::ReadLedgerRequest,
        config: &GrpcConfig,
        permit: OwnedSemaphorePermit,
    ) -> Result<Self, Refusal> {
        if request.first_entry < 0 {
            return Err(Refusal::invalid("the first entry is 0 or more"));
        }
        Ok(Self {
            ledgers,
            reader,
            next: EntryId(request.first_entry),
            last: request.last_entry.map(EntryId),
            follow: request.follow,
            config: config.clone(),
            _permit: permit,
        })
    }

    pub(super) fn answers(self) -> BoxStream<'static, Result<wire::ReadLedgerAnswer, Status>> {
        let answers = stream::unfold(Some(self), |session| async move {
            let mut session = session?;
            match session.answer().await {
                Ok(Some(answer)) => Some((Ok(answer), Some(session))),
                Ok(None) => None,
                Err(refusal) => Some((Err(Status::from(refusal)), None)),
            }
        });
        answers.boxed()
    }

    /// The next entries; `None` at the end.
    async fn answer(&mut self) -> Result<Option<wire::ReadLedgerAnswer>, Refusal> {
        loop {
            if self.last.is_some_and(|last| self.next > last) {
                return Ok(None);
            }
            let wanted = self.last.map_or(u32::MAX, |last| {
                u32::try_from(last.0.saturating_sub(self.next.0).saturating_add(1))
                    .unwrap_or(u32::MAX)
            });
            let bytes = u32::try_from(self.config.read_bytes).unwrap_or(u32::MAX);
            let read =
                self.reader.read(self.next, wanted.min(ENTRIES_MAX), bytes, EntryId::NONE).await;
            match read {
                Ok(entries) => {
                    self.next = EntryId(self.next.0 + entries.len() as i64);
                    let entries = entries.into_iter().map(|entry| wire::LedgerEntry {
                        entry: entry.entry.0,
                        payload: entry.payload,
                    });
                    return Ok(Some(wire::ReadLedgerAnswer { entries: entries.collect() }));
                }
                Err(LedgerReadError::BeyondEnd { .. }) => {
                    if self.has_ended().await? || !self.follow {
                        return Ok(None);
                    }
                    let (patience, pause) = (self.config.follow_patience, self.config.follow_pause);
                    self.reader.wait_beyond(self.next.previous(), patience, pause).await;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Whether nothing is to come behind what was read.
    async fn has_ended(&self) -> Result<bool, Refusal> {
        let ledger: LedgerId = self.reader.ledger();
        let record = self.ledgers.record(ledger).await?;
        Ok(match record.ok_or(LedgerReadError::NoLedger(ledger))?.state {
            LedgerState::Closed { last_entry, .. } => self.next > last_entry,
            LedgerState::Open | LedgerState::InRecovery => false,
        })
    }
}
