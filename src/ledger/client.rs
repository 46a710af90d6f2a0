//! The ledger client's door: what the broker (and the ledger API) calls.

use std::sync::Arc;

use super::create::create_record;
use super::ensemble::Spread;
use super::records::Records;
use super::recovery::{Recoverer, recover};
use super::{
    BookiePool, CreateError, DeleteError, LedgerConfig, LedgerReadError, LedgerReader,
    LedgerRecord, LedgerWriter, Quorum, RecoveryError, WriterEnd, writer,
};
use crate::domain::{EntryId, LedgerId};
use crate::metadata::Metadata;
use crate::runtime::{Random, Runtime};

/// Told by a writer, from its own task, in order; must be short and must not block.
pub trait WriterEvents: Send + Sync {
    /// Every entry up to and including `up_to` is committed. `up_to` only grows.
    fn confirmed(&self, ledger: LedgerId, up_to: EntryId);
    /// The writer ended; nothing follows. Entries above `last_confirmed` have an unknown outcome.
    fn ended(&self, ledger: LedgerId, last_confirmed: EntryId, reason: WriterEnd);
}

/// A ledger's immutable end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClosedLedger {
    /// The ledger.
    pub ledger: LedgerId,
    /// Its last entry, [`EntryId::NONE`] if empty.
    pub last_entry: EntryId,
    /// Bytes of payload.
    pub length: u64,
}

/// Creates, opens, recovers and deletes ledgers. Cheap to clone.
#[derive(Clone)]
pub struct LedgerClient {
    inner: Arc<Inner>,
}

struct Inner {
    runtime: Runtime,
    records: Records,
    bookies: Arc<dyn BookiePool>,
    config: LedgerConfig,
    random: Random,
}

impl LedgerClient {
    /// A client over metadata and bookies. One per node: two would draw the same random numbers.
    pub fn new(
        runtime: Runtime,
        metadata: Metadata,
        bookies: Arc<dyn BookiePool>,
        config: LedgerConfig,
    ) -> Self {
        let random = runtime.random.fork("ledger-client");
        let records = Records::new(metadata);
        Self { inner: Arc::new(Inner { runtime, records, bookies, config, random }) }
    }

    /// Creates a ledger (id from the cluster-wide counter `/ledger-id`) and its writer.
    pub async fn create(
        &self,
        quorum: Quorum,
        purpose: &str,
        events: Arc<dyn WriterEvents>,
    ) -> Result<LedgerWriter, CreateError> {
        let Inner { runtime, records, bookies, config, random } = &*self.inner;
        let spread = Spread { quorum, racks_min: config.racks_min };
        let bookies_min = config.bookies_min(quorum);
        let pool = bookies.as_ref();
        let record = create_record(records, pool, random, spread, bookies_min, purpose).await?;
        Ok(writer::start(runtime, records, bookies, config, &record, events))
    }

    /// The ledger's record, `None` if there is none.
    pub async fn record(&self, ledger: LedgerId) -> Result<Option<LedgerRecord>, LedgerReadError> {
        Ok(self.inner.records.load(ledger).await?.map(|found| found.record))
    }

    /// Opens without recovery: reads up to the last add confirmed it can learn, never fences.
    pub async fn open(&self, ledger: LedgerId) -> Result<LedgerReader, LedgerReadError> {
        let Inner { runtime, records, bookies, config, random } = &*self.inner;
        let found = records.load(ledger).await?.ok_or(LedgerReadError::NoLedger(ledger))?;
        let sticky = random.below(u64::from(found.record.quorum.ensemble)) as usize;
        Ok(LedgerReader::new(
            runtime.clock.clone(),
            Arc::clone(bookies),
            config.clone(),
            records.clone(),
            found.record,
            sticky,
        ))
    }

    /// Fences the ledger, finds its end, closes it. Idempotent; harmless when run twice at once; on a
    /// closed ledger just answers its end. Tries an undecided ledger again a few times first.
    pub async fn recover(&self, ledger: LedgerId) -> Result<ClosedLedger, RecoveryError> {
        let Inner { runtime, records, bookies, config, random } = &*self.inner;
        let recoverer = Recoverer {
            runtime: runtime.clone(),
            records: records.clone(),
            bookies: Arc::clone(bookies),
            config: config.clone(),
            random: random.clone(),
        };
        recover(&recoverer, ledger).await
    }

    /// Removes the ledger's record; bookies drop its data when they next compare with metadata.
    pub async fn delete(&self, ledger: LedgerId) -> Result<(), DeleteError> {
        Ok(self.inner.records.delete(ledger).await?)
    }
}
