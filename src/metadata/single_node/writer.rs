//! The one task that writes: commands in groups to the log, then to the visible state; time; snapshots.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::SingleNodeConfig;
use super::handle::{Ended, Shared};
use crate::domain::Instant;
use crate::metadata::MetadataError;
use crate::metadata::durable::{GROUP_BYTES, LogFile, log_first, remove_logs, write_snapshot};
use crate::metadata::store::{Command, Done, encode_group};
use crate::runtime::{DiskResult, Mailbox, Runtime, ShutdownSignal};
use crate::{mutant, reached};

/// One change and who waits for it.
pub(super) struct Request {
    pub(super) command: Command,
    pub(super) answer: oneshot::Sender<Result<Done, MetadataError>>,
    /// Its share of the queue's bytes.
    pub(super) room: OwnedSemaphorePermit,
}

/// The writer's state. `shared.visible.store` is changed by it alone.
pub(super) struct Writer {
    runtime: Runtime,
    config: SingleNodeConfig,
    shared: Arc<Shared>,
    inbox: Mailbox<Request>,
    waiting: VecDeque<Request>,
    log: LogFile,
    snapshot_bytes: u64,
    stop: ShutdownSignal,
    /// Logical time, ahead of the store's by what is not in the log yet.
    logical: Duration,
    observed: Instant,
}

impl Writer {
    pub(super) fn new(
        runtime: Runtime,
        config: SingleNodeConfig,
        shared: Arc<Shared>,
        inbox: Mailbox<Request>,
        log: LogFile,
        stop: ShutdownSignal,
    ) -> Self {
        let logical = Duration::from_millis(shared.visible().store.now_ms());
        let observed = runtime.clock.now();
        Self {
            runtime,
            config,
            shared,
            inbox,
            waiting: VecDeque::new(),
            log,
            snapshot_bytes: 0,
            stop,
            logical,
            observed,
        }
    }

    /// Runs until stopped, poisoned, or without handles.
    pub(super) async fn run(mut self) {
        let ended = match self.work().await {
            Ok(()) => {
                Ended { reason: "the metadata store has stopped".to_owned(), poisoned: false }
            }
            Err(reason) => {
                reached!("metadata: the log was poisoned");
                tracing::error!(reason, "metadata takes no more changes");
                Ended { reason, poisoned: true }
            }
        };
        if !ended.poisoned {
            self.shared.visible().watches.end();
        }
        self.shared.end(ended.clone());
        // Never attempted, so certainly not done.
        self.waiting.extend(self.inbox.take_ready());
        for request in self.waiting {
            let _ = request.answer.send(Err(MetadataError::Unavailable(ended.reason.clone())));
        }
    }

    async fn work(&mut self) -> Result<(), String> {
        loop {
            let next_tick = self.observed + self.config.tick;
            let has_sessions = self.shared.visible().store.next_expiry_ms().is_some();
            tokio::select! {
                biased;
                () = self.stop.triggered() => return Ok(()),
                requests = self.inbox.take_all() => match requests {
                    Some(requests) => self.waiting.extend(requests),
                    None => return Ok(()),
                },
                () = self.runtime.clock.sleep_until(next_tick), if has_sessions => {}
            }
            self.observe_time();
            loop {
                let group = self.next_group();
                let commands = self.commands_of(&group);
                if commands.is_empty() {
                    break;
                }
                self.commit(group, commands).await?;
                if self.stop.is_triggered() {
                    return Ok(());
                }
            }
            if self.log.length() > self.config.log_bytes.max(self.snapshot_bytes) {
                self.take_snapshot().await.map_err(|error| error.to_string())?;
            }
        }
    }

    /// Lets logical time pass with this node's clock, but at most two ticks at once.
    fn observe_time(&mut self) {
        let now = self.runtime.clock.now();
        let most = if mutant!("T2") { Duration::MAX } else { self.config.tick * 2 };
        let passed = now.since(self.observed).min(most);
        self.observed = now;
        self.logical += passed;
    }

    fn next_group(&mut self) -> Vec<Request> {
        let mut group = Vec::new();
        let mut bytes = 0;
        while bytes < GROUP_BYTES {
            let Some(request) = self.waiting.pop_front() else { break };
            bytes += request.command.cost();
            group.push(request);
        }
        group
    }

    /// The group's commands, with logical time before them where it matters: a session's end is counted
    /// from it, or has come.
    fn commands_of(&self, group: &[Request]) -> Vec<Command> {
        let to_ms = u64::try_from(self.logical.as_millis()).unwrap_or(u64::MAX);
        let (now_ms, expiry) = {
            let visible = self.shared.visible();
            (visible.store.now_ms(), visible.store.next_expiry_ms())
        };
        let counts_time = group.iter().any(|request| request.command.counts_time());
        let is_due = expiry.is_some_and(|expiry| expiry <= to_ms);
        let mut commands = Vec::with_capacity(group.len() + 1);
        if to_ms > now_ms && (counts_time || is_due) {
            commands.push(Command::AdvanceTime { to_ms });
        }
        commands.extend(group.iter().map(|request| request.command.clone()));
        commands
    }

    /// Makes the commands durable, then visible, then answers.
    async fn commit(&mut self, group: Vec<Request>, commands: Vec<Command>) -> Result<(), String> {
        let first = self.shared.visible().store.applied() + 1;
        let payload = encode_group(&commands);
        if mutant!("M-unsynced") {
            self.publish(group, &commands);
            return self.log.append(first, payload).await.map_err(|error| error.to_string());
        }
        match self.log.append(first, payload).await {
            Ok(()) => {
                self.publish(group, &commands);
                Ok(())
            }
            Err(error) => {
                // It may be on the disk and come back at the next start.
                for request in group {
                    let unknown = MetadataError::OutcomeUnknown(error.to_string());
                    let _ = request.answer.send(Err(unknown));
                }
                Err(error.to_string())
            }
        }
    }

    fn publish(&self, group: Vec<Request>, commands: &[Command]) {
        let mut results = Vec::with_capacity(commands.len());
        {
            let mut visible = self.shared.visible();
            let mut events = Vec::new();
            for command in commands {
                let applied = visible.store.apply(command);
                events.extend(applied.events);
                results.push(applied.result);
            }
            visible.watches.dispatch(&events);
        }
        // Without the command for time, if there was one.
        let answers = results.into_iter().skip(commands.len() - group.len());
        for (request, result) in group.into_iter().zip(answers) {
            // Who asked may have gone.
            let _ = request.answer.send(result);
            drop(request.room);
        }
    }

    /// Begins a new log, replaces the snapshot, removes the old logs: in this order, so that after a crash
    /// at any point snapshot and logs together hold every command.
    async fn take_snapshot(&mut self) -> DiskResult<()> {
        let store = self.shared.visible().store.clone();
        let directory = self.config.directory.clone();
        let disk = &self.runtime.disk;
        let first = store.applied() + 1;
        let salt = self.runtime.random.fork_numbered("metadata log salt", first).next();
        self.log = LogFile::create(disk, &directory, salt, first).await?;
        let names = disk.list(&directory).await?.into_iter().map(|entry| entry.name);
        let old: Vec<String> =
            names.filter(|name| log_first(name).is_some_and(|other| other < first)).collect();
        if mutant!("M-drop") {
            remove_logs(disk, &directory, old.clone()).await?;
        }
        self.snapshot_bytes = write_snapshot(disk, &directory, &store.to_snapshot()).await?;
        remove_logs(disk, &directory, old).await
    }
}
