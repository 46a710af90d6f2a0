//! Finding ledgers that were deleted, or are kept by other bookies now. Only a definite answer from
//! metadata removes anything.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::fence::{begin_burial, end_burial};
use super::keeper::KeeperCommand;
use super::ledger_state::LedgerState;
use super::shared::Shared;
use super::{LedgerDirectory, LedgerPresence};
use crate::domain::{EntryId, LedgerId};
use crate::reached;
use crate::runtime::MailboxSender;

/// Tombstones queued for the journal before they are waited for: they share groups.
const BURIED_AT_ONCE: usize = 256;

/// Collects every `garbage_interval` until the bookie stops.
pub(super) async fn run(
    shared: Arc<Shared>,
    directory: Arc<dyn LedgerDirectory>,
    keeper: MailboxSender<KeeperCommand>,
) {
    let stop = shared.shutdown.signal();
    loop {
        tokio::select! {
            biased;
            () = stop.triggered() => return,
            () = shared.runtime.clock.sleep(shared.config.garbage_interval) => {}
        }
        tokio::select! {
            biased;
            () = stop.triggered() => return,
            () = collect(&shared, directory.as_ref(), &keeper) => {}
        }
    }
}

/// Asks for each ledger, buries those that are gone, drops the entries of those that are elsewhere, has
/// the keeper clean up.
pub(super) async fn collect(
    shared: &Shared,
    directory: &dyn LedgerDirectory,
    keeper: &MailboxSender<KeeperCommand>,
) {
    let kept: Vec<Arc<LedgerState>> =
        shared.ledgers.all().into_iter().filter(|ledger| !ledger.facts().deleted).collect();
    let ids: Vec<LedgerId> = kept.iter().map(|ledger| ledger.id).collect();
    let presences = directory.presences(&ids, shared.id).await;
    let (mut gone, mut leaving) = (Vec::new(), Vec::new());
    for (ledger, presence) in kept.into_iter().zip(presences) {
        match presence {
            LedgerPresence::Gone => gone.push(ledger),
            LedgerPresence::Elsewhere => {
                if drop_if_released(shared, &ledger, directory).await {
                    leaving.push(ledger.id);
                }
            }
            LedgerPresence::Exists | LedgerPresence::Unknown => {}
        }
    }
    if let Err(reason) = bury(shared, &gone).await {
        tracing::warn!(reason, "tombstone not written");
    }
    let (done, completed) = oneshot::channel();
    if keeper.send(KeeperCommand::Collect(done)).await.is_ok() {
        let _ = completed.await;
    }
    for ledger in leaving {
        // If the keeper did not get to it the next round asks for leave again: copies may come from now on.
        shared.gone().remove(&ledger);
        shared.leaving.remove(ledger);
    }
}

/// Buries ledgers that are gone; stops at the first tombstone that is not written.
async fn bury(shared: &Shared, gone: &[Arc<LedgerState>]) -> Result<(), String> {
    for some in gone.chunks(BURIED_AT_ONCE) {
        reached!("bookie: ledger buried");
        shared.gone().extend(some.iter().map(|ledger| ledger.id));
        let buried: Vec<_> = some.iter().map(|ledger| begin_burial(shared, ledger)).collect();
        for buried in buried {
            end_burial(buried).await?;
        }
    }
    Ok(())
}

/// A ledger kept elsewhere. The order matters: first no copy is taken any more, then leave is asked, which
/// makes everybody who copied something here before look again, then the entries go. Fence and creator
/// are remembered for ever. True if the keeper is to drop them.
async fn drop_if_released(
    shared: &Shared,
    ledger: &Arc<LedgerState>,
    directory: &dyn LedgerDirectory,
) -> bool {
    let is_stored = match shared.index_said(shared.index.page(ledger.id, EntryId::FIRST)) {
        Ok(page) => page.first().is_some_and(|run| run.ledger == ledger.id),
        Err(_) => return false,
    };
    if !is_stored && !shared.cache.lock().holds(ledger.id) {
        return false;
    }
    {
        // Under the ledger's lock: whatever was admitted before is in the journal's queue already.
        let _facts = ledger.facts();
        shared.leaving.insert(ledger.id);
    }
    let released = directory.release(ledger.id, shared.id).await;
    if released {
        reached!("bookie: entries of a ledger kept elsewhere dropped");
        shared.gone().insert(ledger.id);
    } else {
        shared.leaving.remove(ledger.id);
    }
    released
}
