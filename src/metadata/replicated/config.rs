//! Folder, member, times and sizes of a replicated store.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Observer;
use crate::domain::MEBIBYTE;
use crate::metadata::consensus::{MemberId, Membership, Settings, TimerSettings};
use crate::rpc::ChannelConfig;

/// Sizes of a member's log and of what it sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberLimits {
    /// After this many bytes of log a snapshot is written and the log begins anew.
    pub log_bytes: u64,
    /// Most entries kept behind a snapshot for members that are a little behind; a quarter of `log_bytes` at
    /// most. Who needs older ones is sent the snapshot.
    pub log_kept: u64,
    /// Bytes of a piece of a snapshot.
    pub snapshot_part: usize,
}

impl Default for MemberLimits {
    fn default() -> Self {
        Self { log_bytes: 16 * MEBIBYTE, log_kept: 1000, snapshot_part: MEBIBYTE as usize }
    }
}

impl MemberLimits {
    /// Bytes of entries kept behind a snapshot.
    pub(super) fn log_kept_bytes(&self) -> u64 {
        self.log_bytes / 4
    }
}

/// Folder, member, times and sizes of a replicated store.
#[derive(Clone, Debug)]
pub struct ReplicatedConfig {
    /// Folder of log and snapshot; created if missing.
    pub directory: PathBuf,
    /// This member.
    pub id: MemberId,
    /// The founding members, the same on each of them. A member that joins a running group has none.
    pub founders: Membership,
    /// Node-to-node addresses of the group, for a member that is no founder.
    pub contacts: Vec<String>,
    /// Bounds of the consensus machine.
    pub settings: Settings,
    /// Heartbeat and election time-outs.
    pub timers: TimerSettings,
    /// Sizes of its log and of what it sends.
    pub limits: MemberLimits,
    /// One step of logical time is at most this.
    pub tick: Duration,
    /// Messages and requests waiting for the driver; senders wait beyond it.
    pub queue_length: usize,
    /// Bytes of changes waiting for the driver; callers wait beyond it.
    pub queue_bytes: usize,
    /// Messages waiting for one member; more are dropped, as if lost on the way.
    pub peer_queue: usize,
    /// Longest snapshot taken from another member.
    pub snapshot_bytes_max: usize,
    /// Without a leader for this long watches end, so that watchers look for a member that has one.
    pub watch_patience: Duration,
    /// The connections to other members.
    pub channel: ChannelConfig,
    /// Told what the member does.
    pub observer: Observer,
}

impl ReplicatedConfig {
    /// Defaults below one data folder.
    pub fn below(data: &Path, id: MemberId, founders: Membership) -> Self {
        Self {
            directory: data.join("metadata-group"),
            id,
            founders,
            contacts: Vec::new(),
            settings: Settings::default(),
            timers: TimerSettings::default(),
            limits: MemberLimits::default(),
            tick: Duration::from_millis(500),
            queue_length: 4096,
            queue_bytes: 16 * MEBIBYTE as usize,
            peer_queue: 256,
            snapshot_bytes_max: 1024 * MEBIBYTE as usize,
            watch_patience: Duration::from_secs(3),
            channel: ChannelConfig {
                connect_timeout: Duration::from_secs(1),
                back_off_max: Duration::from_millis(500),
                keep_alive_interval: Duration::from_millis(500),
                keep_alive_timeout: Duration::from_secs(1),
                ..ChannelConfig::default()
            },
            observer: Observer::default(),
        }
    }
}
