//! Protects P1 while a ledger is recovered: what recovery writes to a bookie that no record names yet is there
//! when the record names it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use seawall::domain::EntryId;
use seawall::ledger::Quorum;
use seawall::simulator::checkers::{full_replication, holder};
use seawall::simulator::plan::Topology;
use seawall::simulator::shape::Shape;

use crate::support::ledgers::{Gated, Watched, ledgers, metadata_of, name_of};
use crate::support::scenario_with;

#[test]
fn copies_written_back_stay_until_the_record_names_them() {
    scenario_with(
        Topology::Swarm,
        |plan| {
            let quorum = Quorum { ensemble: 3, write: 3, ack: 3 };
            plan.shape = Shape { metadata: 1, bookies: 4, brokers: 1, shares_nodes: false, quorum };
            // Nobody repairs meanwhile.
            plan.lost_bookie_grace = Duration::from_secs(3600);
        },
        |mut stage| async move {
            let quorum = Quorum { ensemble: 3, write: 3, ack: 3 };
            let old = stage.world.create_node("old-owner", "old-owner").runtime();
            let machine = stage.world.create_node("new-owner", "new-owner");
            let new = machine.runtime();
            let metadata = metadata_of(&new);
            // One change passes, the claim; the close has to wait.
            let gate = Gated::after(1, Arc::clone(&metadata));
            let old_ledgers = ledgers(&old, metadata_of(&old));
            let new_ledgers = ledgers(&new, Arc::<Gated>::clone(&gate));
            stage.pass(Duration::from_secs(2)).await;
            let watched = Arc::new(Watched::default());
            let events = Arc::<Watched>::clone(&watched);
            let writer = old_ledgers.create(quorum, "scenario", events).await.unwrap();
            let ledger = writer.ledger();
            writer.append((0..10).map(|_| Bytes::from_static(b"entry")).collect()).unwrap();
            // Before it tells idle bookies how far it confirmed: everything is to be written back.
            stage.pass(Duration::from_millis(200)).await;
            assert_eq!(watched.confirmed(), EntryId(9));
            drop(writer);
            // Every entry needs three copies and one of its bookies is gone for good: they go to the fourth.
            let record = new_ledgers.record(ledger).await.unwrap().unwrap();
            let gone = record.fragments[0].ensemble[0];
            let name = name_of(&stage, gone);
            stage.keep_down(&name, Duration::from_secs(3600));
            assert!(stage.machine(&name).crash());
            let recovering =
                machine.spawn("recover", async move { new_ledgers.recover(ledger).await });
            // Each bookie looks several times for what it need not keep.
            stage.pass(Duration::from_secs(20)).await;
            gate.open();
            assert_eq!(recovering.await.unwrap().unwrap().last_entry, EntryId(9));
            let serving = stage.cluster.nodes.iter().filter_map(|node| node.serving());
            let bookies: Vec<_> = serving.filter_map(|node| node.bookie().map(holder)).collect();
            let compared = full_replication(&metadata, &bookies).await;
            assert_eq!(compared, Ok(30));
        },
    );
}
