//! The task of one managed ledger: takes what arrived since its last turn, lets the machine decide,
//! performs the effects. At most one rollover step runs beside it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::future::BoxFuture;
use tokio::sync::oneshot;

use super::contract::{ManagedLedgerEvents, NewEntry};
use super::handle::{Shared, lock};
use super::machine::{Effect, Machine, Settle};
use super::roll::{self, RollError};
use crate::domain::{EntryId, LedgerId};
use crate::ledger::{AppendRefused, ClosedLedger, LedgerWriter, WriterEnd, WriterEvents};
use crate::runtime::{Mailbox, MailboxSender};
use crate::{invariant, mutant};

/// What may reach the task.
pub(super) enum Input {
    Append(Vec<NewEntry>),
    Confirmed(LedgerId, EntryId),
    Ended(LedgerId, WriterEnd),
    Fence(String),
    /// Who wants to prove that this is still the owner needs the writer, if there is one.
    Prove(oneshot::Sender<Option<Arc<LedgerWriter>>>),
    /// A token that is in the record. Answered with the number of the next entry once all before it are
    /// committed: those may have been taken under a lower one.
    Token(u64, oneshot::Sender<u64>),
    Close(oneshot::Sender<()>),
    Dropped,
}

/// Passes a writer's news into the mailbox, named by its ledger: ids are never reused, so late news of
/// a former ledger is known as such.
pub(super) struct WriterNews(pub(super) MailboxSender<Input>);

impl WriterEvents for WriterNews {
    fn confirmed(&self, ledger: LedgerId, up_to: EntryId) {
        let _ = self.0.push(Input::Confirmed(ledger, up_to));
    }

    fn ended(&self, ledger: LedgerId, _last_confirmed: EntryId, reason: WriterEnd) {
        let _ = self.0.push(Input::Ended(ledger, reason));
    }
}

enum Step {
    Settled(Result<ClosedLedger, RollError>),
    Created(Result<LedgerWriter, RollError>),
}

pub(super) struct Driver {
    pub(super) shared: Arc<Shared>,
    pub(super) machine: Machine,
    pub(super) events: Arc<dyn ManagedLedgerEvents>,
    writer: Option<Arc<LedgerWriter>>,
    step: Option<BoxFuture<'static, Step>>,
    /// Raised tokens that wait for entries before them: the number that must be reached.
    raising: Vec<(u64, oneshot::Sender<u64>)>,
}

impl Driver {
    pub(super) fn new(
        shared: Arc<Shared>,
        machine: Machine,
        events: Arc<dyn ManagedLedgerEvents>,
    ) -> Self {
        Self { shared, machine, events, writer: None, step: None, raising: Vec::new() }
    }

    pub(super) async fn run(mut self, mut mailbox: Mailbox<Input>) {
        let mut closers = Vec::new();
        let mut dropped = false;
        while closers.is_empty() && !dropped && !self.machine.has_ended() {
            let mut inputs = VecDeque::new();
            let mut step = None;
            match &mut self.step {
                Some(running) => tokio::select! {
                    biased;
                    done = running => step = Some(done),
                    taken = mailbox.take_all() => inputs = taken.unwrap_or_default(),
                },
                None => inputs = mailbox.take_all().await.unwrap_or_default(),
            }
            if let Some(step) = step {
                self.step = None;
                self.stepped(step);
            }
            for input in inputs {
                match input {
                    Input::Close(done) => closers.push(done),
                    Input::Dropped => dropped = true,
                    other => self.take(other),
                }
            }
            self.turn();
        }
        self.finish().await;
        for done in closers {
            let _ = done.send(());
        }
        // Entries that still come are refused until the handles are gone.
        while !dropped && let Some(inputs) = mailbox.take_all().await {
            for input in inputs {
                match input {
                    Input::Close(done) => drop(done.send(())),
                    Input::Dropped => dropped = true,
                    other => self.take(other),
                }
            }
            self.turn();
        }
        // Nobody holds the log any more: its cursors' tasks must not outlive it.
        for cursor in lock(&self.shared.cursors).values() {
            cursor.abandon();
        }
    }

    fn take(&mut self, input: Input) {
        match input {
            Input::Append(entries) => {
                let wall = self.shared.environment.runtime.clock.wall();
                self.machine.append(entries, wall);
            }
            Input::Confirmed(ledger, up_to) => self.machine.confirmed(ledger, up_to),
            Input::Ended(ledger, reason) => {
                self.machine.writer_ended(ledger, reason == WriterEnd::Fenced);
            }
            Input::Fence(reason) => self.machine.fence(&reason),
            Input::Prove(reply) if !self.machine.has_ended() => {
                drop(reply.send(self.writer.clone()))
            }
            // Dropped when the log has ended: it was not raised here.
            Input::Token(token, reply) if !self.machine.has_ended() => {
                self.raising.push((self.machine.raise_token(token), reply));
            }
            Input::Token(..) | Input::Prove(_) => {}
            Input::Close(_) | Input::Dropped => {}
        }
    }

    fn stepped(&mut self, step: Step) {
        match step {
            Step::Settled(Ok(closed)) => {
                self.writer = None;
                self.machine.settled(closed.last_entry);
                lock(&self.shared.chain).update_last(|last| {
                    last.entries = roll::count_up_to(closed.last_entry);
                    last.bytes = closed.length;
                    last.closed = true;
                });
            }
            Step::Created(Ok(writer)) => {
                let now = self.shared.environment.runtime.clock.now();
                self.machine.opened(writer.ledger(), now);
                let listed = lock(&self.shared.chain).next_number();
                let begins = self.machine.first_number();
                invariant!(
                    begins.is_none_or(|first| first == listed),
                    "ledger {} is listed from number {listed} and begins with {begins:?}",
                    writer.ledger()
                );
                self.writer = Some(Arc::new(writer));
            }
            Step::Settled(Err(error)) | Step::Created(Err(error)) => {
                self.machine.fence(&error.to_string());
            }
        }
    }

    fn turn(&mut self) {
        let now = self.shared.environment.runtime.clock.now();
        if let Some(writer) = &self.writer {
            let payloads = self.machine.sendable(now);
            let count = payloads.len();
            if count > 0 {
                match writer.append(payloads) {
                    Ok(first) => self.machine.sent(first, count),
                    // Sent with the next confirmation; or the writer's end is on its way.
                    Err(AppendRefused::WindowFull(_) | AppendRefused::Ended(_)) => {}
                }
            }
        }
        for effect in self.machine.settle(now) {
            self.perform(effect);
        }
        self.answer_raised();
        self.shared.pending.store(self.machine.pending() as u64, Ordering::Relaxed);
        let next_index = match mutant!("P10") {
            true => self.machine.next_index(),
            false => self.machine.first_pending_index(),
        };
        self.shared.next_index.store(next_index, Ordering::Relaxed);
    }

    /// Answers for tokens before which nothing is under way any more.
    fn answer_raised(&mut self) {
        if self.machine.has_ended() {
            self.raising.clear();
        }
        if self.raising.is_empty() {
            return;
        }
        let committed = lock(&self.shared.chain).next_number();
        for (number, reply) in std::mem::take(&mut self.raising) {
            if number <= committed {
                let _ = reply.send(number);
            } else {
                self.raising.push((number, reply));
            }
        }
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Committed { ledger, first, payloads, publish_min } => {
                let bytes: usize = payloads.iter().map(bytes::Bytes::len).sum();
                let count = payloads.len() as u64;
                // In the cache before it may be read, so that readers at the tail find it there.
                self.shared.environment.cache.insert(ledger, first, payloads);
                lock(&self.shared.chain).update_last(|last| {
                    if last.id == ledger && !last.closed {
                        last.entries = first.0 as u64 + count;
                        last.bytes += bytes as u64;
                    }
                    if last.id == ledger {
                        last.publish_min =
                            Some(last.publish_min.map_or(publish_min, |m| m.min(publish_min)));
                    }
                });
                self.shared.grown.notify_waiters();
            }
            Effect::Outcomes(outcomes) => self.events.appended(outcomes),
            Effect::Fenced(reason) => {
                self.shared.close_for_good();
                for cursor in lock(&self.shared.cursors).values() {
                    cursor.abandon();
                }
                self.events.fenced(reason);
            }
            Effect::Settle(ledger, how) => {
                let shared = Arc::clone(&self.shared);
                let writer = self.writer.clone().filter(|_| how == Settle::Close);
                self.step = Some(Box::pin(async move {
                    Step::Settled(roll::settle(&shared, ledger, writer).await)
                }));
            }
            Effect::Create => {
                let shared = Arc::clone(&self.shared);
                let news = Arc::new(WriterNews(self.shared.inputs.clone()));
                let first_index = self.machine.first_pending_index();
                self.step = Some(Box::pin(async move {
                    Step::Created(roll::create_next(&shared, first_index, news).await)
                }));
            }
        }
    }

    /// Closes the current ledger, so that the next owner need not recover it.
    async fn finish(&mut self) {
        self.shared.close_for_good();
        self.step = None;
        let fenced = self.machine.has_ended();
        // Which of the entries under way are stored only the next owner sees, and with it the next index.
        let is_known = self.machine.pending() == 0 || mutant!("P10");
        self.machine.close();
        self.turn();
        let Some(writer) = self.writer.take() else { return };
        if fenced {
            return;
        }
        if let Ok(closed) = writer.close().await
            && is_known
        {
            let mut held = self.shared.record.lock().await;
            let chain = {
                let mut chain = lock(&self.shared.chain);
                chain.update_last(|last| {
                    last.entries = roll::count_up_to(closed.last_entry);
                    last.bytes = closed.length;
                    last.closed = true;
                });
                chain.clone()
            };
            // Only saves the next owner a look; it recovers what is not listed as closed.
            if let Err(error) = self.shared.write_record(&mut held, &chain).await {
                tracing::debug!(%error, topic = self.shared.name, "record not updated at close");
            }
        }
    }
}
