//! What each kind of fault does.

use std::path::Path;
use std::time::Duration;

use super::ambush::Blow;
use super::{Heal, Nemesis};
use crate::runtime::sim::{ClockFace, LinkSettings, SimNode};
use crate::simulator::clock_fault::{ClockError, ClockFault};
use crate::simulator::cluster::Cluster;
use crate::simulator::plan::FaultKind;

/// Steps of a wall clock, milliseconds: seconds, hours, years, either way.
const WALL_STEPS: [i64; 6] =
    [1_000, -1_000, 3 * 3_600_000, -3 * 3_600_000, 31_536_000_000, -31_536_000_000];

/// Rates a clock may run wrong by, parts per million.
const DRIFTS: [i64; 6] = [100, -100, 20_000, -20_000, 200_000, -200_000];

impl Nemesis {
    pub(super) fn inject(&mut self, kind: FaultKind, cluster: &mut Cluster) {
        let target = self.below(cluster.nodes.len() as u64) as usize;
        let Some(machine) = cluster.nodes.get(target).map(|node| node.machine.clone()) else {
            return;
        };
        match kind {
            FaultKind::Crash => self.strike_some_time(target, Blow::Crash, cluster),
            FaultKind::PowerLoss => self.power_loss(target, cluster),
            FaultKind::Pause => {
                if machine.pause() {
                    self.lasts(100, 15_000, Heal::Resume(machine));
                }
            }
            FaultKind::Partition => self.partition(&machine, cluster),
            FaultKind::Reset => {
                let other = self.any_machine(cluster);
                if other.id() != machine.id() {
                    match self.below(3) {
                        0 => self.world.half_open(&machine, &other),
                        _ => self.world.reset_streams(&machine, &other),
                    };
                }
            }
            FaultKind::SlowLink => self.slow_link(&machine, cluster),
            FaultKind::SlowDisk => {
                let slowness = 10 << self.below(6);
                let happened = match self.below(3) {
                    0 => machine.stall_disk(),
                    _ => machine.set_disk(|disk| disk.slowness = slowness),
                };
                if happened {
                    self.lasts(200, 8_000, Heal::Disk(machine));
                }
            }
            FaultKind::SyncError => {
                if machine.set_disk(|disk| disk.sync_error_rate = 0.3) {
                    self.lasts(50, 2_000, Heal::Disk(machine));
                }
            }
            FaultKind::ReadError => {
                if machine.set_disk(|disk| disk.read_error_rate = 0.2) {
                    self.lasts(50, 5_000, Heal::Disk(machine));
                }
            }
            FaultKind::BitRot => self.bit_rot(cluster),
            FaultKind::DiskFull => {
                if machine.set_disk(|disk| disk.capacity = 1) {
                    self.lasts(100, 5_000, Heal::Disk(machine));
                }
            }
            FaultKind::Clock => self.clock(machine),
            FaultKind::MoveTopics => self.move_topics(cluster),
            FaultKind::MetadataLeader => self.trouble_leader(cluster),
            FaultKind::MetadataMember => self.replace_member(cluster),
            FaultKind::DiskWiped => {
                let down = self.between(50, 2_000);
                self.lose_disk(down, cluster);
            }
            FaultKind::BookieReplaced => {
                let down = self.between(11_000, 20_000);
                self.lose_disk(down, cluster);
            }
            FaultKind::IndexLoss => {
                let broken = machine.break_indexes(|_| true);
                if broken && machine.crash() {
                    let down = self.between(50, 2_000);
                    self.keep_down(target, down, kind, cluster);
                }
            }
        }
    }

    /// One node, or the whole site: what was synced must survive either.
    fn power_loss(&mut self, target: usize, cluster: &mut Cluster) {
        if self.below(4) != 0 {
            return self.strike_some_time(target, Blow::PowerLoss, cluster);
        }
        for index in 0..cluster.nodes.len() {
            self.strike_now(index, Blow::PowerLoss, cluster);
        }
    }

    fn any_machine(&mut self, cluster: &Cluster) -> SimNode {
        let count = cluster.nodes.len() + self.clients.len();
        let index = self.below(count as u64) as usize;
        match cluster.nodes.get(index) {
            Some(node) => node.machine.clone(),
            None => self.clients[index - cluster.nodes.len()].clone(),
        }
    }

    fn partition(&mut self, machine: &SimNode, cluster: &Cluster) {
        let other = self.any_machine(cluster);
        let how = self.below(4);
        if how == 0 && self.estrange(cluster) {
            return;
        }
        if how == 1 || other.id() == machine.id() {
            self.world.isolate(machine);
            self.lasts(500, 20_000, Heal::Everywhere);
            return;
        }
        let happened = match self.below(3) {
            0 => self.world.cut_one_way(machine, &other),
            1 => self.world.cut_one_way(&other, machine),
            _ => self.world.cut(machine, &other),
        };
        if happened {
            self.lasts(500, 20_000, Heal::Links(machine.clone(), other));
        }
    }

    fn slow_link(&mut self, machine: &SimNode, cluster: &Cluster) {
        let other = self.any_machine(cluster);
        if other.id() == machine.id() {
            return;
        }
        let settings = LinkSettings {
            latency: self.between(20, 400),
            tail: self.between(1, 200),
            loss_rate: [0.0, 0.05, 0.3][self.below(3) as usize],
            reset_rate: [0.0, 0.0, 0.01][self.below(3) as usize],
            ..LinkSettings::default()
        };
        if self.world.set_link(machine, &other, Some(settings.clone())) {
            self.world.set_link(&other, machine, Some(settings));
            self.lasts(1_000, 15_000, Heal::Links(machine.clone(), other));
        }
    }

    /// Flips bits of entry logs on the one bookie whose copies may be lost.
    fn bit_rot(&mut self, cluster: &Cluster) {
        let Some(node) = self.rot_victim.and_then(|number| cluster.bookie(number)) else { return };
        let count = 1 + self.below(3) as usize;
        node.machine.rot(is_entry_log, count);
    }

    /// Empties the disk of the one bookie whose copies may be lost. Once: a ledger may have both what was there
    /// and what came in its place in its ensemble, and a second loss would take two copies.
    fn lose_disk(&mut self, down: Duration, cluster: &mut Cluster) {
        let Some(index) = self.rot_victim.and_then(|number| cluster.bookie_index(number)) else {
            return;
        };
        // A member of the metadata group that forgot what it promised may not come back under its id.
        if cluster.nodes[index].roles.metadata || self.has_lost_disk {
            return;
        }
        let machine = cluster.nodes[index].machine.clone();
        machine.crash();
        if machine.wipe_disk() {
            self.has_lost_disk = true;
            self.keep_down(index, down, self.striking, cluster);
        }
    }

    fn clock(&mut self, machine: SimNode) {
        if let Some(ClockFault { face, how }) = self.clock {
            match how {
                ClockError::Drift(ppm) => {
                    machine.set_clock_drift(face, ppm);
                    self.lasts(2_000, 20_000, Heal::Clock(machine));
                }
                ClockError::Step(ms) => {
                    machine.step_wall_clock(ms);
                }
                ClockError::Freeze(time) => {
                    machine.freeze_clock(face, true);
                    let until = self.world.now() + time;
                    self.last_until(until, FaultKind::Clock, Heal::Clock(machine));
                }
            }
            return;
        }
        let drift = DRIFTS[self.below(DRIFTS.len() as u64) as usize];
        let step = WALL_STEPS[self.below(WALL_STEPS.len() as u64) as usize];
        match self.below(5) {
            0 => {
                machine.set_clock_drift(ClockFace::Monotonic, drift);
                self.lasts(2_000, 20_000, Heal::Clock(machine));
            }
            1 => {
                machine.set_clock_drift(ClockFace::Wall, drift);
            }
            2 => {
                machine.freeze_clock(ClockFace::Monotonic, true);
                self.lasts(100, 5_000, Heal::Clock(machine));
            }
            3 => {
                machine.freeze_clock(ClockFace::Wall, true);
                self.lasts(1_000, 20_000, Heal::Clock(machine));
            }
            _ => {
                machine.step_wall_clock(step);
            }
        }
    }
}

fn is_entry_log(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str().to_string_lossy().starts_with("ledgers"))
        && path.extension().is_some_and(|end| end == "entries")
}
