//! What the fault plan can do to links and streams.

use super::{EndPhase, NetworkState};
use crate::runtime::sim::lock;
use crate::runtime::sim::node::SimNode;
use crate::runtime::sim::recorder::{Happening, Note};
use crate::runtime::sim::settings::LinkSettings;
use crate::runtime::sim::tape::DecisionKind;
use crate::runtime::sim::trace::EventKind;
use crate::runtime::sim::world::{Shared, World};

impl World {
    fn decide(&self, from: &SimNode, to: &SimNode, kind: DecisionKind, value: u64) -> bool {
        let mut network = lock(&self.0.network);
        let site = &mut network.link(from.id(), to.id()).site;
        self.0.admit_at(site, kind, value)
    }

    fn link_event(&self, kind: EventKind, from: &SimNode, to: &SimNode, value: u64) {
        self.0.event(kind, [u64::from(from.id()), u64::from(to.id()), value]);
    }

    fn record(&self, what: Happening, from: &SimNode, to: &SimNode, text: impl FnOnce() -> String) {
        self.recorder()
            .note(|| Note::from(what).on(from.id()).facts([i64::from(to.id()), 0, 0]).text(text()));
    }

    /// Cuts one direction: nothing that would arrive from now on does, also what is under way. It is kept
    /// and arrives after healing.
    pub fn cut_one_way(&self, from: &SimNode, to: &SimNode) -> bool {
        if !self.decide(from, to, DecisionKind::Cut, 0) {
            return false;
        }
        lock(&self.0.network).cut.insert((from.id(), to.id()));
        self.link_event(EventKind::Link, from, to, 1);
        self.record(Happening::Cut, from, to, String::new);
        true
    }

    /// Cuts both directions.
    pub fn cut(&self, one: &SimNode, other: &SimNode) -> bool {
        let there = self.cut_one_way(one, other);
        self.cut_one_way(other, one) || there
    }

    /// Cuts a node off from all others.
    pub fn isolate(&self, node: &SimNode) {
        for other in self.nodes() {
            if other.id() != node.id() {
                self.cut(node, &other);
            }
        }
    }

    /// Heals one direction.
    pub fn heal_one_way(&self, from: &SimNode, to: &SimNode) {
        if lock(&self.0.network).cut.remove(&(from.id(), to.id())) {
            self.link_event(EventKind::Link, from, to, 0);
            self.record(Happening::LinkHealed, from, to, String::new);
            self.0.unblock();
        }
    }

    /// Heals both directions.
    pub fn heal(&self, one: &SimNode, other: &SimNode) {
        self.heal_one_way(one, other);
        self.heal_one_way(other, one);
    }

    /// Heals all cuts and stalls and takes back all link settings.
    pub fn heal_all(&self) {
        {
            let mut network = lock(&self.0.network);
            network.cut.clear();
            for link in network.links.values_mut() {
                link.settings = None;
            }
            for connection in network.connections.values_mut() {
                connection.stalled = false;
            }
        }
        self.0.event(EventKind::Link, [0, 0, 0]);
        self.recorder().note(|| Happening::AllHealed);
        self.0.unblock();
    }

    /// Gives one direction settings of its own (slow, lossy, clogged); `None` takes them back.
    pub fn set_link(&self, from: &SimNode, to: &SimNode, settings: Option<LinkSettings>) -> bool {
        if settings.is_some() && !self.decide(from, to, DecisionKind::LinkSettings, 0) {
            return false;
        }
        let words = settings.as_ref().map(|settings| settings.differences(&self.0.settings.link));
        let before = {
            let mut network = lock(&self.0.network);
            std::mem::replace(&mut network.link(from.id(), to.id()).settings, settings)
        };
        self.link_event(EventKind::Link, from, to, 2);
        match words {
            Some(words) => self.record(Happening::LinkWorse, from, to, || words),
            None if before.is_some() => self.record(Happening::LinkBetter, from, to, String::new),
            None => {}
        }
        true
    }

    /// Connections that somebody still holds an end of, or that are being asked for.
    pub fn connection_count(&self) -> usize {
        lock(&self.0.network).connections.len()
    }

    /// Resets all streams between two nodes, at both ends, now.
    pub fn reset_streams(&self, one: &SimNode, other: &SimNode) -> bool {
        if !self.decide(one, other, DecisionKind::ResetStreams, 0) {
            return false;
        }
        self.link_event(EventKind::Streams, one, other, 0);
        self.record(Happening::Streams, one, other, || "reset at both ends".to_owned());
        self.0.break_streams(one.id(), other.id());
        true
    }

    /// Stops all present streams between two nodes until [`World::heal_all`] or
    /// [`World::release_streams`].
    pub fn stall_streams(&self, one: &SimNode, other: &SimNode) -> bool {
        if !self.decide(one, other, DecisionKind::StallStreams, 0) {
            return false;
        }
        self.link_event(EventKind::Streams, one, other, 1);
        self.record(Happening::Streams, one, other, || "stalled".to_owned());
        self.set_stalled(one, other, true);
        true
    }

    /// Lets stalled streams between two nodes move again.
    pub fn release_streams(&self, one: &SimNode, other: &SimNode) {
        self.link_event(EventKind::Streams, one, other, 2);
        self.set_stalled(one, other, false);
        self.0.unblock();
    }

    fn set_stalled(&self, one: &SimNode, other: &SimNode, stalled: bool) {
        let mut network = lock(&self.0.network);
        let numbers: Vec<u64> = network.connections.keys().copied().collect();
        for number in numbers {
            if network.connects(number, one.id(), other.id())
                && let Some(connection) = network.connections.get_mut(&number)
            {
                connection.stalled = stalled;
            }
        }
    }

    /// `forgetting` sees its streams to `other` reset; `other` learns nothing and what it sends vanishes.
    pub fn half_open(&self, forgetting: &SimNode, other: &SimNode) -> bool {
        if !self.decide(forgetting, other, DecisionKind::HalfOpen, 0) {
            return false;
        }
        self.link_event(EventKind::Streams, forgetting, other, 3);
        let words = || "forgotten at one end: what the other sends vanishes".to_owned();
        self.record(Happening::Streams, forgetting, other, words);
        let mut woken = Vec::new();
        {
            let mut network = lock(&self.0.network);
            let numbers: Vec<u64> = network.connections.keys().copied().collect();
            for number in numbers {
                if !network.connects(number, forgetting.id(), other.id()) {
                    continue;
                }
                let Some(connection) = network.connections.get_mut(&number) else { continue };
                for end in &mut connection.ends {
                    if end.phase != EndPhase::Open {
                        continue;
                    }
                    if end.node == forgetting.id() {
                        end.phase = EndPhase::Reset;
                        end.received.clear();
                        end.received_bytes = 0;
                        end.wake(&mut woken);
                    } else {
                        end.phase = EndPhase::Vanished;
                    }
                    end.outgoing.clear();
                }
            }
        }
        for waker in woken {
            waker.wake();
        }
        true
    }
}

impl NetworkState {
    fn connects(&self, number: u64, one: u32, other: u32) -> bool {
        self.connections.get(&number).is_some_and(|connection| {
            let nodes = (connection.ends[0].node, connection.ends[1].node);
            nodes == (one, other) || nodes == (other, one)
        })
    }
}

impl Shared {
    fn break_streams(&self, one: u32, other: u32) {
        let mut woken = Vec::new();
        {
            let mut network = lock(&self.network);
            let numbers: Vec<u64> = network.connections.keys().copied().collect();
            for number in numbers {
                if !network.connects(number, one, other) {
                    continue;
                }
                let Some(connection) = network.connections.get_mut(&number) else { continue };
                for end in &mut connection.ends {
                    // A server's end that was not asked yet has nobody to be told.
                    let asking = end.phase == EndPhase::Opening && end.reader.is_some();
                    if asking || end.phase == EndPhase::Open {
                        end.phase = EndPhase::Reset;
                        end.received.clear();
                        end.received_bytes = 0;
                        end.wake(&mut woken);
                    }
                    end.outgoing.clear();
                }
            }
        }
        for waker in woken {
            waker.wake();
        }
    }
}
