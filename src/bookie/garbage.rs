//! Finding deleted ledgers. Only a definite "it is gone" from metadata removes anything.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::fence::{begin_burial, end_burial};
use super::keeper::KeeperCommand;
use super::ledger_state::LedgerState;
use super::shared::Shared;
use super::{LedgerDirectory, LedgerPresence};
use crate::domain::LedgerId;
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

/// Asks for each ledger, buries those that are gone, has the keeper clean up.
pub(super) async fn collect(
    shared: &Shared,
    directory: &dyn LedgerDirectory,
    keeper: &MailboxSender<KeeperCommand>,
) {
    let kept: Vec<Arc<LedgerState>> =
        shared.ledgers.all().into_iter().filter(|ledger| !ledger.facts().deleted).collect();
    let ids: Vec<LedgerId> = kept.iter().map(|ledger| ledger.id).collect();
    let presences = directory.presences(&ids).await;
    let gone: Vec<Arc<LedgerState>> = kept
        .into_iter()
        .zip(presences)
        .filter(|(_, presence)| *presence == LedgerPresence::Gone)
        .map(|(ledger, _)| ledger)
        .collect();
    for some in gone.chunks(BURIED_AT_ONCE) {
        reached!("bookie: ledger buried");
        shared.gone().extend(some.iter().map(|ledger| ledger.id));
        let buried: Vec<_> = some.iter().map(|ledger| begin_burial(shared, ledger)).collect();
        for (ledger, buried) in some.iter().zip(buried) {
            if let Err(reason) = end_burial(buried).await {
                tracing::warn!(reason, ledger = ledger.id.0, "tombstone not written");
                return;
            }
        }
    }
    let (done, completed) = oneshot::channel();
    if keeper.send(KeeperCommand::Collect(done)).await.is_ok() {
        let _ = completed.await;
    }
}
