//! Whether a writer is still the writer: whoever takes its ledger over has fenced a bookie in every set of `Qa` bookies before it
//! reads, so `Qa` bookies of one write set that are not fenced show that nobody had done so when they were asked.

use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

use crate::domain::{BookieId, CreatorToken, LedgerId};
use crate::ledger::ensemble::every_write_set_covered;
use crate::ledger::{BookiePool, Quorum};
use crate::reached;
use crate::runtime::Clock;

/// What the bookies say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriterProof {
    /// Nobody had recovered the ledger when this was asked.
    Holds,
    /// Somebody else recovers it, or has.
    Fenced,
    /// Too few bookies answered.
    Unknown,
}

/// What has to be asked.
pub(super) struct Question {
    pub(super) ledger: LedgerId,
    pub(super) creator: CreatorToken,
    pub(super) quorum: Quorum,
    pub(super) ensemble: Vec<BookieId>,
    pub(super) bookies: Arc<dyn BookiePool>,
    pub(super) clock: Clock,
    /// A bookie that has not answered by then has not answered.
    pub(super) limit: std::time::Duration,
}

impl Question {
    pub(super) async fn ask(self) -> WriterProof {
        let asked = self.ensemble.iter().enumerate().map(|(position, bookie)| {
            let client = self.bookies.bookie(*bookie);
            let (clock, ledger, creator, limit) =
                (self.clock.clone(), self.ledger, self.creator, self.limit);
            async move {
                let request = client.last_add_confirmed(ledger, creator, false);
                let answer = clock.timeout(limit, request).await;
                (position, answer.ok().and_then(Result::ok).map(|answer| answer.fenced))
            }
        });
        let mut answers: FuturesUnordered<_> = asked.collect();
        let mut fenced = vec![None; self.ensemble.len()];
        let mut proof = WriterProof::Unknown;
        // Nobody waits for a bookie that hangs once the others have said enough.
        while proof == WriterProof::Unknown
            && let Some((position, answer)) = answers.next().await
        {
            fenced[position] = answer;
            proof = judge(self.quorum, &fenced);
        }
        proof
    }
}

/// By position in the ensemble: whether the ledger is fenced there; none if it did not say.
fn judge(quorum: Quorum, fenced: &[Option<bool>]) -> WriterProof {
    if fenced.contains(&Some(true)) {
        reached!("ledger writer: a proof found a fence");
        return WriterProof::Fenced;
    }
    let open = |position: usize| fenced.get(position) == Some(&Some(false));
    match every_write_set_covered(quorum, |position| !open(position)) {
        true => WriterProof::Unknown,
        false => WriterProof::Holds,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ack_quorum_that_is_not_fenced_is_a_proof() {
        let three = Quorum::new(3, 3, 2).unwrap();
        let (open, fenced, silent) = (Some(false), Some(true), None);
        assert_eq!(judge(three, &[open, open, silent]), WriterProof::Holds);
        assert_eq!(judge(three, &[open, silent, silent]), WriterProof::Unknown);
        assert_eq!(judge(three, &[open, open, fenced]), WriterProof::Fenced);
        // Neighbours that share no write set of theirs prove nothing.
        let wide = Quorum::new(5, 2, 2).unwrap();
        assert_eq!(judge(wide, &[open, silent, open, silent, silent]), WriterProof::Unknown);
        assert_eq!(judge(wide, &[silent, silent, open, open, silent]), WriterProof::Holds);
        assert_eq!(judge(Quorum::SINGLE, &[open]), WriterProof::Holds);
    }
}
