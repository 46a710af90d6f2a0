//! Byte streams: random talks between two ends. What the model does is what the real one does, except where the
//! real one's own timing decides; there the outcomes that are possible are named.

use std::io::ErrorKind;
use std::sync::Mutex;
use std::time::Duration;

use proptest::prelude::*;
use seawall::runtime::sim::World;
use seawall::runtime::{ByteStream, Listener};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{cases, compare};
use crate::both_conformance::{Place, on_real, quick};

/// More than every buffer between two ends holds.
const FLOOD_BYTES: usize = 12 << 20;
/// Bytes under way that never make a writer wait.
const QUIET_BYTES: usize = 60_000;
const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Clone, Debug)]
enum Operation {
    /// A new connection in place of the one there was.
    Connect,
    Write {
        end: usize,
        bytes: usize,
    },
    /// Reads some of what is under way, in pieces of at most this size.
    Read {
        end: usize,
        piece: usize,
    },
    /// Reads to the end that the other side has sent.
    ReadEnd {
        end: usize,
    },
    /// Writes no more.
    Shutdown {
        end: usize,
    },
    Drop {
        end: usize,
    },
    /// Writes much more than fits while the other end reads slowly.
    Flood {
        end: usize,
    },
    /// Listens where somebody listens.
    ListenTwice,
    /// Connects to where nobody listens.
    ConnectNowhere,
    /// A listener goes away with a connection it has not taken.
    DropListener,
}

fn operation() -> impl Strategy<Value = Operation> {
    let end = || 0..2_usize;
    prop_oneof![
        2 => Just(Operation::Connect),
        8 => (end(), prop_oneof![Just(0_usize), 1..100_usize, 1000..30_000_usize])
            .prop_map(|(end, bytes)| Operation::Write { end, bytes }),
        8 => (end(), prop_oneof![1..20_usize, 500..20_000_usize])
            .prop_map(|(end, piece)| Operation::Read { end, piece }),
        3 => end().prop_map(|end| Operation::ReadEnd { end }),
        2 => end().prop_map(|end| Operation::Shutdown { end }),
        2 => end().prop_map(|end| Operation::Drop { end }),
        1 => Just(Operation::ListenTwice),
        1 => Just(Operation::ConnectNowhere),
        1 => Just(Operation::DropListener),
    ]
}

/// What came of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// It made no sense there.
    Skipped,
    Done,
    Bytes(u64),
    End,
    Failed(ErrorKind),
    /// Bytes came that were not sent, or not in this order.
    Wrong,
    /// Nothing came of it in time.
    Silent,
}

/// One end of the connection.
#[derive(Default)]
struct End {
    stream: Option<ByteStream>,
    /// Bytes written here so far, and of those the ones read over there.
    written: u64,
    taken: u64,
    is_shut: bool,
    is_gone: bool,
    /// It went with bytes unread: the other end is told by a reset.
    has_reset: bool,
}

/// The bytes of a direction are a function of their place in it.
fn byte(end: usize, at: u64) -> u8 {
    (at * 7 + at / 253 + end as u64 * 100) as u8
}

struct Talk {
    place: Place,
    listener: Listener,
    ends: [End; 2],
}

impl Talk {
    async fn new(place: Place) -> Self {
        let listener = place.runtime.network.listen(&format!("{}:0", place.host)).await.unwrap();
        Self { place, listener, ends: Default::default() }
    }

    async fn connect(&mut self) -> Outcome {
        let address = self.listener.local_address();
        let near = self.place.runtime.network.connect(&address).await;
        let far = self.listener.accept().await;
        match (near, far) {
            (Ok(near), Ok(far)) => {
                let end = |stream| End { stream: Some(stream), ..End::default() };
                self.ends = [end(near), end(far.stream)];
                Outcome::Done
            }
            (near, far) => {
                let error = near.err().or(far.err()).map(|error| error.kind());
                Outcome::Failed(error.unwrap_or(ErrorKind::Other))
            }
        }
    }

    async fn perform(&mut self, operation: &Operation) -> Outcome {
        let clock = self.place.runtime.clock.clone();
        let done = clock.timeout(PATIENCE, self.perform_at_last(operation)).await;
        done.unwrap_or(Outcome::Silent)
    }

    async fn perform_at_last(&mut self, operation: &Operation) -> Outcome {
        match operation {
            Operation::Connect => self.connect().await,
            Operation::Write { end, bytes } => self.write(*end, *bytes).await,
            Operation::Read { end, piece } => self.read(*end, *piece).await,
            Operation::ReadEnd { end } => self.read_end(*end).await,
            Operation::Shutdown { end } => {
                let end = &mut self.ends[*end];
                let Some(stream) = end.stream.as_mut().filter(|_| !end.is_shut) else {
                    return Outcome::Skipped;
                };
                end.is_shut = true;
                match stream.shutdown().await {
                    Ok(()) => Outcome::Done,
                    Err(error) => Outcome::Failed(error.kind()),
                }
            }
            Operation::Drop { end } => self.drop_end(*end),
            Operation::Flood { end } => self.flood(*end).await,
            Operation::ListenTwice => {
                let address = self.listener.local_address();
                match self.place.runtime.network.listen(&address).await {
                    Ok(_) => Outcome::Done,
                    Err(error) => Outcome::Failed(error.kind()),
                }
            }
            Operation::ConnectNowhere => {
                // Never the port that this end itself is given: that would be a talk with oneself.
                let address = format!("{}:1", self.place.host);
                match self.place.runtime.network.connect(&address).await {
                    Ok(_) => Outcome::Done,
                    Err(error) => Outcome::Failed(error.kind()),
                }
            }
            Operation::DropListener => {
                let network = self.place.runtime.network.clone();
                let listener = network.listen(&format!("{}:0", self.place.host)).await.unwrap();
                let mut near = network.connect(&listener.local_address()).await.unwrap();
                drop(listener);
                match near.read(&mut [0; 10]).await {
                    Ok(0) => Outcome::End,
                    Ok(_) => Outcome::Wrong,
                    Err(error) => Outcome::Failed(error.kind()),
                }
            }
        }
    }

    /// Bytes that this end can read.
    fn under_way(&self, end: usize) -> u64 {
        self.ends[1 - end].written - self.ends[1 - end].taken
    }

    async fn write(&mut self, number: usize, bytes: usize) -> Outcome {
        let under_way = self.under_way(1 - number);
        let end = &mut self.ends[number];
        let Some(stream) = &mut end.stream else { return Outcome::Skipped };
        if under_way as usize + bytes > QUIET_BYTES {
            return Outcome::Skipped;
        }
        let all: Vec<u8> = (0..bytes as u64).map(|at| byte(number, end.written + at)).collect();
        match stream.write_all(&all).await {
            Ok(()) => {
                end.written += bytes as u64;
                Outcome::Done
            }
            Err(error) => Outcome::Failed(error.kind()),
        }
    }

    async fn read(&mut self, number: usize, piece: usize) -> Outcome {
        let wanted = self.under_way(number).min(40_000);
        let [near, far] = &mut self.ends;
        let (end, peer) = if number == 0 { (near, far) } else { (far, near) };
        let Some(stream) = &mut end.stream else { return Outcome::Skipped };
        if wanted == 0 && !peer.has_reset {
            return Outcome::Skipped;
        }
        let mut buffer = vec![0; piece];
        let mut read = 0;
        while read < wanted || wanted == 0 {
            let most = if wanted == 0 { piece } else { piece.min((wanted - read) as usize) };
            match stream.read(&mut buffer[..most]).await {
                Ok(0) => return Outcome::End,
                Ok(count) => {
                    let right = (0..count as u64)
                        .all(|at| buffer[at as usize] == byte(1 - number, peer.taken + at));
                    if !right || peer.taken + count as u64 > peer.written {
                        return Outcome::Wrong;
                    }
                    peer.taken += count as u64;
                    read += count as u64;
                }
                Err(error) => return Outcome::Failed(error.kind()),
            }
        }
        Outcome::Bytes(read)
    }

    async fn read_end(&mut self, number: usize) -> Outcome {
        let peer = &self.ends[1 - number];
        let comes = (peer.is_shut || peer.is_gone) && self.under_way(number) == 0;
        match &mut self.ends[number].stream {
            Some(stream) if comes => match stream.read(&mut [0; 10]).await {
                Ok(0) => Outcome::End,
                Ok(_) => Outcome::Wrong,
                Err(error) => Outcome::Failed(error.kind()),
            },
            _ => Outcome::Skipped,
        }
    }

    fn drop_end(&mut self, number: usize) -> Outcome {
        let unread = self.under_way(number) > 0;
        let end = &mut self.ends[number];
        if end.stream.take().is_none() {
            return Outcome::Skipped;
        }
        end.is_gone = true;
        end.has_reset = unread;
        Outcome::Done
    }

    async fn flood(&mut self, number: usize) -> Outcome {
        if self.connect().await != Outcome::Done {
            return Outcome::Wrong;
        }
        let [near, far] = &mut self.ends;
        let (end, peer) = if number == 0 { (near, far) } else { (far, near) };
        let (Some(writer), Some(reader)) = (&mut end.stream, &mut peer.stream) else {
            return Outcome::Wrong;
        };
        let all: Vec<u8> = (0..FLOOD_BYTES as u64).map(|at| byte(number, at)).collect();
        let writing = async {
            let written = writer.write_all(&all).await;
            written.and(writer.shutdown().await)
        };
        let reading = async {
            let mut back = Vec::with_capacity(FLOOD_BYTES);
            reader.read_to_end(&mut back).await.map(|_| back)
        };
        let (written, back) = futures_util::future::join(writing, reading).await;
        end.is_shut = true;
        (end.written, end.taken) = (FLOOD_BYTES as u64, FLOOD_BYTES as u64);
        match (written, back) {
            (Ok(()), Ok(back)) if back == all => Outcome::Bytes(FLOOD_BYTES as u64),
            (Ok(()), Ok(_)) => Outcome::Wrong,
            (written, back) => {
                let error = written.err().or(back.err()).map(|error| error.kind());
                Outcome::Failed(error.unwrap_or(ErrorKind::Other))
            }
        }
    }

    /// What may come of an operation, whatever the timing: more than one only after the other end is gone.
    fn allowed(&self, operation: &Operation, outcome: Outcome) -> bool {
        use ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset};
        let broken = |outcome| {
            matches!(outcome, Outcome::Failed(BrokenPipe | ConnectionAborted | ConnectionReset))
        };
        match operation {
            Operation::Write { end, .. } if self.ends[1 - end].is_gone => {
                outcome == Outcome::Done || broken(outcome) || outcome == Outcome::Skipped
            }
            Operation::Read { end, .. } | Operation::ReadEnd { end }
                if self.ends[1 - end].is_gone =>
            {
                // A reset, one's own or the other's, may overtake the bytes before it, and is told once.
                !matches!(outcome, Outcome::Wrong | Outcome::Silent)
                    && (!matches!(outcome, Outcome::Failed(_)) || broken(outcome))
            }
            Operation::Shutdown { end } if self.ends[1 - end].is_gone => {
                !matches!(outcome, Outcome::Wrong | Outcome::Silent)
            }
            _ => false,
        }
    }
}

/// Each outcome, and whether the real one's timing decides it.
async fn perform_all(place: Place, operations: Vec<Operation>) -> Vec<(Outcome, bool)> {
    let mut talk = Talk::new(place).await;
    let mut outcomes = Vec::new();
    for operation in &operations {
        let outcome = talk.perform(operation).await;
        outcomes.push((outcome, talk.allowed(operation, outcome)));
    }
    outcomes
}

fn on_both(operations: Vec<Operation>) -> u64 {
    let outcomes = Mutex::new(Vec::new());
    on_real(|place| async {
        let all = perform_all(place, operations.clone()).await;
        *outcomes.lock().unwrap() = all;
    });
    let real = outcomes.into_inner().unwrap();
    let simulated = World::run(1, quick(), |world| {
        let node = world.create_node("subject", "subject");
        let operations = operations.clone();
        async move {
            let (runtime, host) = (node.runtime(), "subject".to_owned());
            let place = Place { runtime, folder: "/".into(), host };
            node.spawn("perform", perform_all(place, operations)).await.unwrap()
        }
    });
    for (number, operation) in operations.iter().enumerate() {
        let ((real, real_allowed), (simulated, simulated_allowed)) =
            (real[number], simulated[number]);
        // Once timing has decided, the two may be in different places of the same talk until the next one.
        if real_allowed && simulated_allowed {
            continue;
        }
        assert_eq!(
            simulated, real,
            "operation {number}, {operation:?}: the model's, the real one's"
        );
    }
    operations.len() as u64
}

#[test]
fn every_talk_has_an_outcome_the_model_allows() {
    let operations = proptest::collection::vec(operation(), 1..60).prop_map(|mut operations| {
        operations.insert(0, Operation::Connect);
        operations
    });
    compare("network", cases(60), &operations, on_both);
}

#[test]
fn a_flood_arrives_whole_on_both() {
    let operations =
        proptest::collection::vec((0..2_usize).prop_map(|end| Operation::Flood { end }), 1..2);
    compare("network, more than fits", 3, &operations, |operations| {
        // The whole flood counts as what it is: many writes and reads.
        on_both(operations) * (FLOOD_BYTES as u64 / 65_536)
    });
}
