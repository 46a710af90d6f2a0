//! Closed loop: each connection keeps a window of frames unacknowledged, for a time or for a number of
//! frames. Shows what a server can take; hides what happens to latency when it cannot.

use std::time::Duration;

use bytes::BytesMut;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::BenchError;
use super::load::{self, Phase, Run, Tally};
use super::usage::{Observer, Usage};
use super::wire::{MessageShape, Publisher, Target};

/// How the closed loop publishes.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClosedLoop {
    /// Connections.
    pub(super) connections: usize,
    /// Frames unacknowledged on each.
    pub(super) window: usize,
    /// What a frame is.
    pub(super) shape: MessageShape,
}

/// When it is over.
#[derive(Clone, Copy, Debug)]
pub(super) enum Until {
    /// After a warm-up and this time.
    Time(Duration),
    /// After this many frames on each connection; all are counted.
    Frames(u64),
}

/// What came of it.
pub(super) struct Published {
    /// What was counted.
    pub(super) tally: Tally,
    /// Frames acknowledged, warm-up included.
    pub(super) frames_in_all: u64,
    /// What the counted part used.
    pub(super) usage: Usage,
}

const WARM_UP: Duration = Duration::from_millis(700);
/// Room for one read of acknowledgements.
const READ_BYTES: usize = 32 * 1024;
/// Beyond its own length a run may take this long.
const PATIENCE: Duration = Duration::from_secs(60);

/// Publishes and measures.
pub(super) fn publish(
    target: &Target,
    closed: ClosedLoop,
    until: Until,
    observer: &Observer,
) -> Result<Published, BenchError> {
    let limit = match until {
        Until::Time(time) => time + WARM_UP + PATIENCE,
        Until::Frames(_) => PATIENCE * 10,
    };
    load::on_one_thread(limit, "publishing in a closed loop", async {
        let mut publishers = Vec::new();
        for index in 0..closed.connections {
            publishers.push(Publisher::open(target, index, closed.shape).await?);
        }
        let run = Run::new()?;
        let frames_max = match until {
            Until::Time(_) => u64::MAX,
            Until::Frames(frames) => frames,
        };
        let mut before = observer.look()?;
        let mut after = before.clone();
        let connections = load::all(
            publishers
                .into_iter()
                .map(|publisher| connection(publisher, closed.window, frames_max, &run)),
        );
        match until {
            Until::Frames(_) => {
                run.phase.set(Phase::Measured);
                connections.await?;
                after = observer.look()?;
            }
            Until::Time(time) => {
                let clock = async {
                    tokio::time::sleep(WARM_UP).await;
                    before = observer.look()?;
                    run.phase.set(Phase::Measured);
                    tokio::time::sleep(time).await;
                    after = observer.look()?;
                    run.phase.set(Phase::Stopping);
                    Ok(())
                };
                tokio::try_join!(clock, connections)?;
            }
        }
        let frames_in_all = run.acknowledged_in_all.get();
        Ok(Published { tally: run.tally.into_inner(), frames_in_all, usage: after.since(&before) })
    })
}

async fn connection(
    publisher: Publisher,
    window: usize,
    frames_max: u64,
    run: &Run,
) -> Result<(), BenchError> {
    let acknowledgements = publisher.reader();
    let Publisher { mut stream, mut encoder, .. } = publisher;
    let (mut reader, mut writer) = stream.split();
    let mut out = BytesMut::with_capacity(256 * 1024);
    let mut input = BytesMut::with_capacity(64 * 1024);
    let mut sent_at = vec![0_u64; window];
    let (mut next, mut in_flight) = (0_u64, 0_usize);
    loop {
        let is_over = run.phase.get() == Phase::Stopping || next == frames_max;
        if is_over && in_flight == 0 {
            return Ok(());
        }
        if !is_over && in_flight < window {
            let now = run.now();
            while in_flight < window && next < frames_max {
                encoder.frame(next, None, &mut out);
                if let Some(place) = sent_at.get_mut(next as usize % window) {
                    *place = now;
                }
                next += 1;
                in_flight += 1;
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
                let is_counted = run.phase.get() == Phase::Measured;
                let mut tally = run.tally.borrow_mut();
                let mut seen = 0_u64;
                acknowledgements.read(&mut input, &mut out, &mut |number| {
                    seen += 1;
                    if is_counted {
                        let sent = sent_at.get(number as usize % window).copied().unwrap_or(now);
                        tally.acknowledgement.saturating_record(now.saturating_sub(sent));
                    }
                })?;
                if is_counted {
                    tally.frames += seen;
                }
                run.acknowledged_in_all.set(run.acknowledged_in_all.get() + seen);
                in_flight = in_flight.checked_sub(seen as usize).ok_or_else(|| {
                    BenchError::Server("acknowledged more than was sent".to_owned())
                })?;
            }
            wrote = writer.write_buf(&mut out), if !out.is_empty() => {
                wrote.map_err(BenchError::io("write a message"))?;
            }
        }
    }
}
