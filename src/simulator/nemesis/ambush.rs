//! Faults that wait for their moment: in the middle of a sync, or right after it, before anybody is told.

use super::Nemesis;
use crate::runtime::sim::Occasion;
use crate::simulator::cluster::Cluster;

/// What strikes.
#[derive(Clone, Copy)]
pub(super) enum Blow {
    Crash,
    PowerLoss,
}

/// The farthest occasion waited for; nodes sync tens of times a second.
const NTH_MAX: u64 = 30;

impl Nemesis {
    /// Strikes at once, or at an occasion to come: each kind of moment a third of the times.
    pub(super) fn strike_some_time(&mut self, target: usize, blow: Blow, cluster: &mut Cluster) {
        let occasion = match self.below(3) {
            0 => return self.strike_now(target, blow, cluster),
            1 => Occasion::SyncBegun,
            _ => Occasion::SyncDone,
        };
        let nth = 1 + self.below(NTH_MAX);
        cluster.nodes[target].machine.lie_in_wait(occasion, nth);
        self.ambushes.insert(target, blow);
    }

    /// Strikes where the occasion has come.
    pub(super) fn strike(&mut self, cluster: &mut Cluster) {
        for index in 0..cluster.nodes.len() {
            if cluster.nodes[index].machine.has_sprung()
                && let Some(blow) = self.ambushes.remove(&index)
            {
                self.strike_now(index, blow, cluster);
            }
        }
    }

    pub(super) fn strike_now(&mut self, target: usize, blow: Blow, cluster: &mut Cluster) {
        let machine = cluster.nodes[target].machine.clone();
        let struck = match blow {
            Blow::Crash => machine.crash(),
            Blow::PowerLoss => machine.power_loss(),
        };
        if struck {
            let down = self.between(50, 6_000);
            cluster.keep_down(target, self.world.now() + down);
        }
    }
}
