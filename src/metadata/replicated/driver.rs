//! The one task of a member: feeds events to the consensus machine and performs its effects, in order.
//!
//! Everything that waits is handled in one turn. The writes of a turn are one group with one sync; what the
//! machine wants done after any of them is done after all of them. Only messages before the first write go
//! out first: a leader's entries travel while it writes them itself.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::ReplicatedConfig;
use super::applying::Results;
use super::codec::message_to_wire;
use super::introduction::Introduction;
use super::peer::Peer;
use super::shared::{Ended, Shared};
use super::storage::Storage;
use super::waiters::{ChangeAnswer, ReadAnswer, Waiter, Waiters, refused};
use crate::domain::Instant;
use crate::invariant::states::Inside;
use crate::metadata::MetadataError;
use crate::metadata::consensus::{
    Effect, Event, Index, Machine, MemberId, Membership, Message, Role, Timers, Write,
};
use crate::metadata::durable::GROUP_BYTES;
use crate::metadata::store::Command;
use crate::runtime::{Mailbox, MailboxSender, Random, Runtime, ShutdownSignal};
use crate::{in_state, mutant, reached};

/// Most members outside of the membership it knows that a member answers to; the one met first gives way.
const STRANGERS_MAX: usize = 16;

/// What the driver is asked.
pub(super) enum Request {
    /// A member said something, and where it listens.
    Message { from: MemberId, address: String, message: Message },
    /// The way to a member broke.
    Unreachable { member: MemberId },
    /// A change of the store.
    Change { command: Command, answer: ChangeAnswer, room: tokio::sync::OwnedSemaphorePermit },
    /// Proof that this member leads and has applied everything before the question.
    Read { answer: ReadAnswer },
    /// Another membership, in place of `base` if that is still the newest.
    Members { base: Option<Membership>, membership: Membership, answer: ReadAnswer },
    /// Hand leadership over.
    Transfer { to: MemberId },
}

/// The driver's state.
pub(super) struct Driver {
    pub(super) runtime: Runtime,
    pub(super) config: ReplicatedConfig,
    pub(super) shared: Arc<Shared>,
    pub(super) machine: Machine,
    pub(super) storage: Storage,
    pub(super) waiters: Waiters,
    pub(super) applied: Index,
    /// Pieces of a snapshot being received.
    pub(super) incoming: Vec<u8>,
    pub(super) results: Results,
    timers: Timers,
    draws: Random,
    inbox: Mailbox<Request>,
    requests: MailboxSender<Request>,
    peers: BTreeMap<MemberId, Peer>,
    /// Those of them that are not in the newest membership here, the one met first in front.
    strangers: VecDeque<MemberId>,
    introduction: Introduction,
    stop: ShutdownSignal,
    /// Logical time, ahead of the store's; only a leader's counts.
    logical: Duration,
    observed: Instant,
    led_until: Instant,
    /// What faults may meet.
    without_leader: Option<Inside>,
    in_joint_membership: Option<Inside>,
}

/// What a driver begins with.
pub(super) struct Beginning {
    pub(super) machine: Machine,
    pub(super) storage: Storage,
    pub(super) inbox: Mailbox<Request>,
    pub(super) requests: MailboxSender<Request>,
    pub(super) introduction: Introduction,
    pub(super) stop: ShutdownSignal,
}

impl Driver {
    pub(super) fn new(
        runtime: Runtime,
        config: ReplicatedConfig,
        shared: Arc<Shared>,
        beginning: Beginning,
    ) -> Self {
        let Beginning { machine, storage, inbox, requests, introduction, stop } = beginning;
        let now = runtime.clock.now();
        let draws = runtime.random.fork_numbered("metadata election", config.id.0);
        let timers = Timers::new(config.timers, now, draws.next());
        let applied = machine.log().snapshot().index;
        let mut driver = Self {
            runtime,
            config,
            shared,
            machine,
            storage,
            waiters: Waiters::default(),
            applied,
            incoming: Vec::new(),
            results: Results::default(),
            timers,
            draws,
            inbox,
            requests,
            peers: BTreeMap::new(),
            strangers: VecDeque::new(),
            introduction,
            stop,
            logical: Duration::ZERO,
            observed: now,
            led_until: now,
            without_leader: None,
            in_joint_membership: None,
        };
        driver.meet_peers();
        driver
    }

    /// Runs until stopped or poisoned.
    pub(super) async fn run(mut self) {
        let ended = match self.introduce_and_work().await {
            Ok(()) => {
                Ended { reason: "the metadata member has stopped".to_owned(), poisoned: false }
            }
            Err(reason) => {
                reached!("metadata: a member's log was poisoned");
                tracing::error!(reason, "this metadata member takes part no longer");
                Ended { reason, poisoned: true }
            }
        };
        self.shared.visible().watches.end();
        self.shared.end(ended.clone());
        for waiter in self.waiters.take_all() {
            waiter.fail(MetadataError::OutcomeUnknown(ended.reason.clone()));
        }
        // Never attempted, so certainly not done.
        let unavailable = || MetadataError::Unavailable(ended.reason.clone());
        for request in self.inbox.take_ready() {
            match request {
                Request::Change { answer, .. } => drop(answer.send(Err(unavailable()))),
                Request::Read { answer } | Request::Members { answer, .. } => {
                    drop(answer.send(Err(unavailable())));
                }
                _ => {}
            }
        }
    }

    async fn introduce_and_work(&mut self) -> Result<(), String> {
        self.introduce().await?;
        self.work().await
    }

    /// Takes part in nothing before this member's disk is known to be the one it has always had.
    async fn introduce(&mut self) -> Result<(), String> {
        let introduction = self.introduction.clone();
        let introducing = introduction.introduce(self.runtime.clone(), self.config.clone());
        tokio::pin!(introducing);
        loop {
            tokio::select! {
                biased;
                () = self.stop.triggered() => return Ok(()),
                done = &mut introducing => return done,
                requests = self.inbox.take_all() => match requests {
                    Some(requests) => requests.into_iter().for_each(turn_away),
                    None => return Ok(()),
                },
            }
        }
    }

    async fn work(&mut self) -> Result<(), String> {
        let mut waiting: VecDeque<Request> = VecDeque::new();
        loop {
            if waiting.is_empty() {
                tokio::select! {
                    biased;
                    () = self.stop.triggered() => return Ok(()),
                    requests = self.inbox.take_all() => match requests {
                        Some(requests) => waiting = requests,
                        None => return Ok(()),
                    },
                    () = self.runtime.clock.sleep_until(self.timers.next()) => {}
                }
            }
            if self.stop.is_triggered() {
                return Ok(());
            }
            self.observe_time();
            let mut effects = self.take_requests(&mut waiting);
            let now = self.runtime.clock.now();
            while let Some(event) = self.timers.due(now, &self.machine) {
                self.step(event, &mut effects);
            }
            self.perform(effects).await?;
            self.publish();
            if self.storage.log_bytes()
                > self.config.limits.log_bytes.max(self.storage.snapshot_bytes())
            {
                self.take_snapshot().await?;
            }
        }
    }

    /// One event; the timers hear of its effects at once.
    pub(super) fn step(&mut self, event: Event, effects: &mut Vec<Effect>) {
        let now = self.runtime.clock.now();
        for effect in self.machine.step(event) {
            match &effect {
                Effect::RestartElectionTimer => self.timers.note(&effect, now, self.draws.next()),
                Effect::StartLeaderTimers => {
                    reached!("metadata: a member began to lead");
                    self.config.observer.tell(|observer| observer.leads(&self.machine));
                    self.timers.note(&effect, now, 0);
                    let now_ms = self.shared.visible().store.now_ms();
                    self.logical = Duration::from_millis(now_ms);
                }
                _ => effects.push(effect),
            }
        }
    }

    /// Takes what waits, as much as one group holds; changes that stand together enter the log together.
    fn take_requests(&mut self, waiting: &mut VecDeque<Request>) -> Vec<Effect> {
        let mut effects = Vec::new();
        let mut commands = Vec::new();
        let mut bytes = 0;
        while bytes < GROUP_BYTES {
            let Some(request) = waiting.pop_front() else { break };
            if let Request::Change { command, answer, room } = request {
                bytes += command.cost();
                let ticket = self.waiters.enter(Waiter::Change(answer, room));
                commands.push((ticket, self.timed(command)));
                continue;
            }
            self.propose(&mut commands, &mut effects);
            bytes += match &request {
                Request::Message { message, .. } => cost(message),
                _ => 0,
            };
            self.take_request(request, &mut effects);
        }
        if self.is_session_due() {
            let ticket = self.waiters.enter(Waiter::Nobody);
            let time = Command::AdvanceTime { to_ms: self.logical_ms() };
            commands.push((ticket, crate::metadata::store::encode_group(&[time])));
        }
        self.propose(&mut commands, &mut effects);
        effects
    }

    fn propose(
        &mut self,
        commands: &mut Vec<(crate::metadata::consensus::Ticket, Bytes)>,
        effects: &mut Vec<Effect>,
    ) {
        if !commands.is_empty() {
            self.step(Event::Propose(std::mem::take(commands)), effects);
        }
    }

    fn take_request(&mut self, request: Request, effects: &mut Vec<Effect>) {
        let event = match request {
            Request::Message { from, address, message } => {
                self.meet_stranger(from, address);
                Event::Message { from, message }
            }
            Request::Unreachable { member } => Event::Unreachable { member },
            Request::Read { answer } => {
                Event::Read { ticket: self.waiters.enter(Waiter::Proof(answer)) }
            }
            Request::Members { base, membership, answer } => {
                let waiter = Waiter::Proof(answer);
                if base.is_some_and(|base| base != *self.machine.log().membership()) {
                    reached!("metadata: two membership changes crossed");
                    let reason = "the membership has changed meanwhile".to_owned();
                    return waiter.fail(MetadataError::Unavailable(reason));
                }
                let ticket = self.waiters.enter(waiter);
                Event::Change { ticket, membership }
            }
            Request::Transfer { to } => Event::Transfer { to },
            // Taken by the caller.
            Request::Change { .. } => return,
        };
        self.step(event, effects);
    }

    /// A command as it stands in the log, with logical time before it if it counts from it.
    fn timed(&self, command: Command) -> Bytes {
        if command.counts_time() {
            let time = Command::AdvanceTime { to_ms: self.logical_ms() };
            return crate::metadata::store::encode_group(&[time, command]);
        }
        crate::metadata::store::encode_group(&[command])
    }

    fn logical_ms(&self) -> u64 {
        u64::try_from(self.logical.as_millis()).unwrap_or(u64::MAX)
    }

    fn is_session_due(&self) -> bool {
        let visible = self.shared.visible();
        self.machine.role() == Role::Leader
            && visible.store.next_expiry_ms().is_some_and(|expiry| expiry <= self.logical_ms())
    }

    /// Lets logical time pass with this node's clock, but little at once, so that a pause of the leader does
    /// not end everybody's sessions. Only what enters the log counts.
    fn observe_time(&mut self) {
        let now = self.runtime.clock.now();
        let most = if mutant!("T2") { Duration::MAX } else { self.config.tick };
        let passed = now.since(self.observed).min(most);
        self.observed = now;
        if self.machine.role() == Role::Leader {
            self.logical += passed;
        }
    }

    /// Performs effects in order until nothing more follows from them.
    async fn perform(&mut self, mut effects: Vec<Effect>) -> Result<(), String> {
        while !effects.is_empty() {
            let mut next = Vec::new();
            let mut write = Write::default();
            let mut after = Vec::new();
            for effect in std::mem::take(&mut effects) {
                match effect {
                    Effect::Persist(more) => merge(&mut write, more),
                    Effect::Send { to, message }
                        if is_nothing(&write) && after.is_empty() || mutant!("M-early-word") =>
                    {
                        self.send(to, &message);
                    }
                    Effect::InstallSnapshot { .. } => {
                        self.write(&mut write, &mut next).await?;
                        self.perform_after(std::mem::take(&mut after)).await?;
                        self.perform_after(vec![effect]).await?;
                    }
                    other => after.push(other),
                }
            }
            self.write(&mut write, &mut next).await?;
            self.perform_after(after).await?;
            effects = next;
        }
        Ok(())
    }

    async fn write(&mut self, write: &mut Write, next: &mut Vec<Effect>) -> Result<(), String> {
        if is_nothing(write) {
            return Ok(());
        }
        let write = std::mem::take(write);
        if mutant!("M-vote") && write.entries.is_empty() {
            return Ok(());
        }
        self.config.observer.tell(|observer| observer.writes(self.config.id, &write));
        self.storage.write(&write).await.map_err(|error| error.to_string())?;
        let last = if mutant!("M16") { write.entries.first() } else { write.entries.last() };
        if let Some(last) = last {
            self.step(Event::Persisted { index: last.index, term: last.term }, next);
        }
        Ok(())
    }

    async fn perform_after(&mut self, effects: Vec<Effect>) -> Result<(), String> {
        for effect in effects {
            match effect {
                Effect::Send { to, message } => self.send(to, &message),
                Effect::SendSnapshot { to, term, mark, offset } => {
                    self.send_snapshot(to, term, mark, offset).await?;
                }
                Effect::StorePart { offset, data } => self.store_part(offset, &data)?,
                Effect::InstallSnapshot { mark, hard_state, entries } => {
                    self.install(mark, hard_state, entries).await?;
                }
                Effect::Apply(entries) => self.apply(&entries)?,
                Effect::Committed { ticket, index } => self.answer_committed(ticket, index),
                Effect::Refused { ticket, refusal } => {
                    let addresses = &self.machine.log().membership().addresses;
                    let error = refused(refusal, |member| addresses.get(&member).cloned());
                    if let Some(waiter) = self.waiters.take(ticket) {
                        waiter.fail(error);
                    }
                }
                Effect::Unknown { ticket } => {
                    if let Some(waiter) = self.waiters.take(ticket) {
                        reached!("metadata: a leader stepped down before it could answer");
                        let reason = "the leader changed before it was answered".to_owned();
                        waiter.fail(MetadataError::OutcomeUnknown(reason));
                    }
                }
                // What the read must see was committed before it was handed out, so it is applied.
                Effect::ReadReady { ticket, .. } => {
                    if let Some(Waiter::Proof(answer)) = self.waiters.take(ticket) {
                        drop(answer.send(Ok(())));
                    }
                }
                Effect::MembershipChanged(_) => self.meet_peers(),
                Effect::Persist(_) | Effect::RestartElectionTimer | Effect::StartLeaderTimers => {}
            }
        }
        self.results.clear();
        Ok(())
    }

    pub(super) fn send(&self, to: MemberId, message: &Message) {
        if let Some(peer) = self.peers.get(&to) {
            let own = self.config.id;
            self.config.observer.tell(|observer| observer.says(own, to, message));
            let address = self.machine.log().membership().addresses.get(&own);
            let mut envelope = message_to_wire(own, to, message);
            envelope.from_address = address.cloned().unwrap_or_default();
            peer.send(envelope);
        }
    }

    /// A member answers whoever speaks to it, where it says it listens: one that joins knows no group yet, and one that is
    /// behind knows a membership in which today's leader is not. Without an answer it would never be told more.
    fn meet_stranger(&mut self, member: MemberId, address: String) {
        let is_known = match self.peers.get(&member) {
            Some(peer) => !self.strangers.contains(&member) || peer.address() == address,
            None => false,
        };
        let is_deaf = mutant!("M-stranger") && !self.machine.log().membership().voters.is_empty();
        if is_known || is_deaf || address.is_empty() {
            return;
        }
        reached!("metadata: a member met another that it does not know");
        self.strangers.retain(|stranger| *stranger != member);
        if self.strangers.len() >= STRANGERS_MAX
            && let Some(first) = self.strangers.pop_front()
        {
            self.peers.remove(&first);
        }
        self.strangers.push_back(member);
        self.meet(member, &address);
    }

    fn meet(&mut self, member: MemberId, address: &str) {
        let peer = Peer::new(
            &self.runtime,
            member,
            address,
            self.config.peer_queue,
            self.config.channel.clone(),
            self.requests.clone(),
        );
        self.peers.insert(member, peer);
    }

    /// Carries messages to everyone in the newest membership, and to strangers that spoke to this member: the membership
    /// may be an old one.
    fn meet_peers(&mut self) {
        let membership = self.machine.log().membership().clone();
        let own = self.config.id;
        self.strangers
            .retain(|member| !membership.addresses.contains_key(member) && !mutant!("M-stranger"));
        let strangers = &self.strangers;
        self.peers.retain(|member, peer| match membership.addresses.get(member) {
            Some(address) => address == peer.address(),
            None => strangers.contains(member),
        });
        for (member, address) in membership.addresses {
            if member != own && !self.peers.contains_key(&member) {
                self.meet(member, &address);
            }
        }
    }

    /// Shows what this member knows; ends watches that may be stale.
    fn publish(&mut self) {
        let now = self.runtime.clock.now();
        if self.machine.leader().is_some() {
            self.led_until = now + self.config.watch_patience;
        } else if now > self.led_until {
            let mut visible = self.shared.visible();
            if !visible.watches.is_empty() {
                reached!("metadata: watches ended for want of a leader");
                visible.watches.end();
            }
        }
        follow(&mut self.without_leader, self.machine.leader().is_none(), || {
            in_state!("metadata: a member knows no leader")
        });
        let is_joint = self.machine.log().membership().is_joint();
        follow(&mut self.in_joint_membership, is_joint, || {
            in_state!("metadata: the membership is joint")
        });
        let mut status = self.shared.status();
        let before = (status.role, status.leader);
        status.role = self.machine.role();
        status.term = self.machine.term();
        status.leader = self.machine.leader();
        status.commit = self.machine.commit();
        status.last = self.machine.log().last_index();
        status.matched = self.machine.matched();
        let mut is_news = before != (status.role, status.leader);
        if status.membership != *self.machine.log().membership() {
            status.membership = self.machine.log().membership().clone();
            is_news = true;
        }
        if is_news {
            tracing::info!(
                id = self.config.id.0, role = ?status.role, term = status.term, leader = ?status.leader,
                membership = ?status.membership, commit = status.commit, last = status.last,
                "metadata member"
            );
        }
    }
}

/// Is in a state just as long as it should be.
fn follow(state: &mut Option<Inside>, should: bool, enter: impl FnOnce() -> Inside) {
    match (state.is_some(), should) {
        (false, true) => *state = Some(enter()),
        (true, false) => *state = None,
        _ => {}
    }
}

/// Not yet a part of any group.
fn turn_away(request: Request) {
    let error = || MetadataError::NotLeader { leader: None };
    match request {
        Request::Change { answer, .. } => drop(answer.send(Err(error()))),
        Request::Read { answer } | Request::Members { answer, .. } => {
            drop(answer.send(Err(error())));
        }
        // As if lost on the way.
        Request::Message { .. } | Request::Unreachable { .. } | Request::Transfer { .. } => {}
    }
}

fn is_nothing(write: &Write) -> bool {
    write.hard_state.is_none() && write.entries.is_empty()
}

/// Two writes, one after the other, as one.
fn merge(write: &mut Write, more: Write) {
    write.hard_state = more.hard_state.or(write.hard_state);
    if let Some(first) = more.entries.first().map(|entry| entry.index) {
        write.entries.retain(|entry| entry.index < first);
        write.entries.extend(more.entries);
    }
}

fn cost(message: &Message) -> usize {
    use crate::metadata::consensus::Body;
    match &message.body {
        Body::Append(append) => {
            append.entries.iter().map(crate::metadata::consensus::Entry::cost).sum()
        }
        _ => 0,
    }
}
