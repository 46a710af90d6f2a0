//! Bookies of a scenario: which there are, and whether they hold all they must.

use std::time::Duration;

use seawall::domain::BookieId;
use seawall::ledger::Quorum;
use seawall::ledger::repair::names_bookie;
use seawall::metadata::Metadata;
use seawall::simulator::checkers::{Holder, full_replication, holder};
use seawall::simulator::plan::Plan;
use seawall::simulator::shape::Shape;

use super::Stage;

/// One metadata node, one broker, 3/3/2, ledgers of ten entries.
pub fn on_bookies(plan: &mut Plan, bookies: usize) {
    let quorum = Quorum { ensemble: 3, write: 3, ack: 2 };
    plan.shape = Shape { metadata: 1, bookies, brokers: 1, shares_nodes: false, quorum };
    plan.ledger_entries_max = 10;
    plan.trims = false;
}

/// The metadata of the group's node.
pub fn metadata(stage: &Stage) -> Metadata {
    let node = stage.cluster.nodes.iter().find(|node| node.roles.metadata).unwrap();
    node.serving().expect("metadata serves").metadata()
}

/// The bookies that serve.
pub fn bookies(stage: &Stage) -> Vec<Holder> {
    let serving = stage.cluster.nodes.iter().filter_map(|node| node.serving());
    serving.filter_map(|node| node.bookie().map(holder)).collect()
}

/// The incarnation of the bookie that runs on this machine.
pub fn id_of(stage: &Stage, name: &str) -> BookieId {
    let node = stage.cluster.nodes.iter().find(|node| node.machine.name() == name).unwrap();
    node.serving().expect("it serves").bookie().unwrap().id()
}

/// Waits until every copy is where it must be and no record names `gone`.
pub async fn repaired_without(stage: &mut Stage, gone: Option<BookieId>) -> u64 {
    let until = stage.world.now() + Duration::from_secs(180);
    loop {
        stage.pass(Duration::from_secs(1)).await;
        let (metadata, bookies) = (metadata(stage), bookies(stage));
        let found = stage
            .client(async move {
                if let Some(gone) = gone
                    && names_bookie(&metadata, gone).await != Ok(false)
                {
                    return Err(format!("{gone} is still named"));
                }
                full_replication(&metadata, &bookies).await
            })
            .await;
        match found {
            Ok(compared) => return compared,
            Err(missing) => assert!(stage.world.now() < until, "not repaired: {missing}"),
        }
    }
}
