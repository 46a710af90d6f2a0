//! One position of an ensemble being written to: the bookie there and how it is doing.

use std::time::Duration;

use crate::domain::{AddError, BookieId, Instant};

/// Pause before entries are sent again to a bookie that failed; doubles up to [`PAUSE_MAX`].
const PAUSE_MIN: Duration = Duration::from_millis(10);
/// Longest pause between attempts.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// A run of failures without a success between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::ledger) struct Failure {
    /// The latest answer.
    pub(in crate::ledger) error: AddError,
    /// When the run began.
    pub(in crate::ledger) since: Instant,
    /// When to try again.
    pub(in crate::ledger) retry_at: Instant,
    pause: Duration,
    attempted: bool,
}

impl Failure {
    /// True if trying this bookie again soon is pointless.
    pub(in crate::ledger) fn is_firm(&self) -> bool {
        match self.error {
            AddError::WrongCreator
            | AddError::Deleted
            | AddError::ReadOnly
            | AddError::Poisoned(_)
            | AddError::Fenced => true,
            AddError::Damaged(_) | AddError::Overloaded | AddError::Unreachable(_) => false,
        }
    }
}

/// A position of the ensemble.
#[derive(Clone, Debug)]
pub(in crate::ledger) struct Member {
    /// Who is there now.
    pub(in crate::ledger) bookie: BookieId,
    /// Set from its first error until its next success.
    pub(in crate::ledger) failure: Option<Failure>,
    /// Some sent entry of its write sets was neither acknowledged nor is on its way.
    pub(in crate::ledger) is_owed: bool,
    /// So silent that an entry sent to it was given up: nothing more is sent until it answers again.
    pub(in crate::ledger) is_stalled: bool,
}

impl Member {
    pub(in crate::ledger) fn new(bookie: BookieId) -> Self {
        Self { bookie, failure: None, is_owed: false, is_stalled: false }
    }

    /// Notes an error answer.
    pub(in crate::ledger) fn fail(&mut self, error: AddError, now: Instant) {
        self.is_owed = true;
        match &mut self.failure {
            Some(failure) => {
                // Several batches may fail at once; only a further attempt lengthens the pause.
                if std::mem::take(&mut failure.attempted) {
                    failure.pause = (failure.pause * 2).min(PAUSE_MAX);
                }
                failure.retry_at = now + failure.pause;
                failure.error = error;
            }
            None => {
                self.failure = Some(Failure {
                    error,
                    since: now,
                    retry_at: now + PAUSE_MIN,
                    pause: PAUSE_MIN,
                    attempted: false,
                });
            }
        }
    }

    /// Notes an attempt while failing: the next one comes a pause later.
    pub(in crate::ledger) fn probed(&mut self, now: Instant) {
        if let Some(failure) = &mut self.failure {
            failure.retry_at = now + failure.pause;
            failure.attempted = true;
        }
    }
}
