//! Sending and delivering segments.

use std::task::Waker;

use super::{EndPhase, NetworkState, Payload, Segment};
use crate::runtime::sim::agenda::{Action, schedule};
use crate::runtime::sim::keyed::{keyed, with_tail};
use crate::runtime::sim::lock;
use crate::runtime::sim::recorder::{Happening, Note};
use crate::runtime::sim::tape::DecisionKind;
use crate::runtime::sim::trace::EventKind;
use crate::runtime::sim::world::Shared;

/// How much later a lost segment arrives.
const RETRANSMIT: u64 = 200_000_000;
/// Bytes written within this many nanoseconds of each other travel as one segment.
const COALESCE: u64 = 50_000;
/// The most bytes in one segment.
const SEGMENT_BYTES: usize = 64 * 1024;

fn nanos(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX / 4)
}

impl Shared {
    /// Queues a segment from one end to the other.
    pub(super) fn send(
        &self,
        network: &mut NetworkState,
        number: u64,
        end: usize,
        payload: Payload,
    ) {
        let now = self.now();
        let Some(connection) = network.connections.get_mut(&number) else { return };
        let (from, to) = (connection.ends[end].node, connection.ends[1 - end].node);
        let sender = &mut connection.ends[end];
        if let (Payload::Data(more), Some(last)) = (&payload, sender.outgoing.back_mut())
            && last.sent + COALESCE >= now
            && last.due > now
            && let Payload::Data(bytes) = &mut last.payload
            && bytes.len() + more.len() <= SEGMENT_BYTES
        {
            bytes.extend_from_slice(more);
            let recorder = self.recorder();
            recorder.also(last.record, recorder.cause());
            return;
        }
        let (latency, payload) = self.travel(network, from, to, payload);
        let bandwidth = network
            .links
            .get(&(from, to))
            .and_then(|link| link.settings.as_ref())
            .map_or(self.settings.link.bandwidth, |settings| settings.bandwidth);
        let busy = bandwidth.map_or(0, |rate| {
            (payload.length() as u64).saturating_mul(1_000_000_000) / rate.max(1)
        });
        let Some(connection) = network.connections.get_mut(&number) else { return };
        let sender = &mut connection.ends[end];
        if matches!(payload, Payload::Reset) {
            // A reset makes the bytes before it pointless.
            sender.outgoing.retain(|segment| !matches!(segment.payload, Payload::Data(_)));
        }
        sender.free_at = sender.free_at.max(now) + busy;
        let due = (sender.free_at + latency).max(sender.last_due);
        sender.last_due = due;
        let record = self.recorder().note(|| {
            let note = Note::from(Happening::Send).on(from).text(payload.word());
            note.facts([i64::from(to), number as i64, payload.length() as i64])
        });
        sender.outgoing.push_back(Segment { sent: now, due, payload, record, released_by: 0 });
        schedule(self, due, Action::Deliver { connection: number, from_end: end });
    }

    /// Latency of the next segment on a link, and what the link makes of it.
    fn travel(
        &self,
        network: &mut NetworkState,
        from: u32,
        to: u32,
        payload: Payload,
    ) -> (u64, Payload) {
        if from == to {
            return (0, payload);
        }
        let link = network.link(from, to);
        link.segments += 1;
        let value = keyed(&[self.timing_seed, 5, u64::from(from), u64::from(to), link.segments]);
        let settings = link.settings.as_ref().unwrap_or(&self.settings.link);
        let mut latency = with_tail(value, nanos(settings.latency), nanos(settings.tail));
        let (loss, reset) = (settings.loss_rate, settings.reset_rate);
        if loss > 0.0 && self.chance(&mut link.site, DecisionKind::SegmentLost, loss).is_some() {
            latency += RETRANSMIT;
        }
        let breaks = reset > 0.0
            && matches!(payload, Payload::Data(_))
            && self.chance(&mut link.site, DecisionKind::SegmentReset, reset).is_some();
        (latency, if breaks { Payload::Reset } else { payload })
    }

    /// Delivers what is due from one end to the other.
    pub(in crate::runtime::sim) fn deliver(&self, number: u64, end: usize) {
        let now = self.now();
        let mut woken = Vec::new();
        {
            let mut network = lock(&self.network);
            while let Some(connection) = network.connections.get(&number) {
                let (from, to) = (connection.ends[end].node, connection.ends[1 - end].node);
                let due = connection.ends[end].outgoing.front().is_some_and(|head| head.due <= now);
                if !due {
                    break;
                }
                let stopped = connection.stalled
                    || network.cut.contains(&(from, to))
                    || self.node(to).is_none_or(|node| !node.is_running());
                if stopped {
                    network.blocked.insert((number, end));
                    break;
                }
                let Some(connection) = network.connections.get_mut(&number) else { break };
                let Some(segment) = connection.ends[end].outgoing.pop_front() else { break };
                let code = segment.payload.code() * 2 + end as u64;
                let length = segment.payload.length() as u64;
                self.event(EventKind::Deliver, [number, code, length]);
                let arrival = self.recorder().note(|| {
                    let note = Note::from(Happening::Arrive).on(to).because(segment.record);
                    let facts = [i64::from(from), number as i64, length as i64];
                    note.facts(facts).text(segment.payload.word())
                });
                self.recorder().also(arrival, segment.released_by);
                self.recorder().owing_now(arrival);
                self.arrive(&mut network, number, end, segment.payload, &mut woken);
            }
            network.forget_if_over(number);
        }
        for waker in woken {
            waker.wake();
        }
    }

    fn arrive(
        &self,
        network: &mut NetworkState,
        number: u64,
        end: usize,
        payload: Payload,
        woken: &mut Vec<Waker>,
    ) {
        let Some(connection) = network.connections.get_mut(&number) else { return };
        let port = connection.port;
        let client_waits = connection.ends[0].phase == EndPhase::Opening;
        if matches!(payload, Payload::Open) {
            let node = connection.ends[1].node;
            if !client_waits {
                connection.ends[1].phase = EndPhase::Closed;
                return;
            }
            let taken = Self::admit_connection(network, number, node, port);
            if let Some(connection) = network.connections.get_mut(&number) {
                connection.ends[1].phase = if taken { EndPhase::Open } else { EndPhase::Closed };
            }
            let answer = if taken { Payload::Opened } else { Payload::Refused };
            self.send(network, number, 1, answer);
            return;
        }
        let (client, server) = connection.ends.split_at_mut(1);
        let (sender, receiver) = if end == 0 {
            (&mut client[0], &mut server[0])
        } else {
            (&mut server[0], &mut client[0])
        };
        match payload {
            Payload::Open => {}
            Payload::Opened => match receiver.phase {
                EndPhase::Opening => {
                    receiver.phase = EndPhase::Open;
                    receiver.wake(woken);
                }
                EndPhase::Closed | EndPhase::Dead => {
                    self.send(network, number, 1 - end, Payload::Reset);
                }
                _ => {}
            },
            Payload::Refused => {
                if receiver.phase == EndPhase::Opening {
                    receiver.phase = EndPhase::Refused;
                    receiver.wake(woken);
                }
            }
            Payload::Data(bytes) => match receiver.phase {
                EndPhase::Open => {
                    receiver.received_bytes += bytes.len();
                    receiver.received.push_back(bytes);
                    woken.extend(receiver.reader.take());
                }
                EndPhase::Closed | EndPhase::Dead | EndPhase::Reset => {
                    sender.outstanding = sender.outstanding.saturating_sub(bytes.len());
                    self.send(network, number, 1 - end, Payload::Reset);
                }
                EndPhase::Opening | EndPhase::Refused | EndPhase::Vanished => {
                    sender.outstanding = sender.outstanding.saturating_sub(bytes.len());
                    woken.extend(sender.writer.take());
                }
            },
            Payload::Finish => {
                if receiver.phase == EndPhase::Open {
                    receiver.finished = true;
                    woken.extend(receiver.reader.take());
                } else if receiver.phase == EndPhase::Dead {
                    self.send(network, number, 1 - end, Payload::Reset);
                }
            }
            Payload::Reset => {
                if matches!(receiver.phase, EndPhase::Open | EndPhase::Opening) {
                    receiver.phase = EndPhase::Reset;
                    receiver.received.clear();
                    receiver.received_bytes = 0;
                    receiver.outgoing.clear();
                    receiver.wake(woken);
                }
                if sender.phase == EndPhase::Open {
                    // The wire broke the stream, not the peer: it learns of it too.
                    sender.phase = EndPhase::Reset;
                    sender.received.clear();
                    sender.received_bytes = 0;
                    sender.wake(woken);
                }
            }
        }
    }

    /// Looks again at all blocked directions, after something was healed.
    pub(in crate::runtime::sim) fn unblock(&self) {
        let now = self.now();
        let mut network = lock(&self.network);
        let blocked = std::mem::take(&mut network.blocked);
        for (number, end) in blocked {
            let Some(connection) = network.connections.get(&number) else { continue };
            let (from, to) = (connection.ends[end].node, connection.ends[1 - end].node);
            let stopped = connection.stalled
                || network.cut.contains(&(from, to))
                || self.node(to).is_none_or(|node| !node.is_running());
            if stopped {
                network.blocked.insert((number, end));
                continue;
            }
            // What waited is sent again, and takes a link's time.
            let (latency, _) = self.travel(&mut network, from, to, Payload::Opened);
            let due = now + latency.max(1);
            let Some(connection) = network.connections.get_mut(&number) else { continue };
            let sender = &mut connection.ends[end];
            for segment in &mut sender.outgoing {
                segment.due = segment.due.max(due);
                segment.released_by = self.recorder().cause();
            }
            sender.last_due = sender.last_due.max(due);
            schedule(self, due, Action::Deliver { connection: number, from_end: end });
        }
    }

    /// A node's process died: its ends fall silent.
    pub(in crate::runtime::sim) fn node_down(&self, node: u32) {
        let mut network = lock(&self.network);
        network.listeners.retain(|(owner, _), _| *owner != node);
        let mut over = Vec::new();
        for (number, connection) in &mut network.connections {
            for end in &mut connection.ends {
                if end.node == node && !end.is_gone() {
                    end.phase = EndPhase::Dead;
                    end.received.clear();
                    end.received_bytes = 0;
                    (end.reader, end.writer) = (None, None);
                }
            }
            over.push(*number);
        }
        for number in over {
            network.forget_if_over(number);
        }
    }
}

impl NetworkState {
    /// Forgets a connection nobody holds. One whose request has not arrived is held by its client alone.
    pub(super) fn forget_if_over(&mut self, number: u64) {
        let over = self.connections.get(&number).is_some_and(|connection| {
            let [client, server] = &connection.ends;
            client.is_gone() && (server.is_gone() || server.phase == EndPhase::Opening)
        });
        if over {
            self.connections.remove(&number);
            self.blocked.remove(&(number, 0));
            self.blocked.remove(&(number, 1));
        }
    }
}
