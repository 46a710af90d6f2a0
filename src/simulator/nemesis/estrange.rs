//! A broker that only metadata cannot reach: it goes on serving its clients and writing to its bookies while others take its
//! topics, so that nothing but the fence stops it.

use std::time::Duration;

use super::{Heal, Nemesis};
use crate::broker::{Broker, Located, Topic};
use crate::reached;
use crate::runtime::sim::World;
use crate::simulator::cluster::{Cluster, ClusterNode};

/// Somebody looks for its topics at another broker after this: longer than its registration lasts.
const MISSED_AFTER: Duration = Duration::from_millis(3_500);

/// Its registration may last longer, or metadata may be away: it is looked for again.
const LOOKS_MAX: u32 = 5;
const LOOK_PAUSE: Duration = Duration::from_secs(1);

impl Nemesis {
    /// False if no broker is apart from metadata.
    pub(super) fn estrange(&mut self, cluster: &Cluster) -> bool {
        let apart = |node: &&ClusterNode| node.roles.broker && !node.roles.metadata;
        let brokers: Vec<&ClusterNode> = cluster.nodes.iter().filter(apart).collect();
        let chosen = self.below(brokers.len() as u64) as usize;
        let Some(estranged) = brokers.get(chosen) else { return false };
        for node in cluster.nodes.iter().filter(|node| node.roles.metadata) {
            self.world.cut(&estranged.machine, &node.machine);
        }
        self.lasts(4_000, 20_000, Heal::Everywhere);
        let serving = estranged.serving();
        let topics = serving.as_ref().and_then(|node| Some(node.broker()?.loaded_topics()));
        let others = brokers.iter().filter(|other| other.machine.id() != estranged.machine.id());
        for (other, topics) in others.zip(topics) {
            let serving = other.serving();
            let broker = serving.as_ref().and_then(|node| node.broker().cloned());
            if let Some(broker) = broker {
                let world = self.world.clone();
                other.machine.spawn("operator", look_for(world, broker, topics));
            }
        }
        true
    }
}

async fn look_for(world: World, broker: Broker, topics: Vec<Topic>) {
    world.sleep(MISSED_AFTER).await;
    for topic in topics {
        for _ in 0..LOOKS_MAX {
            // As a client is sent that another broker was asked by: this one is to take it, if nobody has it.
            let here = matches!(broker.locate(topic.name(), true).await, Ok(Located::Here));
            if here && broker.topic(topic.name(), false).await.is_ok() {
                reached!("nemesis: a topic of an estranged broker was taken");
                break;
            }
            world.sleep(LOOK_PAUSE).await;
        }
    }
}
