//! Catch-up: one consumer reads a topic from its start.

use std::time::{Duration, Instant};

use bytes::BytesMut;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::BenchError;
use super::closed_loop::{self, ClosedLoop, Until};
use super::load;
use super::usage::{Observer, Usage};
use super::wire::{MessageShape, Subscriber, Target};

const LIMIT: Duration = Duration::from_secs(300);
const CONNECTIONS: usize = 8;

/// What came of it.
pub(super) struct CaughtUp {
    /// From the subscription to the last message.
    pub(super) time: Duration,
    /// Messages read.
    pub(super) messages: u64,
    /// What reading used.
    pub(super) usage: Usage,
}

/// Publishes `messages` of `size` bytes, then reads them all.
pub(super) fn catch_up(
    target: &Target,
    messages: u64,
    size: usize,
    observer: &Observer,
) -> Result<CaughtUp, BenchError> {
    // The subscription must be there first, or nothing would be kept for it.
    load::on_one_thread(LIMIT, "subscribing", async {
        Subscriber::open(target, true).await.map(drop)
    })?;
    let closed =
        ClosedLoop { connections: CONNECTIONS, window: 64, shape: MessageShape { size, batch: 1 } };
    let each = messages.div_ceil(CONNECTIONS as u64);
    let published = closed_loop::publish(target, closed, Until::Frames(each), observer)?;
    let total = published.frames_in_all;
    load::on_one_thread(LIMIT, "catching up", async {
        let before = observer.look()?;
        let began = Instant::now();
        let Subscriber { mut stream, reader: mut messages, mut input } = open_again(target).await?;
        let mut reply = BytesMut::new();
        let mut received = 0_u64;
        loop {
            messages.read(&mut input, &mut reply, size, &mut |_| received += 1)?;
            if received >= total {
                break;
            }
            if !reply.is_empty() {
                let written = reply.split();
                stream.write_all(&written).await.map_err(BenchError::io("give permits"))?;
            }
            input.reserve(256 * 1024);
            let read =
                stream.read_buf(&mut input).await.map_err(BenchError::io("read a message"))?;
            if read == 0 {
                return Err(BenchError::Server("closed the consuming connection".to_owned()));
            }
        }
        let time = began.elapsed();
        Ok(CaughtUp { time, messages: received, usage: observer.look()?.since(&before) })
    })
}

/// The server may not have noticed yet that the first consumer left.
async fn open_again(target: &Target) -> Result<Subscriber, BenchError> {
    let mut tries = 0;
    loop {
        match Subscriber::open(target, true).await {
            Err(BenchError::Server(_)) if tries < 50 => {
                tries += 1;
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            other => return other,
        }
    }
}
