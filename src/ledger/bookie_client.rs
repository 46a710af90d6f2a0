//! The port to bookies. `node` fills it with the in-process bookie or with a gRPC stream to a remote one;
//! the protocol above cannot tell them apart.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::domain::{
    AddBatch, AddSink, BookieId, CreatorToken, Entry, EntryId, LastAddConfirmed, LedgerId, Rack,
    ReadError, ReadRequest,
};

/// One bookie, wherever it is. Deadlines are the caller's.
#[async_trait]
pub trait BookieClient: Send + Sync {
    /// Sends entries; never blocks. The answer comes to `sink`, exactly once.
    fn add(&self, batch: AddBatch, sink: Arc<dyn AddSink>);
    /// Reads a contiguous run of entries that begins with `request.first` and stops before the first
    /// entry missing here. Entries come as stored; callers verify digests.
    async fn read(&self, request: ReadRequest) -> Result<Vec<Entry>, ReadError>;
    /// What this bookie knows of the ledger's end; with `fence`, fences durably first. A ledger never
    /// seen here answers [`EntryId::NONE`] twice (after creating it, fenced, if `fence`).
    async fn last_add_confirmed(
        &self,
        ledger: LedgerId,
        creator: CreatorToken,
        fence: bool,
    ) -> Result<LastAddConfirmed, ReadError>;
    /// The same without a fence, once last add confirmed is beyond `beyond`, the ledger is fenced there, or the
    /// bookie's `patience` is over (long poll). One that cannot wait, or has too many callers waiting, answers
    /// at once.
    async fn wait_last_add_confirmed(
        &self,
        ledger: LedgerId,
        creator: CreatorToken,
        _beyond: EntryId,
        _patience: Duration,
    ) -> Result<LastAddConfirmed, ReadError> {
        self.last_add_confirmed(ledger, creator, false).await
    }
    /// Tells the bookie a last add confirmed outside any entry. A hint: may be lost.
    async fn tell_last_add_confirmed(
        &self,
        ledger: LedgerId,
        creator: CreatorToken,
        last_add_confirmed: EntryId,
    ) -> Result<(), ReadError>;
}

/// All bookies of the cluster.
pub trait BookiePool: Send + Sync {
    /// The client of one bookie. A bookie that is not registered gives a client whose calls fail with
    /// `Unreachable`.
    fn bookie(&self, id: BookieId) -> Arc<dyn BookieClient>;
    /// Bookies that take new ledgers now, in id order.
    fn writable(&self) -> Vec<BookieId>;
    /// What a bookie fails together with; the unnamed rack if nobody said.
    fn rack(&self, _id: BookieId) -> Rack {
        Rack::default()
    }
}
