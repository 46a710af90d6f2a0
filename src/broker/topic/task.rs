//! The topic's task: its state, and its turn.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::{FuturesUnordered, StreamExt};

use super::close::Closing;
use super::command::{Command, SubscribeRequest};
use super::dispatching::PendingReads;
use super::handle::TopicShared;
use super::job::{Finished, Job};
use super::producers::{ProducerKey, ProducerNames, Producers};
use super::publish::PendingPublish;
use crate::broker::managed_ledger::{ManagedLedger, ManagedLedgerEnvironment, NewEntry};
use crate::broker::meter::Meter;
use crate::broker::service::BrokerConfig;
use crate::broker::subscription::Subscription;
use crate::domain::{Instant, WallTime};
use crate::runtime::{Mailbox, Runtime};

/// Ended jobs looked at in one turn.
const JOBS_A_TURN: usize = 16;

/// Everything of a topic, owned by its task.
pub(super) struct TopicTask {
    pub(super) shared: Arc<TopicShared>,
    pub(super) runtime: Runtime,
    pub(super) config: BrokerConfig,
    pub(super) ledger: ManagedLedger,
    pub(super) names: Arc<ProducerNames>,
    pub(super) producers: Producers,
    pub(super) subscriptions: BTreeMap<Arc<str>, Subscription>,
    /// Subscriptions whose cursor is being opened, with who waits for them.
    pub(super) opening: BTreeMap<String, Vec<SubscribeRequest>>,
    pub(super) jobs: FuturesUnordered<Job>,
    /// Consumers for whom it is being proven that the topic is served here.
    pub(super) proving: usize,
    /// Entries without outcome, in the order of publishing.
    pub(super) pending: VecDeque<PendingPublish>,
    /// Entries of this turn, appended at its end.
    pub(super) batch: Vec<NewEntry>,
    pub(super) next_tag: u64,
    /// Producers with outcomes to send in this turn.
    pub(super) touched: Vec<ProducerKey>,
    pub(super) reads: PendingReads,
    /// Next number of a subscription or a consumer.
    pub(super) next_number: u64,
    pub(super) inward: Meter,
    pub(super) trim_at: Instant,
    pub(super) trimming: bool,
    pub(super) closing: Option<Closing>,
    pub(super) ended: bool,
    /// Makes room for a new load of the topic.
    pub(super) on_end: Option<Box<dyn FnOnce() + Send>>,
    /// A backlog is being read from memory without ever waiting: let others run too.
    pub(super) yield_wanted: bool,
    /// Clock readings of this turn.
    pub(super) now: Instant,
    pub(super) wall: WallTime,
}

impl TopicTask {
    pub(super) fn new(
        shared: Arc<TopicShared>,
        environment: &ManagedLedgerEnvironment,
        ledger: ManagedLedger,
        names: Arc<ProducerNames>,
        subscriptions: BTreeMap<Arc<str>, Subscription>,
        on_end: Box<dyn FnOnce() + Send>,
    ) -> Self {
        let now = environment.runtime.clock.now();
        Self {
            shared,
            runtime: environment.runtime.clone(),
            config: environment.config.clone(),
            ledger,
            names,
            producers: Producers::default(),
            next_number: subscriptions.len() as u64,
            subscriptions,
            opening: BTreeMap::new(),
            jobs: FuturesUnordered::new(),
            proving: 0,
            pending: VecDeque::new(),
            batch: Vec::new(),
            next_tag: 0,
            touched: Vec::new(),
            reads: PendingReads::default(),
            inward: Meter::new(now),
            trim_at: now + environment.config.trim_interval,
            trimming: false,
            closing: None,
            ended: false,
            on_end: Some(on_end),
            yield_wanted: false,
            now,
            wall: environment.runtime.clock.wall(),
        }
    }

    /// Serves the topic until it is closed, deleted or fenced.
    pub(super) async fn run(mut self, mut mailbox: Mailbox<Command>) {
        let mut timer_at = self.next_deadline();
        let mut timer: BoxFuture<'static, ()> = self.runtime.clock.sleep_until(timer_at);
        while !self.ended {
            let mut job = None;
            let mut commands = VecDeque::new();
            tokio::select! {
                biased;
                taken = mailbox.take_all() => match taken {
                    Some(taken) => commands = taken,
                    // Not while this task holds a handle of itself; if it were, nobody could reach it.
                    None => break,
                },
                done = self.jobs.next(), if !self.jobs.is_empty() => job = done,
                () = &mut timer => {}
            }
            self.now = self.runtime.clock.now();
            self.wall = self.runtime.clock.wall();
            for command in commands {
                self.obey(command);
            }
            // A busy mailbox comes first in the selection above; jobs must not starve for it, nor it for
            // jobs that are always ready.
            for _ in 0..JOBS_A_TURN {
                let Some(done) = job.take() else {
                    job = self.jobs.next().now_or_never().flatten();
                    if job.is_none() {
                        break;
                    }
                    continue;
                };
                self.finish(done);
            }
            if let Some(done) = job {
                self.finish(done);
            }
            self.end_turn();
            if self.now >= timer_at {
                self.on_time();
            }
            let due = self.next_deadline();
            if due < timer_at || self.now >= timer_at {
                timer_at = due;
                timer = self.runtime.clock.sleep_until(due);
            }
            if std::mem::take(&mut self.yield_wanted) {
                tokio::task::yield_now().await;
            }
        }
    }

    fn next_deadline(&self) -> Instant {
        let subscriptions = self.subscriptions.values();
        let due = subscriptions.flat_map(|one| one.retry_at.into_iter().chain(one.expires_at));
        due.chain(self.reads.first_deadline()).fold(self.trim_at, Instant::min)
    }

    fn obey(&mut self, command: Command) {
        if self.ended {
            // Dropped replies tell the callers.
            return;
        }
        match command {
            Command::Publish { producer, entries, admitted } => {
                self.publish(producer, entries, admitted);
            }
            Command::Appended(outcomes) => self.appended(outcomes),
            Command::Fenced(reason) => self.fenced(&reason),
            Command::AddProducer { options, sink, reply } => {
                self.add_producer(options, sink, reply);
            }
            Command::CloseProducer { producer, reply } => {
                self.producers.begin_close(producer, reply);
            }
            Command::Subscribe(request) => self.subscribe(request),
            Command::Flow(consumer) => self.flow(&consumer),
            Command::Resume(consumer) => self.resume(&consumer),
            Command::Acknowledge { consumer, request, reply } => {
                self.acknowledge(&consumer, request, reply);
            }
            Command::Redeliver { consumer, positions, epoch } => {
                self.redeliver(&consumer, positions, epoch);
            }
            Command::Seek { consumer, target, reply } => self.seek(&consumer, target, reply),
            Command::LastMessage { consumer, reply } => self.last_message(&consumer, reply),
            Command::Unsubscribe { consumer, force, reply } => {
                self.unsubscribe(&consumer, force, reply);
            }
            Command::CloseConsumer { consumer, reply } => {
                self.remove_consumer(&consumer);
                if let Some(reply) = reply {
                    let _ = reply.send(());
                }
            }
            Command::ConsumerStats { consumer, reply } => self.consumer_stats(&consumer, reply),
            Command::Subscriptions(reply) => {
                let names = self.subscriptions.keys().map(|name| name.to_string()).collect();
                let _ = reply.send(names);
            }
            Command::DeleteSubscription { name, force, reply } => {
                self.delete_subscription(&name, force, reply);
            }
            Command::Stats(reply) => {
                let _ = reply.send(self.stats());
            }
            Command::CheckUnused { force, reply } => {
                let _ = reply.send(self.check_unused(force));
            }
            Command::Delete { force, reply } => self.delete(force, reply),
            Command::Unload(reply) => self.unload(reply),
            Command::LedgerClosed(result) => self.ledger_closed(result),
        }
    }

    fn finish(&mut self, done: Finished) {
        match done {
            Finished::Nothing => {}
            Finished::Read { subscription, id, result } => {
                self.read_finished(&subscription, id, result);
            }
            Finished::Proven { request, result } => self.proven(request, result),
            Finished::CursorOpened { name, result } => self.cursor_opened(&name, result),
            Finished::Sought { subscription, result, reply } => {
                self.sought(&subscription, result, reply);
            }
            Finished::SubscriptionDeleted { subscription, result, reply } => {
                self.subscription_deleted(&subscription, result, reply);
            }
            Finished::Trimmed(result) => {
                self.trimming = false;
                if let Err(error) = result {
                    tracing::warn!(topic = %self.shared.name, %error, "trimming failed; tried again");
                }
            }
            Finished::LedgerClosed(result) => {
                // Behind the outcomes that are in the mailbox already: those are certain.
                let _ = self.shared.mailbox.push(Command::LedgerClosed(result));
            }
        }
    }

    fn end_turn(&mut self) {
        if !self.ended {
            self.append_batch();
        }
        self.send_outcomes();
    }

    fn on_time(&mut self) {
        if self.closing.is_some() || self.ended {
            // Nothing is due any more; looked at again while the ledger closes.
            self.trim_at = self.now + self.config.trim_interval.max(Duration::from_secs(1));
            return;
        }
        if self.now >= self.trim_at {
            self.trim_at = self.now + self.config.trim_interval.max(Duration::from_millis(1));
            if !self.trimming {
                self.trimming = true;
                let ledger = self.ledger.clone();
                self.jobs.push(Box::pin(async move { Finished::Trimmed(ledger.trim().await) }));
            }
        }
        self.dispatch_on_time();
        self.expire_subscriptions();
    }
}
