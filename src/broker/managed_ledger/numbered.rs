//! The log by sequence numbers: reads that know what is trimmed and what is to come, and what makes a topic a
//! stream. A number is the count of entries ever committed before: each ledger's first number is in the topic's
//! record before anything is written to it, so numbers and positions are translated without reading.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::oneshot;

use super::contract::{ManagedLedgerError, StoredEntry};
use super::driver::Input;
use super::handle::{Shared, lock};
use super::{read, stream, trim};
use crate::domain::WallTime;
use crate::reached;

/// The log by numbers could not be read or changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NumberedError {
    /// Given up, or never kept.
    #[error("the first number kept is {first}")]
    Trimmed {
        /// The first number kept.
        first: u64,
    },
    /// Not committed yet.
    #[error("the next number is {next}")]
    BeyondEnd {
        /// The number the next entry gets.
        next: u64,
    },
    /// The token is lower than the log's.
    #[error("the fencing token is {current}")]
    StaleToken {
        /// The log's.
        current: u64,
    },
    /// The managed ledger failed.
    #[error(transparent)]
    Ledger(#[from] ManagedLedgerError),
}

/// What a log tells of itself as a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamFacts {
    /// The first number kept.
    pub first_number: u64,
    /// The number the next entry gets.
    pub next_number: u64,
    /// The fencing token, 0 if none was ever set.
    pub token: u64,
}

/// See the module. Cheap to clone; does not hold the log open.
#[derive(Clone)]
pub struct NumberedLog {
    shared: Arc<Shared>,
}

impl NumberedLog {
    pub(super) const fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// As this broker knows it: one that was deposed and has not heard may be behind.
    pub fn facts(&self) -> StreamFacts {
        let chain = lock(&self.shared.chain);
        StreamFacts {
            first_number: chain.first_number(),
            next_number: chain.next_number(),
            token: chain.stream.map_or(0, |stream| stream.token),
        }
    }

    fn check_open(&self) -> Result<(), NumberedError> {
        match self.shared.closed.load(Ordering::Acquire) {
            true => Err(ManagedLedgerError::Fenced.into()),
            false => Ok(()),
        }
    }

    /// Committed entries from `number` on, the first of that number, each next one higher. None if there is
    /// none yet.
    pub async fn read(
        &self,
        number: u64,
        entries_max: usize,
        bytes_max: usize,
    ) -> Result<Vec<StoredEntry>, NumberedError> {
        self.check_open()?;
        let from = {
            let chain = lock(&self.shared.chain);
            let (first, next) = (chain.first_number(), chain.next_number());
            if number < first {
                return Err(NumberedError::Trimmed { first });
            }
            if number > next {
                return Err(NumberedError::BeyondEnd { next });
            }
            match chain.position_of(number) {
                Some(position) => position,
                None => return Ok(Vec::new()),
            }
        };
        let entries = read::read(&self.shared, from, entries_max, bytes_max).await?;
        if entries.first().is_some_and(|entry| entry.number != number) {
            reached!("numbered log: trimmed while it was read");
            return Err(NumberedError::Trimmed { first: self.facts().first_number });
        }
        Ok(entries)
    }

    /// Completes when an entry of `number` is committed; an error when none will be here any more.
    pub async fn committed(&self, number: u64) -> Result<(), NumberedError> {
        loop {
            let grown = self.shared.grown.notified();
            tokio::pin!(grown);
            // Registered before it is looked at, so that nothing between the two is missed.
            grown.as_mut().enable();
            self.check_open()?;
            if lock(&self.shared.chain).next_number() > number {
                return Ok(());
            }
            grown.await;
        }
    }

    /// The number after the last entry published before `time`, or the first one kept.
    pub async fn number_after(&self, time: WallTime) -> Result<u64, NumberedError> {
        self.check_open()?;
        let found = read::last_before(&self.shared, time).await?;
        let chain = lock(&self.shared.chain);
        let number = found.and_then(|position| chain.number_of(position)).map(|number| number + 1);
        Ok(number.unwrap_or(0).max(chain.first_number()))
    }

    /// Keeps what is there and what comes until it is trimmed by number. Harmless when repeated.
    pub async fn make_stream(&self) -> Result<(), NumberedError> {
        self.told_owner(stream::change(&self.shared, |_, _| Ok(())).await)
    }

    /// Raises the fencing token. Once this answers no entry appended with a lower one is committed any more, here
    /// or elsewhere; those that were are below the number answered.
    pub async fn raise_token(&self, token: u64) -> Result<u64, NumberedError> {
        let raise = |state: &mut stream::StreamState| {
            if token < state.token {
                return Err(NumberedError::StaleToken { current: state.token });
            }
            state.token = token;
            Ok(())
        };
        self.told_owner(stream::change(&self.shared, |_, state| raise(state)).await)?;
        // Other brokers read the record when they take the topic over. This one has entries under way.
        let (reply, answer) = oneshot::channel();
        let gone = NumberedError::from(ManagedLedgerError::Fenced);
        self.shared.inputs.push(Input::Token(token, reply)).map_err(|_| gone.clone())?;
        answer.await.map_err(|_| gone)
    }

    /// Gives up every entry below `number` for good. Storage is freed a ledger at a time, when no subscription
    /// needs it.
    pub async fn trim_below(&self, number: u64) -> Result<(), NumberedError> {
        let changed = stream::change(&self.shared, |chain, state| {
            let next = chain.next_number();
            if number > next {
                return Err(NumberedError::BeyondEnd { next });
            }
            state.kept_from = state.kept_from.max(number);
            Ok(())
        });
        self.told_owner(changed.await)?;
        if let Err(error) = trim::trim(&self.shared).await {
            // Tried again at the topic's next turn of trimming.
            tracing::info!(%error, topic = self.shared.name, "trimmed entries are not freed yet");
        }
        Ok(())
    }

    /// A lost record means a new owner: the log must end here.
    fn told_owner(&self, changed: Result<(), NumberedError>) -> Result<(), NumberedError> {
        if changed == Err(NumberedError::Ledger(ManagedLedgerError::Fenced)) {
            self.shared.record_lost();
        }
        changed
    }
}
