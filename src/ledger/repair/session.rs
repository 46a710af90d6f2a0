//! A session held for as long as some work runs.

use std::future::Future;
use std::time::Duration;

use crate::metadata::{Metadata, MetadataError, SessionId};
use crate::reached;
use crate::runtime::Clock;

/// Opens a session, runs the work under it and ends both together. When the session is lost the work is
/// dropped where it stands: nothing it does relies on the session.
pub(super) async fn under_session<F: Future<Output = ()>>(
    clock: &Clock,
    metadata: &Metadata,
    time_to_live: Duration,
    work: impl FnOnce(SessionId) -> F,
) -> Result<(), MetadataError> {
    let session = metadata.open_session(time_to_live).await?;
    let kept = keep_alive(clock, metadata, time_to_live, session);
    tokio::select! {
        biased;
        error = kept => {
            reached!("repair: a session was lost");
            Err(error)
        }
        () = work(session) => {
            // If it is not heard, the session expires.
            let _ = clock.timeout(Duration::from_secs(1), metadata.close_session(session)).await;
            Ok(())
        }
    }
}

/// Keeps the session alive until it is certainly lost. While metadata is away nobody knows.
async fn keep_alive(
    clock: &Clock,
    metadata: &Metadata,
    time_to_live: Duration,
    session: SessionId,
) -> MetadataError {
    loop {
        clock.sleep(time_to_live / 3).await;
        if let Err(error @ MetadataError::SessionExpired) = metadata.keep_alive(session).await {
            return error;
        }
    }
}
