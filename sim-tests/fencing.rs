//! Protects P5: after recovery the old writer of a ledger can add nothing, also when bookies were
//! restarted in between.

use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use bytes::Bytes;
use seawall::domain::{EntryId, LedgerId};
use seawall::ledger::{
    LedgerClient, LedgerConfig, Quorum, RemoteBookieConfig, WriterEnd, WriterEvents,
};
use seawall::metadata::{Metadata, RemoteMetadata, RemoteMetadataConfig};
use seawall::node::bookie_registry::RegisteredBookies;
use seawall::runtime::{Runtime, Shutdown};
use seawall::simulator::plan::Topology;

use crate::support::scenario;

#[derive(Default)]
struct Watched {
    confirmed: Mutex<Highest>,
    ended: Mutex<Option<WriterEnd>>,
}

/// Highest confirmed entry.
#[derive(Clone, Copy)]
struct Highest(EntryId);

impl Default for Highest {
    fn default() -> Self {
        Self(EntryId::NONE)
    }
}

impl WriterEvents for Watched {
    fn confirmed(&self, _ledger: LedgerId, up_to: EntryId) {
        *self.confirmed.lock().unwrap() = Highest(up_to);
    }

    fn ended(&self, _ledger: LedgerId, _last_confirmed: EntryId, reason: WriterEnd) {
        *self.ended.lock().unwrap() = Some(reason);
    }
}

fn ledgers(runtime: &Runtime) -> LedgerClient {
    let addresses = ["metadata-0:7000".to_owned()];
    let remote = RemoteMetadata::new(runtime.clone(), &addresses, RemoteMetadataConfig::default());
    let metadata: Metadata = Arc::new(remote);
    let signal = Shutdown::new().signal();
    let bookies = RegisteredBookies::start(
        runtime,
        Arc::clone(&metadata),
        None,
        RemoteBookieConfig::default(),
        signal,
    );
    LedgerClient::new(runtime.clone(), metadata, bookies, LedgerConfig::default())
}

#[test]
fn a_fence_outlives_restarts_and_stops_the_old_writer() {
    scenario(Topology::Cluster, |mut stage| async move {
        let quorum = Quorum { ensemble: 3, write: 3, ack: 2 };
        let old = stage.world.create_node("old-owner", "old-owner").runtime();
        let new = stage.world.create_node("new-owner", "new-owner").runtime();
        let (old_ledgers, new_ledgers) = (ledgers(&old), ledgers(&new));
        stage.pass(Duration::from_secs(2)).await;
        let watched = Arc::new(Watched::default());
        let events = Arc::clone(&watched) as Arc<dyn WriterEvents>;
        let writer = old_ledgers.create(quorum, "scenario", events).await.unwrap();
        writer.append(vec![Bytes::from_static(b"one"), Bytes::from_static(b"two")]).unwrap();
        stage.pass(Duration::from_secs(1)).await;
        assert_eq!(watched.confirmed.lock().unwrap().0, EntryId(1));

        let closed = new_ledgers.recover(writer.ledger()).await.unwrap();
        assert_eq!(closed.last_entry, EntryId(1));
        for name in ["bookie-0", "bookie-1", "bookie-2"] {
            assert!(stage.machine(name).power_loss());
        }
        stage.wait_until_served().await;
        stage.pass(Duration::from_secs(1)).await;

        // Refused at once, or taken and never confirmed: either is right, a confirmation is not.
        let _ = writer.append(vec![Bytes::from_static(b"three")]);
        stage.pass(Duration::from_secs(30)).await;
        assert_eq!(watched.confirmed.lock().unwrap().0, EntryId(1), "nothing after the end");
        let again = new_ledgers.recover(writer.ledger()).await.unwrap();
        assert_eq!(again.last_entry, EntryId(1), "the end never moves");
    });
}
