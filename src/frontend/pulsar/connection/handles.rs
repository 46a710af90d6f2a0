//! Producers and consumers of one connection, by the ids the client chose.
//!
//! A handle is pending from its request to its answer. A close meanwhile removes it; whoever completes
//! the request then finds its generation gone and closes what it got.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::delivery_sink::DeliverySink;
use super::publish_sink::PublishSink;
use crate::broker::{Consumer, Producer};

/// Producers closed by the broker that are remembered, so that sends on their way are not taken for a
/// broken client. The smallest ids are forgotten first.
const RETIRED_MAX: usize = 1024;

/// One handle.
pub(in crate::frontend::pulsar) enum Slot<T> {
    /// Its request is being worked on.
    Pending,
    /// It is open.
    Ready(T),
}

/// An open producer.
#[derive(Clone)]
pub(in crate::frontend::pulsar) struct OpenProducer {
    pub(in crate::frontend::pulsar) producer: Producer,
    pub(in crate::frontend::pulsar) sink: Arc<PublishSink>,
}

/// An open consumer.
#[derive(Clone)]
pub(in crate::frontend::pulsar) struct OpenConsumer {
    pub(in crate::frontend::pulsar) consumer: Consumer,
    pub(in crate::frontend::pulsar) sink: Arc<DeliverySink>,
}

/// Why a new handle was not begun.
pub(in crate::frontend::pulsar) enum BeginError<T> {
    /// The same id is being opened.
    Pending,
    /// The same id is open.
    Open(T),
    /// Too many handles, or the connection is ending.
    Refused,
}

/// Handles of one kind.
pub(in crate::frontend::pulsar) struct HandleTable<T> {
    slots: BTreeMap<u64, (u64, Slot<T>)>,
    next_generation: u64,
    limit: usize,
    ended: bool,
}

impl<T: Clone> HandleTable<T> {
    fn new(limit: usize) -> Self {
        Self { slots: BTreeMap::new(), next_generation: 0, limit, ended: false }
    }

    /// Reserves an id; gives its generation.
    pub(in crate::frontend::pulsar) fn begin(&mut self, id: u64) -> Result<u64, BeginError<T>> {
        match self.slots.get(&id) {
            Some((_, Slot::Pending)) => return Err(BeginError::Pending),
            Some((_, Slot::Ready(open))) => return Err(BeginError::Open(open.clone())),
            None => {}
        }
        if self.ended || self.slots.len() >= self.limit {
            return Err(BeginError::Refused);
        }
        self.next_generation += 1;
        self.slots.insert(id, (self.next_generation, Slot::Pending));
        Ok(self.next_generation)
    }

    /// Opens a reserved id. False if it was closed meanwhile.
    pub(in crate::frontend::pulsar) fn open(&mut self, id: u64, generation: u64, open: T) -> bool {
        match self.slots.get_mut(&id) {
            Some((current, slot)) if *current == generation => {
                *slot = Slot::Ready(open);
                true
            }
            _ => false,
        }
    }

    /// An open handle.
    pub(in crate::frontend::pulsar) fn get(&self, id: u64) -> Option<T> {
        match self.slots.get(&id) {
            Some((_, Slot::Ready(open))) => Some(open.clone()),
            _ => None,
        }
    }

    /// Removes a handle, open or pending; gives it if it was open.
    pub(in crate::frontend::pulsar) fn remove(&mut self, id: u64) -> Option<T> {
        match self.slots.remove(&id) {
            Some((_, Slot::Ready(open))) => Some(open),
            _ => None,
        }
    }

    /// Takes an open handle of this generation out but keeps its id reserved.
    pub(super) fn back_to_pending(&mut self, id: u64, generation: u64) -> Option<T> {
        let (current, slot) = self.slots.get_mut(&id)?;
        if *current != generation {
            return None;
        }
        match std::mem::replace(slot, Slot::Pending) {
            Slot::Ready(open) => Some(open),
            Slot::Pending => None,
        }
    }

    /// Removes a handle if it is still of this generation.
    pub(in crate::frontend::pulsar) fn remove_generation(&mut self, id: u64, generation: u64) {
        if self.slots.get(&id).is_some_and(|(current, _)| *current == generation) {
            self.slots.remove(&id);
        }
    }

    fn end(&mut self) -> Vec<T> {
        self.ended = true;
        std::mem::take(&mut self.slots)
            .into_values()
            .filter_map(|(_, slot)| match slot {
                Slot::Ready(open) => Some(open),
                Slot::Pending => None,
            })
            .collect()
    }
}

/// All handles of a connection.
pub(in crate::frontend::pulsar) struct Handles {
    producers: Mutex<HandleTable<OpenProducer>>,
    consumers: Mutex<HandleTable<OpenConsumer>>,
    retired: Mutex<BTreeSet<u64>>,
}

impl Handles {
    pub(super) fn new(producers_max: usize, consumers_max: usize) -> Self {
        Self {
            producers: Mutex::new(HandleTable::new(producers_max)),
            consumers: Mutex::new(HandleTable::new(consumers_max)),
            retired: Mutex::new(BTreeSet::new()),
        }
    }

    /// The producers.
    pub(in crate::frontend::pulsar) fn producers(
        &self,
    ) -> MutexGuard<'_, HandleTable<OpenProducer>> {
        self.producers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The consumers.
    pub(in crate::frontend::pulsar) fn consumers(
        &self,
    ) -> MutexGuard<'_, HandleTable<OpenConsumer>> {
        self.consumers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An open consumer.
    pub(in crate::frontend::pulsar) fn consumer(&self, id: u64) -> Option<Consumer> {
        self.consumers().get(id).map(|open| open.consumer)
    }

    /// Remembers a producer that was closed while sends may be on their way.
    pub(in crate::frontend::pulsar) fn retire_producer(&self, id: u64) {
        let mut retired = self.retired.lock().unwrap_or_else(PoisonError::into_inner);
        retired.insert(id);
        if retired.len() > RETIRED_MAX {
            retired.pop_first();
        }
    }

    /// Whether sends of this producer may still be on their way.
    pub(in crate::frontend::pulsar) fn is_retired_producer(&self, id: u64) -> bool {
        self.retired.lock().unwrap_or_else(PoisonError::into_inner).contains(&id)
    }

    /// Takes everything out; nothing can be opened any more.
    pub(super) fn end(&self) -> (Vec<OpenProducer>, Vec<OpenConsumer>) {
        (self.producers().end(), self.consumers().end())
    }
}
