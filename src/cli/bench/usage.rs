//! What a server and the device used, from `/proc` and `/sys`; the whole machine too, to see whether others
//! were at work.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::BenchError;
use super::child::Server;
use crate::cli::process_time::{TICKS_PER_SECOND, process_ticks};

/// Unit of the device's counters, whatever its own sectors are.
const SECTOR_BYTES: u64 = 512;

/// Looks at the processes of a server, the device of one folder, and the machine.
pub(super) struct Observer {
    processes: Vec<u32>,
    device: Option<PathBuf>,
}

/// Counters at a moment.
#[derive(Clone, Debug)]
pub(super) struct Look {
    at: Instant,
    server_ticks: u64,
    own_ticks: u64,
    busy_ticks: u64,
    all_ticks: u64,
    device: Option<DeviceCounters>,
}

#[derive(Clone, Copy, Debug)]
struct DeviceCounters {
    bytes_written: u64,
    flushes: u64,
}

/// What was used between two looks.
#[derive(Clone, Debug)]
pub(super) struct Usage {
    /// Time between them.
    pub(super) time: Duration,
    /// The server's CPU time, user and system.
    pub(super) server_cpu: Duration,
    /// Part of the machine's CPU used by neither server nor generator, 0 to 1.
    pub(super) others_share: f64,
    /// Bytes written to the device, by anybody.
    pub(super) device_bytes: Option<u64>,
    /// Flush requests of the device, by anybody.
    pub(super) device_flushes: Option<u64>,
}

impl Observer {
    /// For a server and the folder it writes to.
    pub(super) fn new(server: &Server, folder: &Path) -> Self {
        Self { processes: server.processes(), device: device_of(folder) }
    }

    /// The counters now.
    pub(super) fn look(&self) -> Result<Look, BenchError> {
        let (busy_ticks, all_ticks) = machine_ticks()?;
        let mut server_ticks = 0;
        for process in &self.processes {
            server_ticks += ticks_of(&format!("/proc/{process}/stat"))?;
        }
        Ok(Look {
            at: Instant::now(),
            server_ticks,
            own_ticks: ticks_of("/proc/self/stat")?,
            busy_ticks,
            all_ticks,
            device: self.device.as_deref().and_then(device_counters),
        })
    }

    /// Waits until the device has been quiet for `quiet`, at most `limit`.
    pub(super) fn settle(&self, quiet: Duration, limit: Duration) {
        let began = Instant::now();
        let written = || {
            let counters = self.device.as_deref().and_then(device_counters);
            counters.map_or(0, |counters| counters.bytes_written)
        };
        let (mut last, mut since) = (written(), Instant::now());
        while since.elapsed() < quiet && began.elapsed() < limit {
            std::thread::sleep(Duration::from_millis(100));
            let now = written();
            // Logs and metadata of others trickle.
            if now > last + 1024 * 1024 {
                since = Instant::now();
            }
            last = last.max(now);
        }
    }
}

impl Look {
    /// What was used since an earlier look.
    pub(super) fn since(&self, earlier: &Self) -> Usage {
        let server = self.server_ticks.saturating_sub(earlier.server_ticks);
        let own = self.own_ticks.saturating_sub(earlier.own_ticks);
        let busy = self.busy_ticks.saturating_sub(earlier.busy_ticks);
        let all = self.all_ticks.saturating_sub(earlier.all_ticks).max(1);
        let device = self.device.zip(earlier.device);
        Usage {
            time: self.at.duration_since(earlier.at),
            server_cpu: Duration::from_secs_f64(server as f64 / TICKS_PER_SECOND as f64),
            others_share: busy.saturating_sub(server + own) as f64 / all as f64,
            device_bytes: device.map(|(now, then)| now.bytes_written - then.bytes_written),
            device_flushes: device.map(|(now, then)| now.flushes - then.flushes),
        }
    }
}

fn ticks_of(path: &str) -> Result<u64, BenchError> {
    let text = std::fs::read_to_string(path).map_err(BenchError::io(path))?;
    Ok(process_ticks(&text).unwrap_or(0))
}

/// Busy and all ticks of all cores.
fn machine_ticks() -> Result<(u64, u64), BenchError> {
    let text = std::fs::read_to_string("/proc/stat").map_err(BenchError::io("/proc/stat"))?;
    let line = text.lines().next().unwrap_or_default();
    let ticks: Vec<u64> =
        line.split_whitespace().skip(1).take(8).map(|field| field.parse().unwrap_or(0)).collect();
    let all: u64 = ticks.iter().sum();
    let idle: u64 = ticks.iter().skip(3).take(2).sum();
    Ok((all - idle, all))
}

/// The statistics file of the disk a folder is on; none for memory, overlays and the like.
fn device_of(folder: &Path) -> Option<PathBuf> {
    let status = rustix::fs::stat(folder).ok()?;
    let (major, minor) = (rustix::fs::major(status.st_dev), rustix::fs::minor(status.st_dev));
    let device = std::fs::canonicalize(format!("/sys/dev/block/{major}:{minor}")).ok()?;
    // Flushes are counted for the whole disk only.
    let disk = if device.join("partition").exists() { device.parent()? } else { &device };
    let statistics = disk.join("stat");
    statistics.exists().then_some(statistics)
}

/// Sectors written are field 7, flush requests field 16.
fn device_counters(statistics: &Path) -> Option<DeviceCounters> {
    let text = std::fs::read_to_string(statistics).ok()?;
    let fields: Vec<u64> =
        text.split_whitespace().map(|field| field.parse().unwrap_or(0)).collect();
    Some(DeviceCounters {
        bytes_written: fields.get(6)? * SECTOR_BYTES,
        flushes: fields.get(15).copied().unwrap_or(0),
    })
}
