//! Performs a recovery: requests with time-outs, answers back to the machine, attempts with pauses.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;

use super::machine::{RecoveredEnd, RecoveryEffect, RecoveryMachine};
use super::record::{Claim, claim, close};
use super::trace::Trace;
use crate::domain::{
    AddAnswer, AddBatch, AddSink, BookieId, Entry, EntryId, LastAddConfirmed, LedgerId, ReadError,
};
use crate::ledger::ensemble::{Spread, choose_replacements};
use crate::ledger::records::Records;
use crate::ledger::{BookiePool, ClosedLedger, LedgerConfig, LedgerRecord, RecoveryError};
use crate::metadata::MetadataError;
use crate::runtime::{Mailbox, MailboxSender, Random, Runtime, mailbox};
use crate::{in_state, mutant, reached};

/// Attempts at an undecided ledger before its caller is told.
const ATTEMPTS_MAX: u32 = 6;
/// Pause after the first attempt; doubles.
const PAUSE_MIN: Duration = Duration::from_millis(50);
/// No attempt begins later than this after the first one.
const TOTAL_MAX: Duration = Duration::from_secs(30);
/// Answers are bounded by the requests sent; nominal size of their queue.
const QUEUE_NOMINAL: usize = 256;

/// What a recovery works with.
#[derive(Clone)]
pub(in crate::ledger) struct Recoverer {
    pub(in crate::ledger) runtime: Runtime,
    pub(in crate::ledger) records: Records,
    pub(in crate::ledger) bookies: Arc<dyn BookiePool>,
    pub(in crate::ledger) config: LedgerConfig,
    pub(in crate::ledger) random: Random,
}

/// Recovers a ledger; a few attempts while the reason is one that passes.
pub(in crate::ledger) async fn recover(
    recoverer: &Recoverer,
    ledger: LedgerId,
) -> Result<ClosedLedger, RecoveryError> {
    let _state = in_state!("ledger: recovery");
    let clock = &recoverer.runtime.clock;
    let began = clock.now();
    let mut pause = PAUSE_MIN;
    for attempt in 1.. {
        let error = match recoverer.attempt(ledger).await {
            Ok(closed) => return Ok(closed),
            Err(error) => error,
        };
        tracing::info!(%ledger, attempt, %error, "an attempt at a recovery failed");
        let passes = match &error {
            RecoveryError::Undecidable { .. } | RecoveryError::WriteBack { .. } => true,
            RecoveryError::Metadata(error) => {
                matches!(
                    error,
                    MetadataError::Unavailable(_)
                        | MetadataError::NotLeader { .. }
                        | MetadataError::OutcomeUnknown(_)
                )
            }
            RecoveryError::NoLedger(_) => false,
        };
        if !passes || attempt >= ATTEMPTS_MAX || clock.now().since(began) >= TOTAL_MAX {
            return Err(error);
        }
        reached!("ledger recovery: another attempt");
        clock.sleep(pause).await;
        pause *= 2;
    }
    Err(RecoveryError::NoLedger(ledger))
}

struct AnswerSink(MailboxSender<AddAnswer>);

impl AddSink for AnswerSink {
    fn answered(&self, answer: AddAnswer) {
        // The recovery is over: nobody is interested any more.
        let _ = self.0.push(answer);
    }
}

enum Answer {
    Fence(usize, BookieId, Result<LastAddConfirmed, ReadError>),
    Read(usize, BookieId, EntryId, Result<Vec<Entry>, ReadError>),
}

impl Recoverer {
    async fn attempt(&self, ledger: LedgerId) -> Result<ClosedLedger, RecoveryError> {
        let claimed = match claim(&self.records, ledger).await? {
            Claim::Closed(closed) => {
                let last_entry = closed.last_entry;
                tracing::debug!(%ledger, %last_entry, "nothing to recover: closed already");
                return Ok(closed);
            }
            Claim::Claimed(claimed) => claimed,
        };
        let LedgerRecord { purpose, fragments, .. } = &claimed.record;
        tracing::info!(%ledger, %purpose, fragments = fragments.len(), "recovery begins");
        let end = self.find_end(&claimed.record).await?;
        close(&self.records, claimed, &end).await
    }

    async fn find_end(&self, record: &LedgerRecord) -> Result<RecoveredEnd, RecoveryError> {
        let machine = RecoveryMachine::new(
            record.clone(),
            self.config.recovery_read_batch,
            self.config.add_timeout,
        );
        let Some(machine) = machine else {
            return Err(RecoveryError::NoLedger(record.ledger));
        };
        let (sender, answers) = mailbox(QUEUE_NOMINAL);
        let attempt = Attempt {
            recoverer: self,
            record,
            machine,
            trace: Trace::new(record.ledger),
            requests: FuturesUnordered::new(),
            answers,
            sink: Arc::new(AnswerSink(sender)),
        };
        attempt.run().await
    }
}

struct Attempt<'a> {
    recoverer: &'a Recoverer,
    record: &'a LedgerRecord,
    machine: RecoveryMachine,
    trace: Trace,
    requests: FuturesUnordered<BoxFuture<'a, Answer>>,
    answers: Mailbox<AddAnswer>,
    sink: Arc<AnswerSink>,
}

impl Attempt<'_> {
    async fn run(mut self) -> Result<RecoveredEnd, RecoveryError> {
        let clock = &self.recoverer.runtime.clock;
        loop {
            loop {
                let effects = self.machine.settle(clock.now());
                if effects.is_empty() {
                    break;
                }
                for effect in effects {
                    match effect {
                        RecoveryEffect::Close(end) => return Ok(end),
                        RecoveryEffect::Fail(error) => return Err(error),
                        other => self.perform(other),
                    }
                }
            }
            // A deadline always comes while nothing else may: requests and adds carry their own.
            let idle = clock.now() + self.recoverer.config.add_timeout;
            let deadline = self.machine.next_deadline().unwrap_or(idle);
            let deadline = deadline.max(clock.now() + Duration::from_millis(1));
            tokio::select! {
                biased;
                answers = self.answers.take_all() => {
                    for answer in answers.unwrap_or_default() {
                        self.trace.add_answered(&answer);
                        self.machine.add_answered(answer, clock.now());
                    }
                }
                answer = self.requests.next(), if !self.requests.is_empty() => match answer {
                    Some(Answer::Fence(position, bookie, answer)) => {
                        self.trace.fence_answered(bookie, &answer);
                        self.machine.fence_answered(position, answer);
                    }
                    Some(Answer::Read(position, bookie, first, answer)) => {
                        self.trace.read_answered(bookie, first, &answer);
                        self.machine.read_answered(position, first, answer, clock.now());
                    }
                    None => {}
                },
                () = clock.sleep_until(deadline) => {}
            }
            self.trace.decided(&self.machine);
        }
    }

    fn perform(&mut self, effect: RecoveryEffect) {
        let limit = self.recoverer.config.read_timeout;
        let (ledger, creator) = (self.record.ledger, self.record.creator);
        let clock = &self.recoverer.runtime.clock;
        match effect {
            RecoveryEffect::Fence { position, bookie } => {
                let client = self.recoverer.bookies.bookie(bookie);
                self.requests.push(Box::pin(async move {
                    let fence = !mutant!("L-no-fence");
                    let request = client.last_add_confirmed(ledger, creator, fence);
                    let answer = clock.timeout(limit, request).await;
                    Answer::Fence(position, bookie, answer.unwrap_or_else(timed_out))
                }));
            }
            RecoveryEffect::Read { position, bookie, request } => {
                let client = self.recoverer.bookies.bookie(bookie);
                self.requests.push(Box::pin(async move {
                    let answer = clock.timeout(limit, client.read(request)).await;
                    let answer = answer.unwrap_or_else(timed_out);
                    Answer::Read(position, bookie, request.first, answer)
                }));
            }
            RecoveryEffect::Add { bookie, entries } => self.add(bookie, entries),
            RecoveryEffect::FindReplacements(failed) => {
                let Recoverer { bookies, config, random, .. } = self.recoverer;
                let ensemble = self.machine.ensemble();
                let spread = Spread { quorum: self.record.quorum, racks_min: config.racks_min };
                let found =
                    choose_replacements(bookies.as_ref(), spread, &ensemble, &failed, random);
                self.machine.replace(&found);
                self.trace.replaced(&found, &self.machine);
            }
            RecoveryEffect::Close(_) | RecoveryEffect::Fail(_) => {}
        }
    }

    fn add(&self, bookie: BookieId, entries: Vec<Entry>) {
        let batch = AddBatch {
            ledger: self.record.ledger,
            creator: self.record.creator,
            recovery: true,
            entries,
        };
        let sink: Arc<dyn AddSink> = Arc::<AnswerSink>::clone(&self.sink);
        self.recoverer.bookies.bookie(bookie).add(batch, sink);
    }
}

fn timed_out<T>(elapsed: crate::runtime::Elapsed) -> Result<T, ReadError> {
    Err(ReadError::Unknown(elapsed.to_string()))
}
