//! Which topics are served here. A topic is loaded once however many ask for it, few are loaded at once,
//! and one that ended makes room for a new load. (With several brokers, who may load what is decided
//! above; the managed ledger's takeover keeps it safe whoever tries.)

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use futures_util::future::join_all;
use tokio::sync::{OnceCell, Semaphore, oneshot};

use super::managed_ledger::{ManagedLedgerEnvironment, ManagedLedgerError};
use super::service::BrokerError;
use super::topic::{LoadError, ProducerNames, Topic, load};
use crate::domain::TopicName;
use crate::reached;

/// Topics being loaded at the same time; further ones wait.
const LOADS_MAX: u32 = 32;
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

#[derive(Default)]
struct State {
    slots: BTreeMap<TopicName, Slot>,
    stopping: bool,
}

/// The topics served here.
pub(super) struct OwnedTopics {
    environment: ManagedLedgerEnvironment,
    state: Mutex<State>,
    loads: Semaphore,
    names: OnceCell<Arc<ProducerNames>>,
}

impl OwnedTopics {
    pub(super) fn new(environment: ManagedLedgerEnvironment) -> Arc<Self> {
        Arc::new(Self {
            environment,
            state: Mutex::default(),
            loads: Semaphore::new(LOADS_MAX as usize),
            names: OnceCell::new(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The topic if it is served here now; an error while it is closing.
    pub(super) fn get(&self, name: &TopicName) -> Result<Option<Topic>, BrokerError> {
        match self.lock().slots.get(name) {
            Some(Slot::Serving(topic)) if topic.shared().is_closing() => {
                Err(BrokerError::NotReady(format!("topic {name} is closing")))
            }
            Some(Slot::Serving(topic)) => Ok(Some(topic.clone())),
            Some(Slot::Loading(_)) | None => Ok(None),
        }
    }

    /// All served here, in name order.
    pub(super) fn loaded(&self) -> Vec<Topic> {
        let state = self.lock();
        let serving = state.slots.values().filter_map(|slot| match slot {
            Slot::Serving(topic) => Some(topic.clone()),
            Slot::Loading(_) => None,
        });
        serving.collect()
    }

    /// The topic, loaded if need be.
    pub(super) async fn load(
        self: &Arc<Self>,
        name: &TopicName,
        create: bool,
    ) -> Result<Topic, BrokerError> {
        loop {
            if let Some(topic) = self.get(name)? {
                return Ok(topic);
            }
            let (answer, started) = self.join_load(name, create)?;
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
        create: bool,
    ) -> Result<(oneshot::Receiver<Loaded>, bool), BrokerError> {
        let (waiter, answer) = oneshot::channel();
        let mut state = self.lock();
        if state.stopping {
            return Err(BrokerError::NotReady("the broker is stopping".to_owned()));
        }
        let served = state.slots.len();
        match state.slots.get_mut(name) {
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
            None => {}
        }
        state.slots.insert(name.clone(), Slot::Loading(vec![waiter]));
        drop(state);
        // A task of its own, so that a caller who goes away does not take the load with it.
        let (owned, name) = (Arc::clone(self), name.clone());
        self.environment.runtime.tasks.spawn("topic load", async move {
            // Held until the topic is in its slot: `stop` waits for all of them.
            let permit = owned.loads.acquire().await;
            let loaded = match &permit {
                Ok(_) => owned.load_now(&name, create).await,
                Err(_) => Err(BrokerError::NotReady("the broker is stopping".to_owned())),
            };
            owned.loaded_now(&name, loaded).await;
        });
        Ok((answer, true))
    }

    async fn load_now(self: &Arc<Self>, name: &TopicName, create: bool) -> Loaded {
        let names = self.names.get_or_try_init(|| self.start_number()).await?;
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

    async fn start_number(&self) -> Result<Arc<ProducerNames>, BrokerError> {
        let start = self.environment.metadata.next_number(STARTS_KEY).await?;
        Ok(Arc::new(ProducerNames::new(&self.environment.config.cluster, start)))
    }

    /// Puts a loaded topic into its slot and answers who waited.
    async fn loaded_now(&self, name: &TopicName, loaded: Loaded) {
        let (waiters, unwanted) = {
            let mut state = self.lock();
            let slot = state.slots.remove(name);
            let unwanted = match &loaded {
                Ok(topic) if state.stopping => Some(topic.clone()),
                // One that ended before it got here is not put in: nobody would take it out.
                Ok(topic) if !topic.shared().is_closing() => {
                    state.slots.insert(name.clone(), Slot::Serving(topic.clone()));
                    None
                }
                Ok(_) | Err(_) => None,
            };
            let waiters = match slot {
                Some(Slot::Loading(waiters)) => waiters,
                Some(Slot::Serving(_)) | None => Vec::new(),
            };
            (waiters, unwanted)
        };
        let loaded = match unwanted {
            Some(topic) => {
                reached!("broker: topic loaded while stopping");
                topic.unload().await;
                Err(BrokerError::NotReady("the broker is stopping".to_owned()))
            }
            None => loaded,
        };
        for waiter in waiters {
            let _ = waiter.send(loaded.clone());
        }
    }

    /// Takes an ended topic out of its slot, if the slot is not a later load's already.
    fn forget(&self, ended: &Topic) {
        let mut state = self.lock();
        if let Some(Slot::Serving(topic)) = state.slots.get(ended.name())
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
