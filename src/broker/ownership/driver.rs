//! The task that performs what the machine decides: reads and writes records, opens and closes bundles,
//! answers who asked.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::sync::{Semaphore, oneshot};

use super::bundle::Bundle;
use super::machine::{Answer, ClaimError, Effect, Event, Looked, Machine, Token};
use super::record::{BrokerInstance, OWNERSHIP_PREFIX, OwnershipRecord};
use crate::broker::managed_ledger::compare_and_set::{CasError, compare_and_set};
use crate::broker::served_topics::ServedTopics;
use crate::metadata::{Expect, Metadata, MetadataError, Revision, WatchEvent};
use crate::runtime::{Mailbox, MailboxSender, Runtime, ShutdownSignal};
use crate::{in_state, mutant, reached};

/// A look, a claim or a release is given up after this; its fate is unknown then.
const STEP_LIMIT: Duration = Duration::from_secs(10);
/// Bundles closed at the same time.
const CLOSES_MAX: usize = 8;
/// Pause before a watch that ended is opened anew.
const WATCH_PAUSE: Duration = Duration::from_millis(500);

/// What may reach the task.
pub(super) enum Input {
    Acquire(Bundle, oneshot::Sender<Answer>),
    Release(Bundle, oneshot::Sender<Answer>),
    Stop(oneshot::Sender<Answer>),
    Seen(Bundle, Revision, Option<OwnershipRecord>),
}

/// See the module.
pub(super) struct Driver {
    runtime: Runtime,
    metadata: Metadata,
    topics: Arc<ServedTopics>,
    machine: Machine,
    jobs: FuturesUnordered<BoxFuture<'static, Event>>,
    replies: BTreeMap<Token, oneshot::Sender<Answer>>,
    next_token: Token,
    closes: Arc<Semaphore>,
}

impl Driver {
    pub(super) fn new(
        runtime: Runtime,
        metadata: Metadata,
        topics: Arc<ServedTopics>,
        own: BrokerInstance,
    ) -> Self {
        Self {
            runtime,
            metadata,
            topics,
            machine: Machine::new(own),
            jobs: FuturesUnordered::new(),
            replies: BTreeMap::new(),
            next_token: 0,
            closes: Arc::new(Semaphore::new(CLOSES_MAX)),
        }
    }

    /// Runs until told to stop, or until nobody can ask any more.
    pub(super) async fn run(mut self, mut mailbox: Mailbox<Input>, stop: ShutdownSignal) {
        loop {
            let mut inputs = VecDeque::new();
            let mut done = None;
            tokio::select! {
                biased;
                () = stop.triggered() => return,
                event = self.jobs.next(), if !self.jobs.is_empty() => done = event,
                taken = mailbox.take_all() => match taken {
                    Some(taken) => inputs = taken,
                    None => return,
                },
            }
            if let Some(event) = done {
                self.take(event);
            }
            for input in inputs {
                let event = match input {
                    Input::Acquire(bundle, reply) => Event::Acquire(bundle, self.token(reply)),
                    Input::Release(bundle, reply) => Event::Release(bundle, self.token(reply)),
                    Input::Stop(reply) => Event::Stop(self.token(reply)),
                    Input::Seen(bundle, version, record) => Event::Seen(bundle, version, record),
                };
                self.take(event);
            }
        }
    }

    fn token(&mut self, reply: oneshot::Sender<Answer>) -> Token {
        self.next_token += 1;
        self.replies.insert(self.next_token, reply);
        self.next_token
    }

    fn take(&mut self, event: Event) {
        for effect in self.machine.on(event) {
            self.perform(effect);
        }
    }

    fn perform(&mut self, effect: Effect) {
        let (clock, metadata) = (self.runtime.clock.clone(), Arc::clone(&self.metadata));
        match effect {
            Effect::Look(bundle, attempt) => self.jobs.push(Box::pin(async move {
                let looked = clock.timeout(STEP_LIMIT, look(&metadata, &bundle)).await;
                let looked = looked.unwrap_or_else(|late| Err(late.to_string()));
                Event::Looked(bundle, attempt, looked)
            })),
            Effect::Claim(bundle, attempt, record, expect) => {
                self.jobs.push(Box::pin(async move {
                    let _state = in_state!("ownership: a bundle is claimed");
                    let claimed = write(&metadata, &clock, &bundle, &record, expect).await;
                    Event::Claimed(bundle, attempt, claimed)
                }))
            }
            Effect::Open(bundle, epoch) => {
                tracing::info!(%bundle, epoch, "bundle taken");
                self.topics.open(&bundle, epoch);
            }
            Effect::Close(bundle, attempt) => {
                // At once, so that nothing is loaded any more; what is loaded is closed beside.
                self.topics.shut(&bundle);
                let (topics, closes) = (Arc::clone(&self.topics), Arc::clone(&self.closes));
                self.jobs.push(Box::pin(async move {
                    let _state = in_state!("ownership: topics of a bundle are closed");
                    let permit = closes.acquire().await;
                    topics.close(&bundle).await;
                    drop(permit);
                    Event::Closed(bundle, attempt)
                }));
            }
            Effect::Release(bundle, attempt, record, expect) => {
                self.jobs.push(Box::pin(async move {
                    let _state = in_state!("ownership: a bundle is released");
                    let written = write(&metadata, &clock, &bundle, &record, expect).await;
                    match written {
                        Ok(_) => tracing::info!(%bundle, "bundle released"),
                        Err(error) => {
                            reached!("ownership: a release was not written");
                            tracing::info!(%bundle, ?error, "bundle not released");
                        }
                    }
                    Event::Released(bundle, attempt)
                }));
            }
            Effect::Answer(token, answer) => {
                if let Some(reply) = self.replies.remove(&token) {
                    // Nobody waiting any more is fine.
                    let _ = reply.send(answer);
                }
            }
        }
    }
}

async fn look(metadata: &Metadata, bundle: &Bundle) -> Result<Looked, String> {
    let text = |error: MetadataError| error.to_string();
    let found = metadata.get(&OwnershipRecord::key(bundle)).await.map_err(text)?;
    let Some(found) = found else { return Ok(Looked { found: None, owner_lives: false }) };
    let record = OwnershipRecord::decode(&found.value)?;
    let owner_lives = match record.owner {
        Some(owner) => metadata.get(&owner.key()).await.map_err(text)?.is_some(),
        None => false,
    };
    Ok(Looked { found: Some((record, found.version)), owner_lives })
}

async fn write(
    metadata: &Metadata,
    clock: &crate::runtime::Clock,
    bundle: &Bundle,
    record: &OwnershipRecord,
    expect: Expect,
) -> Result<Revision, ClaimError> {
    let key = OwnershipRecord::key(bundle);
    let writing = compare_and_set(metadata, clock, &key, record.encode(), expect);
    match clock.timeout(STEP_LIMIT, writing).await {
        Ok(Ok(version)) => Ok(version),
        Ok(Err(CasError::Conflict)) => Err(ClaimError::Conflict),
        Ok(Err(CasError::Unknown(reason))) => Err(ClaimError::Unknown(reason)),
        Err(late) => Err(ClaimError::Unknown(late.to_string())),
    }
}

/// Tells the task of every change of ownership, for as long as it runs.
pub(super) async fn watch(runtime: Runtime, metadata: Metadata, inputs: MailboxSender<Input>) {
    loop {
        if let Ok(mut changes) = metadata.watch(OWNERSHIP_PREFIX).await {
            while let Some(events) = changes.next().await {
                for event in events {
                    if mutant!("B-deposed") {
                        continue;
                    }
                    let Some(input) = seen(event) else { continue };
                    if inputs.send(input).await.is_err() {
                        return;
                    }
                }
            }
            reached!("ownership: a watch of owners ended");
        }
        runtime.clock.sleep(WATCH_PAUSE).await;
    }
}

fn seen(event: WatchEvent) -> Option<Input> {
    match event {
        WatchEvent::Put { key, value } => {
            let bundle = OwnershipRecord::bundle_of_key(&key)?;
            let record = OwnershipRecord::decode(&value.value).ok();
            Some(Input::Seen(bundle, value.version, record))
        }
        WatchEvent::Deleted { key, revision } => {
            let bundle = OwnershipRecord::bundle_of_key(&key)?;
            Some(Input::Seen(bundle, revision, None))
        }
    }
}
