//! The topics served here: those of bundles that are open here. A topic is loaded once however many ask for
//! it, few are loaded at once, and one that ended makes room for a new load. A load that ends after its
//! bundle was shut, or was shut and opened again, is not put to use.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use futures_util::future::join_all;
use tokio::sync::{OnceCell, Semaphore, oneshot};

use super::managed_ledger::{ManagedLedgerEnvironment, ManagedLedgerError};
use super::ownership::{Bundle, Traffic, is_owned_still};
use super::service::BrokerError;
use super::topic::{LoadError, ProducerNames, Topic, load};
use crate::domain::TopicName;
use crate::{mutant, reached};

/// Topics being loaded at the same time; further ones wait.
const LOADS_MAX: u32 = 32;
/// Topics waiting to be loaded, those being loaded included; further ones get `NotReady`.
const LOADS_WAITING_MAX: usize = 5_000;
/// Callers waiting for one topic to load; further ones get `NotReady`.
const WAITERS_MAX: usize = 10_000;
/// Topics closed at the same time when the broker stops.
const CLOSES_MAX: usize = 32;
/// Topics served here; further ones get `NotReady`.
const TOPICS_MAX: usize = 200_000;
/// Counter of broker starts in the cluster.
const STARTS_KEY: &str = "/broker-start";

type Loaded = Result<Topic, BrokerError>;

enum Slot {
    Loading(Vec<oneshot::Sender<Loaded>>),
    Serving(Topic),
}

/// What a topic is loaded under: the bundle and the epoch it was opened with.
type Lease = (Bundle, u64);

#[derive(Default)]
struct State {
    slots: BTreeMap<TopicName, (Lease, Slot)>,
    /// Bundles open here, with their epochs.
    open: BTreeMap<Bundle, u64>,
    loading: usize,
    stopping: bool,
}

impl State {
    fn is_current(&self, (bundle, epoch): &Lease) -> bool {
        self.open.get(bundle) == Some(epoch)
    }
}

/// The topics served here.
pub(super) struct ServedTopics {
    environment: ManagedLedgerEnvironment,
    state: Mutex<State>,
    loads: Semaphore,
    start: OnceCell<(u64, Arc<ProducerNames>)>,
}

impl ServedTopics {
    pub(super) fn new(environment: ManagedLedgerEnvironment) -> Arc<Self> {
        Arc::new(Self {
            environment,
            state: Mutex::default(),
            loads: Semaphore::new(LOADS_MAX as usize),
            start: OnceCell::new(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The topic if it is served here now; an error while it is closing.
    pub(super) fn get(&self, name: &TopicName) -> Result<Option<Topic>, BrokerError> {
        match self.lock().slots.get(name) {
            Some((_, Slot::Serving(topic))) if topic.shared().is_closing() => {
                Err(BrokerError::NotReady(format!("topic {name} is closing")))
            }
            Some((_, Slot::Serving(topic))) => Ok(Some(topic.clone())),
            Some((_, Slot::Loading(_))) | None => Ok(None),
        }
    }

    /// Topics of the bundle may be loaded from now on.
    pub(super) fn open(&self, bundle: &Bundle, epoch: u64) {
        self.lock().open.insert(bundle.clone(), epoch);
    }

    /// No topic of the bundle is loaded any more.
    pub(super) fn shut(&self, bundle: &Bundle) {
        self.lock().open.remove(bundle);
    }

    /// Whether topics of the bundle are served here.
    pub(super) fn is_served(&self, bundle: &Bundle) -> bool {
        let state = self.lock();
        state.open.contains_key(bundle) && !state.stopping
    }

    /// Closes every topic of a bundle that was shut; waits for those being loaded.
    pub(super) async fn close(&self, bundle: &Bundle) {
        loop {
            let (topics, loads) = {
                let mut state = self.lock();
                let mut topics = Vec::new();
                let mut loads = Vec::new();
                for ((of, _), slot) in state.slots.values_mut() {
                    match slot {
                        _ if of != bundle => {}
                        Slot::Loading(_) if mutant!("B-late-load") => {}
                        Slot::Serving(topic) => topics.push(topic.clone()),
                        Slot::Loading(waiters) => {
                            let (waiter, loaded) = oneshot::channel();
                            waiters.push(waiter);
                            loads.push(loaded);
                        }
                    }
                }
                (topics, loads)
            };
            if topics.is_empty() && loads.is_empty() {
                return;
            }
            // However each ends, it is looked at again.
            drop(join_all(loads).await);
            for group in topics.chunks(CLOSES_MAX) {
                join_all(group.iter().map(Topic::unload)).await;
                for topic in group {
                    self.forget(topic);
                }
            }
        }
    }

    /// Counters of what each bundle carries.
    pub(super) fn traffic(&self) -> BTreeMap<Bundle, Traffic> {
        let mut sums: BTreeMap<Bundle, Traffic> = BTreeMap::new();
        for ((bundle, _), slot) in self.lock().slots.values() {
            if let Slot::Serving(topic) = slot {
                let (messages, bytes) = topic.shared().carried();
                let sum = sums.entry(bundle.clone()).or_default();
                sum.topics += 1;
                sum.messages += messages;
                sum.bytes += bytes;
            }
        }
        sums
    }

    /// All served here, in name order.
    pub(super) fn loaded(&self) -> Vec<Topic> {
        let state = self.lock();
        let serving = state.slots.values().filter_map(|(_, slot)| match slot {
            Slot::Serving(topic) => Some(topic.clone()),
            Slot::Loading(_) => None,
        });
        serving.collect()
    }

    /// The topic, loaded if need be.
    pub(super) async fn load(
        self: &Arc<Self>,
        name: &TopicName,
        bundle: &Bundle,
        create: bool,
    ) -> Result<Topic, BrokerError> {
        loop {
            if let Some(topic) = self.get(name)? {
                return Ok(topic);
            }
            let (answer, started) = self.join_load(name, bundle, create)?;
            let result = answer.await.unwrap_or_else(|_| {
                Err(BrokerError::NotReady("the load was called off".to_owned()))
            });
            match result {
                // The load that was joined was not to create it, but this caller is.
                Err(BrokerError::TopicNotFound(_)) if create && !started => {}
                result => return result,
            }
        }
    }

    /// Waits with others for a load, or starts it; true if started.
    fn join_load(
        self: &Arc<Self>,
        name: &TopicName,
        bundle: &Bundle,
        create: bool,
    ) -> Result<(oneshot::Receiver<Loaded>, bool), BrokerError> {
        let (waiter, answer) = oneshot::channel();
        let mut state = self.lock();
        if state.stopping {
            return Err(BrokerError::NotReady("the broker is stopping".to_owned()));
        }
        let Some(epoch) = state.open.get(bundle).copied() else {
            return Err(BrokerError::NotServed(name.clone()));
        };
        let (served, loading) = (state.slots.len(), state.loading);
        match state.slots.get_mut(name).map(|(_, slot)| slot) {
            Some(Slot::Loading(waiters)) if waiters.len() >= WAITERS_MAX => {
                return Err(BrokerError::NotReady(format!("topic {name} is loading")));
            }
            Some(Slot::Loading(waiters)) => {
                waiters.push(waiter);
                return Ok((answer, false));
            }
            Some(Slot::Serving(topic)) => {
                let _ = waiter.send(Ok(topic.clone()));
                return Ok((answer, false));
            }
            None if served >= TOPICS_MAX => {
                let rule = format!("{TOPICS_MAX} topics are served here");
                return Err(BrokerError::NotReady(rule));
            }
            None if loading >= LOADS_WAITING_MAX => {
                reached!("broker: too many topics wait to be loaded");
                return Err(BrokerError::NotReady("too many topics are loading".to_owned()));
            }
            None => {}
        }
        let lease = (bundle.clone(), epoch);
        state.slots.insert(name.clone(), (lease.clone(), Slot::Loading(vec![waiter])));
        state.loading += 1;
        drop(state);
        // A task of its own, so that a caller who goes away does not take the load with it.
        let (owned, name) = (Arc::clone(self), name.clone());
        self.environment.runtime.tasks.spawn("topic load", async move {
            // Held until the topic is in its slot: `stop` waits for all of them.
            let permit = owned.loads.acquire().await;
            let loaded = match &permit {
                Ok(_) if owned.lock().is_current(&lease) => {
                    owned.load_now(&name, &lease, create).await
                }
                Ok(_) => Err(BrokerError::NotServed(name.clone())),
                Err(_) => Err(BrokerError::NotReady("the broker is stopping".to_owned())),
            };
            owned.loaded_now(&name, &lease, loaded).await;
        });
        Ok((answer, true))
    }

    async fn load_now(self: &Arc<Self>, name: &TopicName, lease: &Lease, create: bool) -> Loaded {
        let (bundle, epoch) = lease;
        // Another broker may own the bundle, of which no watch has told here yet. Loading would fence it.
        if !is_owned_still(&self.environment.metadata, bundle, *epoch).await? {
            reached!("broker: a topic to be loaded was another broker's");
            return Err(BrokerError::NotServed(name.clone()));
        }
        self.start_number().await?;
        let (_, names) = self.start.get().ok_or_else(|| {
            BrokerError::NotReady("this start of the broker has no number yet".to_owned())
        })?;
        let owned = Arc::downgrade(self);
        let loaded = load(&self.environment, name, create, Arc::clone(names), move |ended| {
            if let Some(owned) = owned.upgrade() {
                owned.forget(ended);
            }
        })
        .await;
        loaded.map_err(|error: LoadError| match error {
            ManagedLedgerError::NotFound => BrokerError::TopicNotFound(name.clone()),
            error => error.into(),
        })
    }

    /// The number of this start of the broker, of its own in the cluster.
    pub(super) async fn start_number(&self) -> Result<u64, BrokerError> {
        let taking = || async {
            let start = self.environment.metadata.next_number(STARTS_KEY).await?;
            let names = ProducerNames::new(&self.environment.config.cluster, start);
            Ok::<_, BrokerError>((start, Arc::new(names)))
        };
        self.start.get_or_try_init(taking).await.map(|(start, _)| *start)
    }

    /// Puts a loaded topic into its slot and answers who waited.
    async fn loaded_now(&self, name: &TopicName, lease: &Lease, loaded: Loaded) {
        let unwanted = {
            let state = self.lock();
            let is_current = state.is_current(lease) || mutant!("B-late-load");
            match &loaded {
                Ok(topic) if state.stopping || !is_current => Some(topic.clone()),
                Ok(_) | Err(_) => None,
            }
        };
        let loaded = match unwanted {
            // Its slot stays taken meanwhile: whoever closes the bundle waits for it.
            Some(topic) => {
                reached!("broker: topic loaded after its bundle was shut");
                topic.unload().await;
                Err(BrokerError::NotServed(name.clone()))
            }
            None => loaded,
        };
        let waiters = {
            let mut state = self.lock();
            state.loading = state.loading.saturating_sub(1);
            let slot = state.slots.remove(name);
            // One that ended before it got here is not put in: nobody would take it out.
            if let Ok(topic) = &loaded
                && !topic.shared().is_closing()
            {
                let serving = Slot::Serving(topic.clone());
                state.slots.insert(name.clone(), (lease.clone(), serving));
            }
            match slot {
                Some((_, Slot::Loading(waiters))) => waiters,
                Some((_, Slot::Serving(_))) | None => Vec::new(),
            }
        };
        for waiter in waiters {
            let _ = waiter.send(loaded.clone());
        }
    }

    /// Takes an ended topic out of its slot, if the slot is not a later load's already.
    fn forget(&self, ended: &Topic) {
        let mut state = self.lock();
        if let Some((_, Slot::Serving(topic))) = state.slots.get(ended.name())
            && Arc::ptr_eq(topic.shared(), ended.shared())
        {
            state.slots.remove(ended.name());
        }
    }

    /// Loads nothing any more, waits for loads under way, closes every topic in name order.
    pub(super) async fn stop(&self) {
        self.lock().stopping = true;
        // All permits: no load is under way. An error means that a stop was here before.
        if let Ok(permits) = self.loads.acquire_many(LOADS_MAX).await {
            permits.forget();
            self.loads.close();
        }
        for group in self.loaded().chunks(CLOSES_MAX) {
            join_all(group.iter().map(Topic::unload)).await;
        }
    }
}
