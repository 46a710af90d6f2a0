//! Trouble aimed at whoever leads the metadata group: most of what can go wrong with consensus begins there.

use super::ambush::Blow;
use super::{Heal, Nemesis};
use crate::reached;
use crate::runtime::sim::SimNode;
use crate::simulator::cluster::Cluster;

impl Nemesis {
    pub(super) fn trouble_leader(&mut self, cluster: &mut Cluster) {
        let what = self.below(6);
        let Some(leader) = cluster.metadata_leader() else { return };
        let machine = cluster.nodes[leader].machine.clone();
        match what {
            0 => self.strike_now(leader, Blow::Crash, cluster),
            1 => self.strike_now(leader, Blow::PowerLoss, cluster),
            // Long enough for another to be elected; it wakes believing that it leads.
            2 => {
                if machine.pause() {
                    self.lasts(500, 5_000, Heal::Resume(machine));
                }
            }
            3 => self.cut_leader(&machine, cluster),
            4 => {
                self.world.isolate(&machine);
                self.lasts(500, 8_000, Heal::Everywhere);
            }
            _ => self.move_leader(leader, cluster),
        }
    }

    /// Cuts it off from the other members, in one direction, while its clients still reach it.
    fn cut_leader(&mut self, leader: &SimNode, cluster: &Cluster) {
        let is_deaf = self.below(2) == 0;
        let others: Vec<SimNode> = cluster
            .nodes
            .iter()
            .filter(|node| node.roles.metadata && node.machine.id() != leader.id())
            .map(|node| node.machine.clone())
            .collect();
        for other in others {
            let happened = match is_deaf {
                true => self.world.cut_one_way(&other, leader),
                false => self.world.cut_one_way(leader, &other),
            };
            if happened {
                self.lasts(500, 8_000, Heal::Links(leader.clone(), other));
            }
        }
    }

    /// An operator wants another leader.
    fn move_leader(&mut self, leader: usize, cluster: &Cluster) {
        let Some(serving) = cluster.nodes[leader].serving() else { return };
        let Some(member) = serving.metadata_member().cloned() else { return };
        let status = member.status();
        let voters = status.membership.voters.iter().filter(|voter| **voter != status.id);
        let voters: Vec<_> = voters.copied().collect();
        let chosen = self.below(voters.len() as u64) as usize;
        let Some(to) = voters.get(chosen).copied() else { return };
        let machine = &cluster.nodes[leader].machine;
        if machine.admit_operation(to.0) {
            reached!("nemesis: metadata's leadership was moved");
            machine.spawn("operator", async move { member.transfer_leadership(to).await });
        }
    }
}
