//! Protects P1 and P5 in the middle of a takeover: a broker that is held up between reading a topic's record
//! and claiming it claims a record that is old, and must not undo what another listed meanwhile.

use std::time::Duration;

use seawall::domain::TopicName;
use seawall::simulator::plan::Topology;

use crate::support::brokers::{owner, publish_on};
use crate::support::{TOPIC, scenario_with};

#[test]
fn a_claim_of_an_old_record_is_lost() {
    scenario_with(
        Topology::Cluster,
        |plan| plan.shape.brokers = 2,
        |mut stage| async move {
            stage.keep_everything().await;
            let mut acknowledged = publish_on(&mut stage, 5).await;
            // The owner dies. The other broker reads the record, and then cannot fence the last ledger, since it
            // reaches no bookie.
            let (first, _) = owner(&mut stage).await;
            let late = if first == "broker-0" { "broker-1" } else { "broker-0" };
            stage.keep_down(&first, Duration::from_secs(3600));
            assert!(stage.machine(&first).crash());
            stage.pass(Duration::from_secs(6)).await;
            let machine = stage.machine(late);
            let bookies = ["bookie-0", "bookie-1", "bookie-2"].map(|name| stage.machine(name));
            for bookie in &bookies {
                assert!(stage.world.cut(&machine, bookie));
            }
            let node = stage.cluster.nodes.iter().find(|node| node.machine.name() == late).unwrap();
            let broker = node.serving().and_then(|node| node.broker().cloned()).expect("it serves");
            let name = TopicName::parse(TOPIC).unwrap();
            let load = machine.spawn("load", async move {
                broker.locate(&name, true).await.unwrap();
                broker.topic(&name, false).await.is_ok()
            });
            stage.pass(Duration::from_secs(1)).await;
            // There it stands still, until the first is back, has the topic and has gone on.
            assert!(machine.pause());
            for bookie in &bookies {
                stage.world.heal(&machine, bookie);
            }
            stage.keep_down(&first, Duration::ZERO);
            stage.pass(Duration::from_secs(6)).await;
            stage.ask_only(Some(&first));
            acknowledged.extend(publish_on(&mut stage, 20).await);
            machine.resume();
            let _ = load.await.unwrap();
            // Whoever opens the topic next knows nothing but the record.
            for name in [&first, late] {
                stage.machine(name).crash();
            }
            stage.wait_until_served().await;
            stage.ask_only(None);
            stage.all_there(&acknowledged).await;
        },
    );
}
