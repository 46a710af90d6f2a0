//! What can be set about a simulated world, its links and its disks.

use std::time::Duration;

use super::recorder::Recorder;
use super::tape::TapeMask;

/// One run.
#[derive(Clone, Debug)]
pub struct WorldSettings {
    /// Virtual time after which the run ends as failed.
    pub time_limit: Duration,
    /// Decisions that must not happen.
    pub mask: TapeMask,
    /// How many of the last events to keep for a trace; 0 keeps none (the hash is always computed).
    pub trace_capacity: usize,
    /// How many decisions the tape holds; later ones happen but are only counted.
    pub tape_capacity: usize,
    /// Links without settings of their own.
    pub link: LinkSettings,
    /// Disks without settings of their own.
    pub disk: DiskSettings,
    /// Bytes a stream holds per direction before writes wait.
    pub stream_window: usize,
    /// Share of reads and writes on streams that are cut short.
    pub short_io_rate: f64,
    /// Other latencies of disks and links than the seed's own (0), and nothing else.
    pub timing: u64,
    /// Writes down what happens, unless it is off.
    pub recorder: Recorder,
}

impl Default for WorldSettings {
    fn default() -> Self {
        Self {
            time_limit: Duration::from_secs(3600),
            mask: TapeMask::new(),
            trace_capacity: 0,
            tape_capacity: 1 << 20,
            link: LinkSettings::default(),
            disk: DiskSettings::default(),
            stream_window: 256 * 1024,
            short_io_rate: 0.02,
            timing: 0,
            recorder: Recorder::default(),
        }
    }
}

/// One directed link.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkSettings {
    /// The least latency.
    pub latency: Duration,
    /// Mean of the exponential tail on top.
    pub tail: Duration,
    /// Bytes a second; `None` is unlimited.
    pub bandwidth: Option<u64>,
    /// Share of segments lost and sent again after 200 ms.
    pub loss_rate: f64,
    /// Share of segments that reset their stream.
    pub reset_rate: f64,
}

impl Default for LinkSettings {
    fn default() -> Self {
        Self {
            latency: Duration::from_millis(1),
            tail: Duration::from_micros(500),
            bandwidth: None,
            loss_rate: 0.0,
            reset_rate: 0.0,
        }
    }
}

/// One disk.
#[derive(Clone, Debug, PartialEq)]
pub struct DiskSettings {
    /// Latency of a read.
    pub read_latency: Duration,
    /// Latency of a write (into the page cache).
    pub write_latency: Duration,
    /// The least latency of a sync.
    pub sync_latency: Duration,
    /// Mean of the exponential tail of a sync.
    pub sync_tail: Duration,
    /// Multiplies every latency: slow mode.
    pub slowness: u32,
    /// Share of reads that fail.
    pub read_error_rate: f64,
    /// Share of writes that fail.
    pub write_error_rate: f64,
    /// Share of syncs that fail.
    pub sync_error_rate: f64,
    /// Share of writes that land elsewhere in the same file, at the sector size.
    pub misdirected_write_rate: f64,
    /// Share of index flushes that fail.
    pub index_flush_error_rate: f64,
    /// Share of index opens after a crash that fail until the index is destroyed.
    pub index_open_error_rate: f64,
    /// Bytes the disk holds.
    pub capacity: u64,
    /// Whether a power loss may lose or tear unsynced writes and names; if not, it keeps all.
    pub lossy: bool,
}

impl Default for DiskSettings {
    fn default() -> Self {
        Self {
            read_latency: Duration::ZERO,
            write_latency: Duration::ZERO,
            sync_latency: Duration::from_millis(1),
            sync_tail: Duration::from_micros(500),
            slowness: 1,
            read_error_rate: 0.0,
            write_error_rate: 0.0,
            sync_error_rate: 0.0,
            misdirected_write_rate: 0.0,
            index_flush_error_rate: 0.0,
            index_open_error_rate: 0.0,
            capacity: 64 << 30,
            lossy: true,
        }
    }
}

impl LinkSettings {
    /// How it is unlike this, in words.
    pub(super) fn differences(&self, usual: &Self) -> String {
        let mut words = Vec::new();
        if (self.latency, self.tail) != (usual.latency, usual.tail) {
            words.push(format!("latency {:?} and a tail of {:?}", self.latency, self.tail));
        }
        if let Some(rate) = self.bandwidth {
            words.push(format!("{rate} bytes a second"));
        }
        words.extend(share("segments are lost", self.loss_rate));
        words.extend(share("segments break their stream", self.reset_rate));
        words.join(", ")
    }
}

impl DiskSettings {
    /// How it is unlike this, in words.
    pub(super) fn differences(&self, usual: &Self) -> String {
        let mut words = Vec::new();
        if self.slowness != usual.slowness {
            words.push(format!("{} times as slow", self.slowness));
        }
        if self.capacity != usual.capacity {
            words.push(format!("room for {} bytes", self.capacity));
        }
        words.extend(share("reads fail", self.read_error_rate));
        words.extend(share("writes fail", self.write_error_rate));
        words.extend(share("syncs fail", self.sync_error_rate));
        words.extend(share("writes land elsewhere", self.misdirected_write_rate));
        words.extend(share("flushes of indexes fail", self.index_flush_error_rate));
        words.join(", ")
    }
}

fn share(what: &str, rate: f64) -> Option<String> {
    (rate > 0.0).then(|| format!("{:.0} % of {what}", rate * 100.0))
}
