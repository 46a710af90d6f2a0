//! Loading a topic: take its managed ledger over, open its stored cursors, start its task.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};

use super::command::Command;
use super::handle::{Topic, TopicShared};
use super::producers::ProducerNames;
use super::task::TopicTask;
use crate::broker::managed_ledger::{
    AppendOutcome, ManagedLedger, ManagedLedgerEnvironment, ManagedLedgerError, ManagedLedgerEvents,
};
use crate::broker::messages::{InitialPosition, SubscriptionType};
use crate::broker::subscription::Subscription;
use crate::domain::TopicName;
use crate::runtime::{MailboxSender, mailbox};
use crate::{in_state, reached};

/// Commands waiting for a topic's task before callers wait or acknowledgements are refused.
const MAILBOX_MAX: usize = 65_536;

/// Passes the managed ledger's events into the topic's mailbox.
struct Events(MailboxSender<Command>);

impl ManagedLedgerEvents for Events {
    fn appended(&self, outcomes: Vec<AppendOutcome>) {
        // Pushed: each outcome answers an entry admitted under the topic's limit of pending entries.
        let _ = self.0.push(Command::Appended(outcomes));
    }

    fn fenced(&self, reason: String) {
        let _ = self.0.push(Command::Fenced(reason));
    }
}

/// Why a topic was not loaded.
pub(in crate::broker) type LoadError = ManagedLedgerError;

/// Loads a topic. `on_end` is called when it is served here no more, before anyone is told.
pub(in crate::broker) async fn load(
    environment: &ManagedLedgerEnvironment,
    name: &TopicName,
    create: bool,
    names: Arc<ProducerNames>,
    on_end: impl FnOnce(&Topic) + Send + 'static,
) -> Result<Topic, LoadError> {
    let _state = in_state!("topic: load");
    let (sender, receiver) = mailbox(MAILBOX_MAX);
    let events = Arc::new(Events(sender.clone()));
    let full_name = name.to_string();
    let ledger = ManagedLedger::open(environment.clone(), &full_name, create, events).await?;
    let subscriptions = match open_subscriptions(environment, &ledger).await {
        Ok(subscriptions) => subscriptions,
        Err(error) => {
            reached!("topic: a stored cursor could not be opened");
            ledger.close().await;
            return Err(error);
        }
    };
    let shared = Arc::new(TopicShared {
        name: name.clone(),
        mailbox: sender,
        pending: AtomicUsize::new(0),
        pending_max: environment.config.topic_pending_max,
        closing: AtomicBool::new(false),
        log: ledger.numbered(),
        carried_messages: AtomicU64::new(0),
        carried_bytes: AtomicU64::new(0),
    });
    let topic = Topic { inner: Arc::clone(&shared) };
    let ended = topic.clone();
    let on_end = Box::new(move || on_end(&ended));
    let task = TopicTask::new(shared, environment, ledger, names, subscriptions, on_end);
    environment.runtime.tasks.spawn("topic", task.run(receiver));
    Ok(topic)
}

/// The stored subscriptions, without consumers.
async fn open_subscriptions(
    environment: &ManagedLedgerEnvironment,
    ledger: &ManagedLedger,
) -> Result<BTreeMap<Arc<str>, Subscription>, LoadError> {
    let now = environment.runtime.clock.now();
    let mut subscriptions = BTreeMap::new();
    for (number, name) in (0..).zip(ledger.cursor_names()) {
        // It exists, so the initial position does not matter. Its type is told by the first consumer.
        let cursor = ledger.open_cursor(&name, InitialPosition::Earliest, Vec::new()).await?;
        let name: Arc<str> = name.into();
        let subscription = Subscription::new(
            Arc::clone(&name),
            number,
            SubscriptionType::Exclusive,
            cursor,
            ledger.last_confirmed(),
            environment.config.unacked_per_consumer_max,
            now,
        );
        subscriptions.insert(name, subscription);
    }
    Ok(subscriptions)
}
