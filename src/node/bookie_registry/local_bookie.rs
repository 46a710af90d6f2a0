//! The bookie of this process behind the same port as remote ones.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::registration::RegisteredBookie;
use crate::bookie::Bookie;
use crate::domain::{
    AddBatch, AddSink, CreatorToken, Entry, EntryId, LastAddConfirmed, LedgerId, ReadError,
    ReadRequest,
};
use crate::ledger::BookieClient;

/// Calls go straight to the bookie: no copy, no stream.
pub struct LocalBookie(Bookie);

impl LocalBookie {
    /// A client of this bookie.
    pub fn new(bookie: Bookie) -> Self {
        Self(bookie)
    }
}

impl RegisteredBookie for LocalBookie {
    fn takes_writes(&self) -> bool {
        let stats = self.0.stats();
        !stats.read_only && stats.poisoned.is_none()
    }

    fn set_draining(&self, draining: bool) {
        self.0.set_draining(draining);
    }
}

#[async_trait]
impl BookieClient for LocalBookie {
    fn add(&self, batch: AddBatch, sink: Arc<dyn AddSink>) {
        self.0.add(batch, sink);
    }

    async fn read(&self, request: ReadRequest) -> Result<Vec<Entry>, ReadError> {
        self.0.read(request).await
    }

    async fn last_add_confirmed(
        &self,
        ledger: LedgerId,
        creator: CreatorToken,
        fence: bool,
    ) -> Result<LastAddConfirmed, ReadError> {
        self.0.last_add_confirmed(ledger, creator, fence).await
    }

    async fn wait_last_add_confirmed(
        &self,
        ledger: LedgerId,
        creator: CreatorToken,
        beyond: EntryId,
        patience: Duration,
    ) -> Result<LastAddConfirmed, ReadError> {
        self.0.wait_last_add_confirmed(ledger, creator, beyond, patience).await
    }

    async fn tell_last_add_confirmed(
        &self,
        ledger: LedgerId,
        creator: CreatorToken,
        last_add_confirmed: EntryId,
    ) -> Result<(), ReadError> {
        self.0.tell_last_add_confirmed(ledger, creator, last_add_confirmed).await
    }
}
