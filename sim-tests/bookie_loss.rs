//! Protects P1: a bookie that came in another one's place does not lie for it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use seawall::domain::EntryId;
use seawall::ledger::Quorum;
use seawall::simulator::plan::Topology;

use crate::support::ledgers::{Watched, ledgers, metadata_of};
use crate::support::scenario;

/// Of three bookies one never heard of an entry and one is away. The third has lost its disk and serves again, empty and
/// under a new name, while its old registration still leads to it: if it said "absent" in its old name, too, the entry
/// would be given up.
#[test]
fn an_empty_bookie_does_not_answer_for_the_one_before_it() {
    scenario(Topology::Cluster, |mut stage| async move {
        let quorum = Quorum { ensemble: 3, write: 3, ack: 2 };
        let old = stage.world.create_node("old-owner", "old-owner");
        let new = stage.world.create_node("new-owner", "new-owner").runtime();
        let old_ledgers = ledgers(&old.runtime(), metadata_of(&old.runtime()));
        let new_ledgers = ledgers(&new, metadata_of(&new));
        stage.pass(Duration::from_secs(2)).await;
        let watched = Arc::new(Watched::default());
        let events = Arc::<Watched>::clone(&watched);
        let writer = old_ledgers.create(quorum, "scenario", events).await.unwrap();
        assert!(stage.world.cut(&old, &stage.machine("bookie-1")));
        writer.append(vec![Bytes::from_static(b"one")]).unwrap();
        stage.pass(Duration::from_millis(500)).await;
        assert_eq!(watched.confirmed(), EntryId(0));
        let ledger = writer.ledger();
        drop(writer);

        stage.keep_down("bookie-2", Duration::from_secs(60));
        assert!(stage.machine("bookie-2").crash());
        let wiped = stage.machine("bookie-0");
        assert!(wiped.crash() && wiped.wipe_disk());
        stage.pass(Duration::from_secs(2)).await;
        if let Ok(closed) = new_ledgers.recover(ledger).await {
            assert_eq!(closed.last_entry, EntryId(0), "a confirmed entry was cut off");
        }
        stage.pass(Duration::from_secs(61)).await;
        stage.wait_until_served().await;
        let closed = new_ledgers.recover(ledger).await.unwrap();
        assert_eq!(closed.last_entry, EntryId(0));
    });
}
