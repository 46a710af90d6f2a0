//! Performs a copy: requests with time-outs, answers back to the machine.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;

use super::machine::{CopyCount, CopyEffect, CopyFailure, CopyMachine};
use crate::domain::{AddAnswer, AddBatch, AddSink, BookieId, Entry, ReadError};
use crate::ledger::{BookiePool, LedgerRecord};
use crate::runtime::{Clock, MailboxSender, mailbox};

/// Answers are bounded by the adds sent; nominal size of their queue.
const QUEUE_NOMINAL: usize = 16;

/// What a copy is performed with.
pub(in crate::ledger::repair) struct Copier<'a> {
    pub(in crate::ledger::repair) clock: &'a Clock,
    pub(in crate::ledger::repair) bookies: &'a Arc<dyn BookiePool>,
    pub(in crate::ledger::repair) read_timeout: Duration,
}

struct AnswerSink(MailboxSender<AddAnswer>);

impl AddSink for AnswerSink {
    fn answered(&self, answer: AddAnswer) {
        // The copy is over: nobody is interested any more.
        let _ = self.0.push(answer);
    }
}

type ReadAnswer = (u64, Result<Vec<Entry>, ReadError>);

impl Copier<'_> {
    /// Runs a copy to its end.
    pub(in crate::ledger::repair) async fn run(
        &self,
        machine: &mut CopyMachine,
        record: &LedgerRecord,
        target: BookieId,
    ) -> Result<CopyCount, CopyFailure> {
        let mut reads: FuturesUnordered<BoxFuture<'_, ReadAnswer>> = FuturesUnordered::new();
        let (sender, mut answers) = mailbox(QUEUE_NOMINAL);
        let sink = Arc::new(AnswerSink(sender));
        loop {
            for effect in machine.settle(self.clock.now()) {
                match effect {
                    CopyEffect::Read { number, bookie, request } => {
                        let client = self.bookies.bookie(bookie);
                        reads.push(Box::pin(async move {
                            let read = client.read(request);
                            let answer = self.clock.timeout(self.read_timeout, read).await;
                            let late = |elapsed| ReadError::Unknown(format!("{elapsed}"));
                            (number, answer.map_err(late).and_then(|answer| answer))
                        }));
                    }
                    CopyEffect::Add { entries } => {
                        let (ledger, creator) = (record.ledger, record.creator);
                        let batch = AddBatch { ledger, creator, recovery: true, entries };
                        let sink: Arc<dyn AddSink> = Arc::<AnswerSink>::clone(&sink);
                        self.bookies.bookie(target).add(batch, sink);
                    }
                    CopyEffect::Done => return Ok(machine.count()),
                    CopyEffect::Failed(failure) => return Err(failure),
                }
            }
            let now = self.clock.now();
            // Reads have time-outs of their own; the second is for a machine that waits only for them.
            let deadline = machine.next_deadline(now).unwrap_or(now + self.read_timeout);
            let deadline = deadline.max(now + Duration::from_millis(1));
            tokio::select! {
                biased;
                taken = answers.take_all() => {
                    for answer in taken.unwrap_or_default() {
                        machine.add_answered(answer, self.clock.now());
                    }
                }
                answer = reads.next(), if !reads.is_empty() => {
                    if let Some((number, answer)) = answer {
                        machine.read_answered(number, answer, self.clock.now());
                    }
                }
                () = self.clock.sleep_until(deadline) => {}
            }
        }
    }
}
