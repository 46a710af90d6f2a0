//! Protects P5: after recovery the old writer of a ledger can add nothing, also when bookies were
//! restarted in between.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use seawall::domain::EntryId;
use seawall::ledger::Quorum;
use seawall::simulator::plan::Topology;

use crate::support::ledgers::{Watched, ledgers, metadata_of};
use crate::support::scenario;

#[test]
fn a_fence_outlives_restarts_and_stops_the_old_writer() {
    scenario(Topology::Cluster, |mut stage| async move {
        let quorum = Quorum { ensemble: 3, write: 3, ack: 2 };
        let old = stage.world.create_node("old-owner", "old-owner").runtime();
        let new = stage.world.create_node("new-owner", "new-owner").runtime();
        let (old_ledgers, new_ledgers) =
            (ledgers(&old, metadata_of(&old)), ledgers(&new, metadata_of(&new)));
        stage.pass(Duration::from_secs(2)).await;
        let watched = Arc::new(Watched::default());
        let events = Arc::<Watched>::clone(&watched);
        let writer = old_ledgers.create(quorum, "scenario", events).await.unwrap();
        writer.append(vec![Bytes::from_static(b"one"), Bytes::from_static(b"two")]).unwrap();
        stage.pass(Duration::from_secs(1)).await;
        assert_eq!(watched.confirmed(), EntryId(1));

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
        assert_eq!(watched.confirmed(), EntryId(1), "nothing after the end");
        let again = new_ledgers.recover(writer.ledger()).await.unwrap();
        assert_eq!(again.last_entry, EntryId(1), "the end never moves");
    });
}
