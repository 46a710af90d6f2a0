//! Topics that change their broker because an operator asks for it: unloaded, their bundle given up, or their
//! broker stopped in order.

use super::Nemesis;
use crate::broker::{Broker, Topic};
use crate::reached;
use crate::simulator::cluster::Cluster;

impl Nemesis {
    pub(super) fn move_topics(&mut self, cluster: &Cluster) {
        let brokers: Vec<_> = cluster.nodes.iter().filter(|node| node.roles.broker).collect();
        let chosen = self.below(brokers.len() as u64) as usize;
        let what = self.below(4);
        let which = self.below(16) as usize;
        let Some(node) = brokers.get(chosen) else { return };
        let serving = node.serving();
        let Some(broker) = serving.as_ref().and_then(|node| node.broker().cloned()) else { return };
        if what == 0 {
            if node.machine.admit_operation(0) {
                node.stop_in_order();
            }
            return;
        }
        let topics = broker.loaded_topics();
        if topics.is_empty() || !node.machine.admit_operation(what) {
            return;
        }
        let topic = topics[which % topics.len()].clone();
        node.machine.spawn("operator", ask(broker, topic, what == 1));
    }
}

async fn ask(broker: Broker, topic: Topic, only_unload: bool) {
    if only_unload {
        topic.unload().await;
        return;
    }
    // A broker that cannot say so now does not give it up; another fault, another time.
    let Ok(bundle) = broker.bundle_of(topic.name()).await else { return };
    if broker.release(&bundle).await.is_ok() {
        reached!("nemesis: a bundle was given up");
    }
}
