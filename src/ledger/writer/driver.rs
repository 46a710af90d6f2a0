//! The task of one open ledger: takes what arrived since its last turn, lets the machine decide, performs
//! the effects. All appends of a turn go to a bookie in one request.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use tokio::sync::oneshot;

use super::admission::Admission;
use super::change::change_ensemble;
use super::handle::LedgerWriter;
use super::machine::{ChangeOutcome, WriterEffect, WriterMachine, WriterSettings};
use super::proof::Question;
use crate::domain::{AddAnswer, AddBatch, AddSink, BookieId, EntryId, Instant, LedgerId};
use crate::ledger::ensemble::{Listed, Spread, choose_replacements};
use crate::ledger::records::Records;
use crate::ledger::{BookiePool, LedgerConfig, LedgerRecord, WriterEnd, WriterEvents};
use crate::mutant;
use crate::runtime::{Mailbox, MailboxSender, Random, Runtime, mailbox};

/// Appends are bounded by the window and answers by the requests sent, so the queue takes everything
/// (`push`) and this is only its nominal size.
const QUEUE_NOMINAL: usize = 1024;
/// Timers nearer than this are not worth their own wake-up.
const TIMER_MIN: Duration = Duration::from_millis(1);

/// What may reach the task.
pub(super) enum Input {
    Append(Vec<Bytes>),
    Answer(AddAnswer),
    Changed(ChangeOutcome),
    Prove(oneshot::Sender<Question>),
    Close(oneshot::Sender<()>),
    Abandon,
}

struct AnswerSink(MailboxSender<Input>);

impl AddSink for AnswerSink {
    fn answered(&self, answer: AddAnswer) {
        // The writer is gone: nobody is interested any more.
        let _ = self.0.push(Input::Answer(answer));
    }
}

/// Starts the writer of a ledger whose record was just created.
pub(in crate::ledger) fn start(
    runtime: &Runtime,
    records: &Records,
    bookies: &Arc<dyn BookiePool>,
    config: &LedgerConfig,
    record: &LedgerRecord,
    events: Arc<dyn WriterEvents>,
) -> LedgerWriter {
    let (inputs, mailbox) = mailbox(QUEUE_NOMINAL);
    let admission = Arc::new(Admission::new());
    let ensemble = record.fragments.last().map(|last| last.ensemble.clone()).unwrap_or_default();
    let settings = WriterSettings {
        ledger: record.ledger,
        quorum: record.quorum,
        add_timeout: config.add_timeout,
        tell_interval: config.explicit_last_add_confirmed_interval,
    };
    let driver = Driver {
        machine: WriterMachine::new(settings, &ensemble, runtime.clock.now()),
        ledger: record.ledger,
        record: record.clone(),
        runtime: runtime.clone(),
        random: runtime.random.fork_numbered("ledger-writer", record.ledger.0),
        records: records.clone(),
        bookies: Arc::clone(bookies),
        spread: Spread { quorum: record.quorum, racks_min: config.racks_min },
        tell_timeout: config.read_timeout,
        admission: Arc::clone(&admission),
        sink: Arc::new(AnswerSink(inputs.clone())),
        inputs: inputs.clone(),
        mailbox,
        events,
        timer: None,
    };
    let (ledger, purpose) = (record.ledger, &record.purpose);
    tracing::debug!(%ledger, %purpose, ensemble = %Listed(&ensemble), "opened for writing");
    runtime.tasks.spawn("ledger-writer", driver.run());
    LedgerWriter {
        ledger: record.ledger,
        admission,
        inputs,
        records: records.clone(),
        clock: runtime.clock.clone(),
        config: config.clone(),
    }
}

struct Driver {
    machine: WriterMachine,
    ledger: LedgerId,
    record: LedgerRecord,
    runtime: Runtime,
    random: Random,
    records: Records,
    bookies: Arc<dyn BookiePool>,
    spread: Spread,
    tell_timeout: Duration,
    admission: Arc<Admission>,
    sink: Arc<AnswerSink>,
    inputs: MailboxSender<Input>,
    mailbox: Mailbox<Input>,
    events: Arc<dyn WriterEvents>,
    /// The one timer. It may fire early (a turn without news) and is then set again; it is never late.
    timer: Option<(Instant, BoxFuture<'static, ()>)>,
}

impl Driver {
    async fn run(mut self) {
        loop {
            let inputs = self.next_inputs().await;
            let now = self.runtime.clock.now();
            let mut stopped = Vec::new();
            for input in inputs {
                match input {
                    Input::Append(payloads) => {
                        for payload in payloads {
                            self.machine.append(payload, now);
                        }
                    }
                    Input::Answer(answer) => self.machine.answered(answer, now),
                    Input::Changed(outcome) => {
                        self.tell_change(&outcome);
                        self.machine.changed(outcome, now);
                    }
                    Input::Prove(reply) => drop(reply.send(self.question())),
                    Input::Close(done) => {
                        self.machine.close();
                        stopped.push(done);
                    }
                    Input::Abandon => return,
                }
            }
            self.turn(now);
            for done in stopped {
                // The closer may have gone away.
                let _ = done.send(());
            }
            if self.machine.has_ended() {
                return;
            }
            self.set_timer(now);
        }
    }

    /// What has to be asked to know whether this is still the writer.
    fn question(&self) -> Question {
        Question {
            ledger: self.ledger,
            creator: self.record.creator,
            quorum: self.record.quorum,
            ensemble: self.machine.ensemble(),
            bookies: Arc::clone(&self.bookies),
            clock: self.runtime.clock.clone(),
            limit: self.tell_timeout,
        }
    }

    async fn next_inputs(&mut self) -> VecDeque<Input> {
        match &mut self.timer {
            None => self.mailbox.take_all().await.unwrap_or_default(),
            Some((_, timer)) => {
                tokio::select! {
                    biased;
                    inputs = self.mailbox.take_all() => inputs.unwrap_or_default(),
                    () = timer => {
                        self.timer = None;
                        VecDeque::new()
                    }
                }
            }
        }
    }

    /// Settles; once more when the machine was given spares, since it decides anew then.
    fn turn(&mut self, now: Instant) {
        loop {
            let mut is_answered = true;
            for effect in self.machine.settle(now) {
                is_answered &= !matches!(effect, WriterEffect::FindReplacements(_));
                self.perform(effect, now);
            }
            if is_answered {
                return;
            }
        }
    }

    fn perform(&mut self, effect: WriterEffect, now: Instant) {
        match effect {
            WriterEffect::Send { bookie, entries } => {
                let batch = AddBatch {
                    ledger: self.ledger,
                    creator: self.record.creator,
                    recovery: false,
                    entries,
                };
                let sink: Arc<dyn AddSink> = Arc::<AnswerSink>::clone(&self.sink);
                self.bookies.bookie(bookie).add(batch, sink);
            }
            WriterEffect::Confirmed { up_to, length, bytes } => {
                {
                    let mut window = self.admission.lock();
                    window.confirmed = up_to;
                    window.confirmed_length = length;
                    window.pending_bytes -= bytes;
                }
                self.events.confirmed(self.ledger, up_to);
            }
            WriterEffect::TellLastAddConfirmed(value) => self.tell(value),
            WriterEffect::FindReplacements(failed) => {
                let ensemble = self.machine.ensemble();
                let (bookies, random) = (self.bookies.as_ref(), &self.random);
                let found = choose_replacements(bookies, self.spread, &ensemble, &failed, random);
                self.machine.replace(&found, now);
            }
            WriterEffect::ChangeEnsemble { start, replacements } => {
                self.change(start, replacements);
            }
            WriterEffect::Ended(reason) => self.end(reason),
        }
    }

    fn end(&self, reason: WriterEnd) {
        if mutant!("L13") && reason == WriterEnd::Fenced && self.admission.lock().ended {
            return;
        }
        self.admission.lock().ended = true;
        let (ledger, last_add_confirmed) = (self.ledger, self.machine.confirmed());
        match &reason {
            WriterEnd::Closed => {
                tracing::debug!(%ledger, %last_add_confirmed, %reason, "writer ended");
            }
            _ => tracing::info!(%ledger, %last_add_confirmed, %reason, "writer ended"),
        }
        self.events.ended(self.ledger, self.machine.confirmed(), reason);
    }

    fn tell(&self, value: EntryId) {
        for bookie in self.machine.ensemble() {
            let client = self.bookies.bookie(bookie);
            let clock = self.runtime.clock.clone();
            let (ledger, creator, limit) = (self.ledger, self.record.creator, self.tell_timeout);
            self.runtime.tasks.spawn("ledger-tell-confirmed", async move {
                // A hint: the next entry carries it too.
                let _ = clock
                    .timeout(limit, client.tell_last_add_confirmed(ledger, creator, value))
                    .await;
            });
        }
    }

    fn tell_change(&self, outcome: &ChangeOutcome) {
        let ledger = self.ledger;
        match outcome {
            ChangeOutcome::Done(ensemble) => {
                let ensemble = Listed(ensemble);
                tracing::info!(%ledger, %ensemble, "ensemble changed");
            }
            ChangeOutcome::NotDone => tracing::info!(%ledger, "ensemble not changed"),
            ChangeOutcome::Deposed => tracing::info!(%ledger, "ensemble not changed: deposed"),
        }
    }

    fn change(&self, start: EntryId, replacements: Vec<(BookieId, BookieId)>) {
        let ledger = self.ledger;
        for (bookie, by) in &replacements {
            tracing::debug!(%ledger, %bookie, %by, entry = %start, "a bookie is to be replaced");
        }
        let records = self.records.clone();
        let clock = self.runtime.clock.clone();
        let inputs = self.inputs.clone();
        self.runtime.tasks.spawn("ledger-change-ensemble", async move {
            let is_abandoned = || inputs.is_closed();
            let outcome =
                change_ensemble(&records, &clock, ledger, start, &replacements, is_abandoned).await;
            // The writer may have ended meanwhile.
            let _ = inputs.push(Input::Changed(outcome));
        });
    }

    fn set_timer(&mut self, now: Instant) {
        let Some(deadline) = self.machine.next_deadline() else {
            self.timer = None;
            return;
        };
        let deadline = deadline.max(now + TIMER_MIN);
        if self.timer.as_ref().is_none_or(|(at, _)| deadline < *at) {
            self.timer = Some((deadline, self.runtime.clock.sleep_until(deadline)));
        }
    }
}
