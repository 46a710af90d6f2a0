//! Asking the bookies of a write set, one after another, until one gives a good copy. A slow one is
//! hedged: after a delay the next is asked too and the first good answer wins.

use std::collections::VecDeque;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;

use super::verify::good_run;
use crate::domain::{BookieId, Entry, ReadError, ReadRequest};
use crate::ledger::{BookiePool, LedgerConfig};
use crate::reached;
use crate::runtime::Clock;

/// A position of the ensemble to ask, and how much of the run lies there.
pub(super) struct Replica {
    pub(super) position: usize,
    pub(super) bookie: BookieId,
    pub(super) entries_max: u32,
}

/// What is needed to ask.
pub(super) struct Asker<'a> {
    pub(super) clock: &'a Clock,
    pub(super) bookies: &'a Arc<dyn BookiePool>,
    pub(super) config: &'a LedgerConfig,
}

type Answer = (usize, Result<Vec<Entry>, ReadError>);

impl Asker<'_> {
    /// The first good answer with the position that gave it, or the error that weighs most.
    pub(super) async fn first_good(
        &self,
        request: ReadRequest,
        replicas: Vec<Replica>,
    ) -> Result<(usize, Vec<Entry>), ReadError> {
        let mut waiting: VecDeque<Replica> = replicas.into();
        let mut asked: FuturesUnordered<BoxFuture<'_, Answer>> = FuturesUnordered::new();
        let mut worst = ReadError::Absent;
        if let Some(replica) = waiting.pop_front() {
            asked.push(Box::pin(self.ask(request, replica)));
        }
        while !asked.is_empty() {
            let answer = if waiting.is_empty() {
                asked.next().await
            } else {
                let hedge = self.clock.sleep(self.config.speculative_read_delay);
                tokio::select! {
                    biased;
                    answer = asked.next() => answer,
                    () = hedge => None,
                }
            };
            match answer {
                Some((position, Ok(entries))) => return Ok((position, entries)),
                Some((_, Err(error))) => {
                    reached!("ledger reader: another replica asked after an error");
                    if weight(&error) > weight(&worst) {
                        worst = error;
                    }
                }
                None => reached!("ledger reader: a slow replica hedged"),
            }
            if let Some(replica) = waiting.pop_front() {
                asked.push(Box::pin(self.ask(request, replica)));
            }
        }
        Err(worst)
    }

    async fn ask(&self, request: ReadRequest, replica: Replica) -> Answer {
        let entries_max = request.entries_max.min(replica.entries_max).max(1);
        let request = ReadRequest { entries_max, ..request };
        let client = self.bookies.bookie(replica.bookie);
        let answer = match self.clock.timeout(self.config.read_timeout, client.read(request)).await
        {
            Ok(answer) => answer,
            Err(elapsed) => Err(ReadError::Unknown(elapsed.to_string())),
        };
        let good = answer
            .and_then(|entries| good_run(request.ledger, request.first, entries_max, entries));
        (replica.position, good)
    }
}

/// Which of two errors tells what became of an entry: one that may pass outranks one that stays, since an
/// entry is lost only if every copy is known to be absent or damaged.
pub(super) fn weight(error: &ReadError) -> u8 {
    match error {
        ReadError::Absent => 0,
        ReadError::WrongCreator => 1,
        ReadError::Corrupt(_) => 2,
        ReadError::Unreachable(_) => 3,
        ReadError::Overloaded => 4,
        ReadError::Unknown(_) => 5,
    }
}
