//! From files to state.

use std::path::Path;

use crate::metadata::MetadataStartError;
use crate::metadata::durable::{LogFile, LogRecovery, SNAPSHOT_NAME, log_name, read_snapshot};
use crate::metadata::store::{Store, decode_group};
use crate::runtime::Runtime;

/// The state, and the log to go on with.
pub(super) struct Recovered {
    pub(super) store: Store,
    pub(super) log: LogFile,
    /// Names of logs the snapshot has made superfluous.
    pub(super) old_logs: Vec<String>,
}

/// Reads snapshot and logs of a folder; creates them in an empty one.
pub(super) async fn recover(
    runtime: &Runtime,
    directory: &Path,
) -> Result<Recovered, MetadataStartError> {
    let disk = &runtime.disk;
    LogRecovery::prepare(disk, directory).await?;
    let mut store = match read_snapshot(disk, directory).await? {
        Some(payload) => Store::from_snapshot(payload)
            .map_err(|damage| MetadataStartError::corrupt(SNAPSHOT_NAME, damage))?,
        None => Store::new(),
    };
    let next = store.applied() + 1;
    let logs = LogRecovery::find(disk, directory, next).await?;
    if logs.is_empty() && store.applied() > 0 {
        // The log that goes on from a snapshot is durable before the snapshot is.
        return Err(MetadataStartError::corrupt(&log_name(next), "there is a snapshot but no log"));
    }
    let old_logs = logs.old_logs();
    let take = |first: u64, payload| {
        let commands = decode_group(payload).map_err(|damage| damage.to_string())?;
        for (number, command) in (first..).zip(&commands) {
            if number == store.applied() + 1 {
                // The answers were given, or lost, before the crash.
                let _ = store.apply(command);
            }
        }
        Ok(commands.len() as u64)
    };
    let (log, _) = logs.replay(runtime, directory, next, take).await?;
    Ok(Recovered { store, log, old_logs })
}
