//! Who publishes to a topic: names, conflicts, replacement by a newer connection.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::command::Reply;
use crate::broker::messages::{ProducerSink, PublishOutcome};
use crate::broker::meter::Meter;
use crate::broker::service::{BrokerError, ProducerOptions};
use crate::domain::Instant;

/// Producers of one topic; more are refused with `ProducerBusy`.
const PRODUCERS_MAX: usize = 10_000;

/// A producer's identity within its topic, never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::broker) struct ProducerKey(pub(super) u64);

/// Makes producer names that no broker of the cluster makes again: `<cluster>-<start>-<count>`.
pub(in crate::broker) struct ProducerNames {
    prefix: String,
    made: AtomicU64,
}

impl ProducerNames {
    /// Names of the broker's `start`-th start in the cluster.
    pub(in crate::broker) fn new(cluster: &str, start: u64) -> Self {
        Self { prefix: format!("{cluster}-{start}-"), made: AtomicU64::new(0) }
    }

    pub(super) fn next(&self) -> String {
        format!("{}{}", self.prefix, self.made.fetch_add(1, Ordering::Relaxed))
    }
}

/// One connected producer.
pub(super) struct ConnectedProducer {
    pub(super) name: String,
    pub(super) options: ProducerOptions,
    pub(super) sink: Arc<dyn ProducerSink>,
    /// Entries without outcome.
    pub(super) pending: usize,
    /// Closed by its owner: it goes when nothing is pending.
    pub(super) closing: bool,
    pub(super) close_replies: Vec<Reply<()>>,
    pub(super) inward: Meter,
    /// Outcomes of this turn.
    pub(super) outbox: Vec<PublishOutcome>,
}

/// The producers of a topic.
#[derive(Default)]
pub(super) struct Producers {
    by_key: BTreeMap<ProducerKey, ConnectedProducer>,
    by_name: BTreeMap<String, ProducerKey>,
    next_key: u64,
}

impl Producers {
    /// Adds a producer. A connected one of the same name is an error, unless it is an earlier epoch of the
    /// same producer of the same connection: then that one is returned, taken out.
    pub(super) fn add(
        &mut self,
        options: ProducerOptions,
        sink: Arc<dyn ProducerSink>,
        names: &ProducerNames,
        now: Instant,
    ) -> Result<(ProducerKey, String, Option<ConnectedProducer>), BrokerError> {
        if self.by_key.len() >= PRODUCERS_MAX {
            return Err(BrokerError::ProducerBusy(format!(
                "{PRODUCERS_MAX} producers are connected"
            )));
        }
        let name = options.name.clone().unwrap_or_else(|| names.next());
        let mut replaced = None;
        if let Some(holder_key) = self.by_name.get(&name).copied()
            && let Some(holder) = self.by_key.get(&holder_key)
        {
            let same = holder.options.connection.address == options.connection.address
                && holder.options.producer_id == options.producer_id;
            if !same || holder.options.epoch >= options.epoch {
                return Err(BrokerError::ProducerBusy(format!(
                    "a producer named {name} is connected"
                )));
            }
            replaced = self.remove(holder_key);
        }
        let key = ProducerKey(self.next_key);
        self.next_key += 1;
        self.by_name.insert(name.clone(), key);
        let producer = ConnectedProducer {
            name: name.clone(),
            options,
            sink,
            pending: 0,
            closing: false,
            close_replies: Vec::new(),
            inward: Meter::new(now),
            outbox: Vec::new(),
        };
        self.by_key.insert(key, producer);
        Ok((key, name, replaced))
    }

    pub(super) fn get_mut(&mut self, key: ProducerKey) -> Option<&mut ConnectedProducer> {
        self.by_key.get_mut(&key)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &ConnectedProducer> {
        self.by_key.values()
    }

    /// Producers that are not on their way out.
    pub(super) fn open_count(&self) -> usize {
        self.by_name.len()
    }

    /// Gives its name free; it stays until nothing is pending.
    pub(super) fn begin_close(&mut self, key: ProducerKey, reply: Option<Reply<()>>) {
        let Some(producer) = self.by_key.get_mut(&key) else {
            answer(reply);
            return;
        };
        producer.closing = true;
        producer.close_replies.extend(reply);
        if self.by_name.get(&producer.name) == Some(&key) {
            self.by_name.remove(&producer.name);
        }
        self.finish_close(key);
    }

    /// Removes a closing producer if nothing is pending.
    pub(super) fn finish_close(&mut self, key: ProducerKey) {
        if self.by_key.get(&key).is_some_and(|producer| producer.closing && producer.pending == 0) {
            for reply in self.remove(key).into_iter().flat_map(|producer| producer.close_replies) {
                answer(Some(reply));
            }
        }
    }

    fn remove(&mut self, key: ProducerKey) -> Option<ConnectedProducer> {
        let producer = self.by_key.remove(&key)?;
        if self.by_name.get(&producer.name) == Some(&key) {
            self.by_name.remove(&producer.name);
        }
        Some(producer)
    }

    /// Takes all out.
    pub(super) fn take_all(&mut self) -> Vec<ConnectedProducer> {
        self.by_name.clear();
        std::mem::take(&mut self.by_key).into_values().collect()
    }
}

fn answer(reply: Option<Reply<()>>) {
    if let Some(reply) = reply {
        let _ = reply.send(());
    }
}
