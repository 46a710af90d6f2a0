//! Faults that wait for their moment: in the middle of a sync, or right after it, before anybody is told.

use std::time::Duration;

use super::Nemesis;
use crate::runtime::sim::Occasion;
use crate::simulator::cluster::Cluster;
use crate::simulator::plan::FaultKind;

/// What strikes.
#[derive(Clone, Copy)]
pub(super) enum Blow {
    Crash,
    PowerLoss,
}

/// The farthest occasion waited for; nodes sync tens of times a second.
const NTH_MAX: u64 = 30;

/// What waits for its occasion: drawn when it is laid, so that the strikes in between do not change it.
#[derive(Clone, Copy)]
pub(super) struct Ambush {
    blow: Blow,
    down: Duration,
    /// The record of the strike that laid it, if the run is recorded.
    record: u32,
}

impl Nemesis {
    /// Strikes at once, or at an occasion to come: each kind of moment a third of the times.
    pub(super) fn strike_some_time(&mut self, target: usize, blow: Blow, cluster: &mut Cluster) {
        let occasion = match self.below(3) {
            0 => return self.strike_now(target, blow, cluster),
            1 => Occasion::SyncBegun,
            _ => Occasion::SyncDone,
        };
        let nth = 1 + self.below(NTH_MAX);
        let down = self.down();
        cluster.nodes[target].machine.lie_in_wait(occasion, nth);
        let record = self.strike_record;
        self.ambushes.insert(target, Ambush { blow, down, record });
    }

    /// Strikes where the occasion has come.
    pub(super) fn spring(&mut self, cluster: &mut Cluster) {
        for index in 0..cluster.nodes.len() {
            if cluster.nodes[index].machine.has_sprung()
                && let Some(Ambush { blow, down, record }) = self.ambushes.remove(&index)
            {
                let recorder = self.world.recorder().clone();
                recorder.owing(record, || self.fall(index, blow, down, cluster));
            }
        }
    }

    pub(super) fn strike_now(&mut self, target: usize, blow: Blow, cluster: &mut Cluster) {
        let down = self.down();
        self.fall(target, blow, down, cluster);
    }

    fn down(&mut self) -> Duration {
        self.between(50, 6_000)
    }

    fn fall(&mut self, target: usize, blow: Blow, down: Duration, cluster: &mut Cluster) {
        let machine = &cluster.nodes[target].machine;
        let (struck, kind) = match blow {
            Blow::Crash => (machine.crash(), FaultKind::Crash),
            Blow::PowerLoss => (machine.power_loss(), FaultKind::PowerLoss),
        };
        if struck {
            self.keep_down(target, down, kind, cluster);
        }
    }
}
