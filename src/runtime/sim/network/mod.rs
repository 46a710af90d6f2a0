//! The wire: streams between nodes as queues of segments with a due time.
//!
//! A direction of a connection is a queue; the agenda only says when to look at its head. A direction
//! whose link is cut, whose target is down or which is stalled keeps its queue and is looked at again
//! after each healing, so nothing is reordered and nothing in flight slips through a cut.

mod connect;
mod deliver;
mod faults;
mod stream;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::task::Waker;

use bytes::BytesMut;
use tokio::sync::Notify;

use super::settings::LinkSettings;
use super::tape::Site;

pub(super) use connect::SimNetwork;

/// What travels.
pub(super) enum Payload {
    Open,
    Opened,
    Refused,
    Data(BytesMut),
    Finish,
    Reset,
}

impl Payload {
    fn code(&self) -> u64 {
        match self {
            Payload::Open => 0,
            Payload::Opened => 1,
            Payload::Refused => 2,
            Payload::Data(_) => 3,
            Payload::Finish => 4,
            Payload::Reset => 5,
        }
    }

    fn word(&self) -> &'static str {
        match self {
            Payload::Open => "asks for a connection",
            Payload::Opened => "the connection is open",
            Payload::Refused => "the connection is refused",
            Payload::Data(_) => "data",
            Payload::Finish => "end of stream",
            Payload::Reset => "reset",
        }
    }

    fn length(&self) -> usize {
        match self {
            Payload::Data(bytes) => bytes.len(),
            _ => 0,
        }
    }
}

struct Segment {
    sent: u64,
    due: u64,
    payload: Payload,
    /// Its sending in a recording, and what made it go on if it was held up.
    record: u32,
    released_by: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum EndPhase {
    /// Not yet answered (client) or not yet asked (server).
    Opening,
    Open,
    Refused,
    /// Broken: reads and writes fail.
    Reset,
    /// Closed by its owner; bytes that still come are answered with a reset.
    Closed,
    /// Its process died; it says nothing. Bytes that come once the host runs again are answered with a
    /// reset.
    Dead,
    /// Forgotten by a fault: bytes that come vanish.
    Vanished,
}

struct End {
    node: u32,
    phase: EndPhase,
    received: VecDeque<BytesMut>,
    received_bytes: usize,
    finished: bool,
    write_shut: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
    /// Segments this end sent that have not arrived.
    outgoing: VecDeque<Segment>,
    /// Bytes in `outgoing` and unread at the other end.
    outstanding: usize,
    /// When the link is free again, under a bandwidth.
    free_at: u64,
    last_due: u64,
    /// Used by short reads and writes.
    operations: u64,
}

impl End {
    fn new(node: u32) -> Self {
        Self {
            node,
            phase: EndPhase::Opening,
            received: VecDeque::new(),
            received_bytes: 0,
            finished: false,
            write_shut: false,
            reader: None,
            writer: None,
            outgoing: VecDeque::new(),
            outstanding: 0,
            free_at: 0,
            last_due: 0,
            operations: 0,
        }
    }

    /// Nobody holds it any more.
    fn is_gone(&self) -> bool {
        matches!(self.phase, EndPhase::Closed | EndPhase::Dead)
    }

    fn wake(&mut self, woken: &mut Vec<Waker>) {
        woken.extend(self.reader.take());
        woken.extend(self.writer.take());
    }
}

struct Connection {
    port: u16,
    client_port: u16,
    stalled: bool,
    /// The client's end, then the server's.
    ends: [End; 2],
}

struct ListenerState {
    generation: u64,
    pending: VecDeque<u64>,
    arrived: Arc<Notify>,
}

struct Link {
    site: Site,
    settings: Option<LinkSettings>,
    segments: u64,
}

/// All links, listeners and connections.
#[derive(Default)]
pub(super) struct NetworkState {
    connections: BTreeMap<u64, Connection>,
    next_connection: u64,
    listeners: BTreeMap<(u32, u16), ListenerState>,
    next_port: BTreeMap<u32, u16>,
    next_generation: u64,
    links: BTreeMap<(u32, u32), Link>,
    cut: BTreeSet<(u32, u32)>,
    /// Directions that hold due segments they may not deliver.
    blocked: BTreeSet<(u64, usize)>,
}

impl NetworkState {
    fn link(&mut self, from: u32, to: u32) -> &mut Link {
        self.links.entry((from, to)).or_insert_with(|| Link {
            site: Site::new(from, to),
            settings: None,
            segments: 0,
        })
    }

    fn free_port(&mut self, node: u32) -> u16 {
        let next = self.next_port.entry(node).or_insert(40_000);
        let port = *next;
        *next = next.checked_add(1).unwrap_or(40_000);
        port
    }
}
