//! Finding deleted ledgers. Only a definite "it is gone" from metadata removes anything.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::fence::bury;
use super::keeper::KeeperCommand;
use super::shared::Shared;
use super::{LedgerDirectory, LedgerPresence};
use crate::reached;
use crate::runtime::MailboxSender;

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
    for ledger in shared.ledgers.all() {
        if ledger.facts().deleted || directory.presence(ledger.id).await != LedgerPresence::Gone {
            continue;
        }
        reached!("bookie: ledger buried");
        shared.gone().insert(ledger.id);
        if let Err(reason) = bury(shared, &ledger).await {
            tracing::warn!(reason, ledger = ledger.id.0, "tombstone not written");
            return;
        }
    }
    let (done, completed) = oneshot::channel();
    if keeper.send(KeeperCommand::Collect(done)).await.is_ok() {
        let _ = completed.await;
    }
}
