//! What a topic is told as a stream, kept in its record: changed by the owner's compare-and-set only.

use std::sync::atomic::Ordering;

use serde::{Deserialize, Serialize};

use super::chain::Chain;
use super::compare_and_set::CasError;
use super::contract::ManagedLedgerError;
use super::handle::{Shared, lock};
use super::numbered::NumberedError;

/// See the module. Neither number ever goes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamState {
    /// Appends that give a token must give this one; 0 if none was ever set.
    pub token: u64,
    /// Entries from this number on are kept, with or without subscriptions.
    pub kept_from: u64,
}

/// Makes the topic a stream if it is none, and changes what it is told.
pub(super) async fn change(
    shared: &Shared,
    change: impl FnOnce(&Chain, &mut StreamState) -> Result<(), NumberedError>,
) -> Result<(), NumberedError> {
    // Held over the write: nobody else changes the record or this state meanwhile.
    let mut held = shared.record.lock().await;
    if shared.closed.load(Ordering::Acquire) {
        return Err(ManagedLedgerError::Fenced.into());
    }
    let (state, chain) = {
        let mut chain = lock(&shared.chain).clone();
        let before = chain.stream;
        let fresh = StreamState { token: 0, kept_from: chain.first_number() };
        let mut state = before.unwrap_or(fresh);
        change(&chain, &mut state)?;
        if before == Some(state) {
            return Ok(());
        }
        chain.stream = Some(state);
        (state, chain)
    };
    match shared.write_record(&mut held, &chain).await {
        Ok(()) => {
            lock(&shared.chain).stream = Some(state);
            Ok(())
        }
        Err(CasError::Conflict) => Err(ManagedLedgerError::Fenced.into()),
        // It may be in the record: then the next change of it conflicts, and the next owner reads it.
        Err(CasError::Unknown(error)) => Err(ManagedLedgerError::Metadata(error).into()),
    }
}
