//! What a bookie finds damaged on its own disks becomes work for repair.

use std::sync::Arc;

use crate::bookie::Bookie;
use crate::ledger::repair::{Flaw, FlawKind, Markers, RepairConfig};
use crate::metadata::Metadata;
use crate::reached;
use crate::runtime::{Runtime, Shutdown};

/// Asks the bookie now and then, until the stop.
pub(super) fn tell_damage(
    runtime: &Runtime,
    metadata: &Metadata,
    bookie: &Bookie,
    config: &RepairConfig,
    stop: &Shutdown,
) {
    let (stop, clock, interval) =
        (stop.signal(), runtime.clock.clone(), config.replicator_interval);
    let (markers, bookie) = (Markers::new(Arc::clone(metadata)), bookie.clone());
    let telling = async move {
        loop {
            clock.sleep(interval).await;
            for ledger in bookie.take_damaged() {
                let flaw = Flaw { bookie: bookie.id(), kind: FlawKind::Corrupt };
                reached!("registry: a bookie's damage was told");
                // If it is not heard the scrubber finds it again.
                if let Err(error) = markers.note(ledger, &[flaw]).await {
                    tracing::info!(%ledger, %error, "cannot mark a damaged ledger");
                }
            }
        }
    };
    drop(runtime.tasks.spawn("bookie damage", async move {
        tokio::select! {
            biased;
            () = stop.triggered() => {}
            () = telling => {}
        }
    }));
}
