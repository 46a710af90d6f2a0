//! The long poll: a caller waits here until a ledger's last add confirmed has moved.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::shared::Shared;
use crate::domain::{CreatorToken, EntryId, LastAddConfirmed, LedgerId, ReadError};
use crate::reached;

/// The longest wait of one call; a longer one asked for is cut to this.
pub(super) const WAIT_MAX: Duration = Duration::from_secs(30);
/// Callers waiting at once. The next one is answered at once with what is known, as if its time were over.
pub(super) const WAITING_MAX: usize = 10_000;
/// A ledger never seen here has no state to wait on: it is looked for this often.
const UNSEEN_LOOK: Duration = Duration::from_millis(50);

/// One of the callers that may wait.
struct Place<'a>(&'a AtomicUsize);

impl<'a> Place<'a> {
    fn take(waiting: &'a AtomicUsize) -> Option<Self> {
        let place = Self(waiting);
        // Dropping the place gives it back in either case.
        (waiting.fetch_add(1, Ordering::Relaxed) < WAITING_MAX).then_some(place)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What is known of a ledger's end once its last add confirmed is beyond `beyond`, or the ledger is fenced, or
/// `patience` is over, whichever comes first.
pub(super) async fn wait_last_add_confirmed(
    shared: &Arc<Shared>,
    ledger: LedgerId,
    creator: CreatorToken,
    beyond: EntryId,
    patience: Duration,
) -> Result<LastAddConfirmed, ReadError> {
    let clock = &shared.runtime.clock;
    let deadline = clock.now() + patience.min(WAIT_MAX);
    let place = Place::take(&shared.waiting_readers);
    if place.is_none() {
        reached!("bookie: too many wait for a last add confirmed");
    }
    loop {
        let known = super::fence::find_ledger(shared, ledger, creator, false)?;
        // Made before the look: a change between look and wait counts.
        let changed = known.as_ref().map(|state| state.changed());
        let answer = super::service::end_of(known.as_deref())?;
        let left = deadline.since(clock.now());
        if answer.last_add_confirmed > beyond || answer.fenced || left.is_zero() || place.is_none()
        {
            return Ok(answer);
        }
        match changed {
            Some(changed) => {
                reached!("bookie: a reader waits for the last add confirmed");
                // Over: the next turn answers.
                let _ = clock.timeout(left, changed).await;
            }
            None => clock.sleep(left.min(UNSEEN_LOOK)).await,
        }
    }
}
