//! Restart after kill -9 with much in the journal.

use std::path::Path;
use std::time::{Duration, Instant};

use super::BenchError;
use super::child::Server;
use super::closed_loop::{self, ClosedLoop, Until};
use super::measurement::Side;
use super::usage::Observer;
use super::wire::MessageShape;

const CONNECTIONS: usize = 16;
const SIZE: usize = 1024;

/// What came of it.
pub(super) struct Restarted {
    /// Payload bytes acknowledged before the kill.
    pub(super) bytes: u64,
    /// From the second start until the first new message was acknowledged.
    pub(super) time: Duration,
}

/// Publishes `bytes`, kills the server, starts it again and publishes once more.
pub(super) fn restart(data: &Path, bytes: u64) -> Result<Restarted, BenchError> {
    let mut server = Server::start(Side::Seawall, data)?;
    let closed = ClosedLoop {
        connections: CONNECTIONS,
        window: 64,
        shape: MessageShape { size: SIZE, batch: 1 },
    };
    let each = bytes / (CONNECTIONS * SIZE) as u64;
    let observer = Observer::new(&server, data);
    let published = closed_loop::publish(&server.target, closed, Until::Frames(each), &observer)?;
    server.kill();
    let began = Instant::now();
    let server = Server::start(Side::Seawall, data)?;
    let observer = Observer::new(&server, data);
    let one = ClosedLoop { connections: 1, window: 1, ..closed };
    closed_loop::publish(&server.target, one, Until::Frames(1), &observer)?;
    tracing::debug!(ready = ?server.start_time, "restarted");
    Ok(Restarted { bytes: published.frames_in_all * SIZE as u64, time: began.elapsed() })
}
