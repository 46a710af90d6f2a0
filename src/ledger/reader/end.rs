//! How far an open ledger may be read: the highest last add confirmed its bookies know, now or soon.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

use super::replicas::weight;
use crate::domain::{EntryId, ReadError};
use crate::ledger::ensemble::every_write_set_covered;
use crate::ledger::{BookiePool, LedgerConfig, LedgerReadError, LedgerRecord};
use crate::runtime::Clock;

/// Asks the last fragment's bookies, without fencing. Any answer is safe, since a last add confirmed is
/// only told after the fact; too small a one is only stale. Waits for answers from every possible ack
/// quorum, or for everybody.
pub(in crate::ledger) async fn ask_last_add_confirmed(
    clock: &Clock,
    bookies: &Arc<dyn BookiePool>,
    config: &LedgerConfig,
    record: &LedgerRecord,
) -> Result<EntryId, LedgerReadError> {
    let Some(last) = record.fragments.last() else {
        return Err(LedgerReadError::NoLedger(record.ledger));
    };
    let mut answers: FuturesUnordered<_> = last
        .ensemble
        .iter()
        .enumerate()
        .map(|(position, bookie)| {
            let client = bookies.bookie(*bookie);
            async move {
                let request = client.last_add_confirmed(record.ledger, record.creator, false);
                let answer = clock.timeout(config.read_timeout, request).await;
                (position, answer)
            }
        })
        .collect();
    // Whatever precedes the last fragment was confirmed before that fragment was begun.
    let mut highest = last.first_entry.previous();
    let mut heard = 0_u64;
    let mut worst = ReadError::Absent;
    while let Some((position, answer)) = answers.next().await {
        match answer {
            Ok(Ok(answer)) => {
                heard |= 1 << position;
                highest = highest.max(answer.last_add_confirmed);
                if every_write_set_covered(record.quorum, |p| heard >> p & 1 == 1) {
                    break;
                }
            }
            Ok(Err(error)) if weight(&error) > weight(&worst) => worst = error,
            Ok(Err(_)) => {}
            Err(elapsed) => {
                let error = ReadError::Unknown(elapsed.to_string());
                if weight(&error) > weight(&worst) {
                    worst = error;
                }
            }
        }
    }
    if heard == 0 {
        return Err(LedgerReadError::NoGoodReplica {
            ledger: record.ledger,
            entry: EntryId::NONE,
            last: worst,
        });
    }
    Ok(highest)
}

/// Asks the last fragment's bookies to answer when they know a last add confirmed beyond `beyond` (long poll).
/// The first one that does ends the wait; the others' calls are dropped. A replaced bookie, or one that is
/// gone, can only keep silent, and nobody tells bookies of a close: with `None`, after `patience` or when all
/// have answered (fenced bookies do at once), the caller has to read the ledger's record again.
pub(in crate::ledger) async fn wait_for_news(
    clock: &Clock,
    bookies: &Arc<dyn BookiePool>,
    record: &LedgerRecord,
    beyond: EntryId,
    patience: Duration,
) -> Option<EntryId> {
    let last = record.fragments.last()?;
    let mut answers: FuturesUnordered<_> = last
        .ensemble
        .iter()
        .map(|bookie| {
            let client = bookies.bookie(*bookie);
            async move {
                let (ledger, creator) = (record.ledger, record.creator);
                client.wait_last_add_confirmed(ledger, creator, beyond, patience).await
            }
        })
        .collect();
    let until = clock.sleep(patience);
    tokio::pin!(until);
    loop {
        let answer = tokio::select! {
            biased;
            answer = answers.next() => answer,
            () = &mut until => return None,
        };
        if let Ok(end) = answer?
            && end.last_add_confirmed > beyond
        {
            return Some(end.last_add_confirmed);
        }
    }
}
