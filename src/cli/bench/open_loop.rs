//! Open loop: messages are due at a fixed rate whatever the server does, and latency counts from the moment
//! a message was due, so a server that stalls is not forgiven the messages that had to wait.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::BytesMut;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Notify;

use super::BenchError;
use super::load::{self, Phase, Run, Tally};
use super::usage::{Observer, Usage};
use super::wire::{MessageReader, MessageShape, Publisher, Subscriber, Target};

/// How the open loop publishes.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenLoop {
    /// Connections, taking turns.
    pub(super) connections: usize,
    /// Messages a second over all.
    pub(super) rate: u64,
    /// Bytes of one message.
    pub(super) size: usize,
}

/// What came of it.
pub(super) struct Flowed {
    /// What was counted.
    pub(super) tally: Tally,
    /// What the counted part used.
    pub(super) usage: Usage,
    /// Messages published in all phases.
    pub(super) published: u64,
    /// Messages that reached the consumer.
    pub(super) received: u64,
}

const WARM_UP: Duration = Duration::from_secs(1);
/// Room for one read of acknowledgements.
const READ_BYTES: usize = 32 * 1024;
/// For what is still on its way when publishing ends.
const PATIENCE: Duration = Duration::from_secs(30);
/// Unacknowledged messages of one connection; at the bound it waits, and its messages age.
const UNACKNOWLEDGED_MAX: usize = 50_000;
/// The pace is kept by short sleeps of this length.
const TICK: Duration = Duration::from_micros(50);

/// What the pace thread tells one connection.
#[derive(Default)]
struct Pace {
    due: AtomicU64,
    woken: Notify,
}

/// Tells connections in turn what is due. A thread, because the executor's timer counts milliseconds.
struct Pacemaker {
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Pacemaker {
    fn start(origin: Instant, rate: u64, paces: Vec<Arc<Pace>>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut given = 0_u64;
            while !stopped.load(Ordering::Relaxed) {
                let elapsed = u128::from(load::nanoseconds(origin.elapsed()));
                let due = u64::try_from(elapsed * u128::from(rate) / 1_000_000_000).unwrap_or(0);
                let turns = (due - given).min(paces.len() as u64);
                for message in given..due {
                    if let Some(pace) = paces.get(message as usize % paces.len()) {
                        pace.due.fetch_add(1, Ordering::Release);
                    }
                }
                for turn in 0..turns {
                    if let Some(pace) = paces.get((given + turn) as usize % paces.len()) {
                        pace.woken.notify_one();
                    }
                }
                given = due;
                std::thread::sleep(TICK);
            }
        });
        Self { stop, thread: Some(thread) }
    }
}

impl Drop for Pacemaker {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A pace thread that panicked has told nobody anything more, and the run is over.
            let _ = thread.join();
        }
    }
}

/// When messages of the counted part are due.
struct Counted {
    from: Cell<u64>,
    to: Cell<u64>,
}

impl Counted {
    const fn has(&self, due: u64) -> bool {
        due >= self.from.get() && due < self.to.get()
    }
}

/// Publishes at the rate with one consumer at the tail, and measures.
pub(super) fn flow(
    target: &Target,
    open: OpenLoop,
    time: Duration,
    observer: &Observer,
) -> Result<Flowed, BenchError> {
    let limit = WARM_UP + time + PATIENCE * 2;
    load::on_one_thread(limit, "publishing in an open loop", async {
        let subscriber = Subscriber::open(target, false).await?;
        let shape = MessageShape { size: open.size, batch: 1 };
        let mut publishers = Vec::new();
        for index in 0..open.connections {
            publishers.push(Publisher::open(target, index, shape).await?);
        }
        let paces: Vec<Arc<Pace>> = publishers.iter().map(|_| Arc::default()).collect();
        let run = Run::new()?;
        let counted = Counted { from: Cell::new(u64::MAX), to: Cell::new(u64::MAX) };
        let published = Cell::new(None);
        let pacemaker = Pacemaker::start(run.origin, open.rate, paces.clone());
        let mut before = observer.look()?;
        let mut after = before.clone();
        let clock = async {
            tokio::time::sleep(WARM_UP).await;
            before = observer.look()?;
            counted.from.set(run.now());
            tokio::time::sleep(time).await;
            counted.to.set(run.now());
            after = observer.look()?;
            run.phase.set(Phase::Stopping);
            drop(pacemaker);
            // Whoever waits for the next message must see that there is none.
            paces.iter().for_each(|pace| pace.woken.notify_one());
            Ok(())
        };
        let publishing = async {
            let connections = publishers.into_iter().zip(&paces).enumerate();
            load::all(connections.map(|(index, (publisher, pace))| {
                let interval = Interval { index, count: open.connections, rate: open.rate };
                connection(publisher, pace, interval, &counted, &run)
            }))
            .await?;
            published.set(Some(run.acknowledged_in_all.get()));
            Ok(())
        };
        let consuming = consume(subscriber, open.size, &published, &counted, &run);
        let ((), (), received) = tokio::try_join!(clock, publishing, consuming)?;
        let published = published.get().unwrap_or_default();
        let tally = run.tally.into_inner();
        Ok(Flowed { tally, usage: after.since(&before), published, received })
    })
}

/// When a connection's messages are due.
#[derive(Clone, Copy)]
struct Interval {
    index: usize,
    count: usize,
    rate: u64,
}

impl Interval {
    /// When the connection's message `number` is due, nanoseconds after the run began.
    fn due(self, number: u64) -> u64 {
        let overall = u128::from(number) * self.count as u128 + self.index as u128 + 1;
        u64::try_from(overall * 1_000_000_000 / u128::from(self.rate)).unwrap_or(u64::MAX)
    }
}

async fn connection(
    publisher: Publisher,
    pace: &Pace,
    interval: Interval,
    counted: &Counted,
    run: &Run,
) -> Result<(), BenchError> {
    let acknowledgements = publisher.reader();
    let Publisher { mut stream, mut encoder, .. } = publisher;
    let (mut reader, mut writer) = stream.split();
    let mut out = BytesMut::with_capacity(64 * 1024);
    let mut input = BytesMut::with_capacity(64 * 1024);
    let mut waiting: VecDeque<u64> = VecDeque::new();
    let mut next = 0_u64;
    loop {
        if run.phase.get() == Phase::Stopping {
            if waiting.is_empty() {
                return Ok(());
            }
        } else {
            let due = pace.due.load(Ordering::Acquire);
            while next < due && waiting.len() < UNACKNOWLEDGED_MAX {
                let stamp = interval.due(next);
                encoder.frame(next, Some(stamp), &mut out);
                waiting.push_back(stamp);
                next += 1;
            }
        }
        // Takes the buffer's start back once all in it was read.
        input.reserve(READ_BYTES);
        tokio::select! {
            biased;
            read = reader.read_buf(&mut input) => {
                if read.map_err(BenchError::io("read an acknowledgement"))? == 0 {
                    return Err(BenchError::Server("closed a publishing connection".to_owned()));
                }
                let now = run.now();
                let mut tally = run.tally.borrow_mut();
                let mut seen = 0_u64;
                acknowledgements.read(&mut input, &mut out, &mut |_| {
                    seen += 1;
                    let stamp = waiting.pop_front().unwrap_or(now);
                    if counted.has(stamp) {
                        tally.frames += 1;
                        tally.acknowledgement.saturating_record(now.saturating_sub(stamp));
                    }
                })?;
                run.acknowledged_in_all.set(run.acknowledged_in_all.get() + seen);
            }
            wrote = writer.write_buf(&mut out), if !out.is_empty() => {
                wrote.map_err(BenchError::io("write a message"))?;
            }
            () = pace.woken.notified() => {}
        }
    }
}

/// Receives until everything published has come.
async fn consume(
    subscriber: Subscriber,
    size: usize,
    published: &Cell<Option<u64>>,
    counted: &Counted,
    run: &Run,
) -> Result<u64, BenchError> {
    let Subscriber { mut stream, reader: mut messages, mut input } = subscriber;
    let mut reply = BytesMut::new();
    let mut received = 0_u64;
    let mut patience = None;
    loop {
        take_messages(&mut messages, &mut input, &mut reply, size, counted, run, &mut received)?;
        if !reply.is_empty() {
            let written = reply.split();
            stream.write_all(&written).await.map_err(BenchError::io("give permits"))?;
        }
        if let Some(total) = published.get() {
            let deadline = *patience.get_or_insert_with(|| Instant::now() + PATIENCE);
            if received >= total || Instant::now() > deadline {
                return Ok(received);
            }
        }
        input.reserve(128 * 1024);
        tokio::select! {
            biased;
            read = stream.read_buf(&mut input) => {
                if read.map_err(BenchError::io("read a message"))? == 0 {
                    return Err(BenchError::Server("closed the consuming connection".to_owned()));
                }
            }
            // Publishing may end while nothing comes.
            () = tokio::time::sleep(Duration::from_millis(100)) => {}
        }
    }
}

/// Counts every whole message that has come.
fn take_messages(
    messages: &mut MessageReader,
    input: &mut BytesMut,
    reply: &mut BytesMut,
    size: usize,
    counted: &Counted,
    run: &Run,
    received: &mut u64,
) -> Result<(), BenchError> {
    let now = run.now();
    let mut tally = run.tally.borrow_mut();
    messages.read(input, reply, size, &mut |stamp| {
        *received += 1;
        if counted.has(stamp) {
            tally.end_to_end.saturating_record(now.saturating_sub(stamp));
        }
    })
}
