//! Ownership as the broker uses it: join, look a topic up, take and give up bundles.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use tokio::sync::oneshot;

use super::bundle::{BUNDLES_OF_NAMESPACE_MAX, Bundle};
use super::driver::{self, Driver, Input};
use super::load::{LoadFigures, choose};
use super::load_meter::LoadMeter;
use super::machine::Answer;
use super::record::{BUNDLES_PREFIX, BrokerInstance, BrokerRecord, BundlesRecord, OwnershipRecord};
use super::registration::{self, BrokerAddresses, Registration};
use super::shedding::{Shedder, SheddingLimits};
use crate::broker::served_topics::ServedTopics;
use crate::broker::service::BrokerError;
use crate::domain::{Instant, NamespaceName, TopicName};
use crate::metadata::{Expect, Metadata, MetadataError, Pages};
use crate::runtime::{MailboxSender, Runtime, Shutdown, mailbox};
use crate::{mutant, reached};

/// Requests waiting for the ownership task; callers wait beyond.
const MAILBOX_MAX: usize = 4096;
/// Namespaces whose number of bundles is kept in memory; of more it is read each time.
const NAMESPACES_MAX: usize = 100_000;
/// Times a lookup starts over because the owner changed meanwhile.
const LOOKS_MAX: u32 = 4;
/// Longest time a stopping broker takes to give its bundles up; of the rest its session's end tells.
const HAND_OVER_LIMIT: Duration = Duration::from_secs(60);
/// A registered owner is looked for at its address at most this often.
const PROBE_REST: Duration = Duration::from_millis(300);
/// … and for this long. Silence says nothing: only a refusal does.
const PROBE_LIMIT: Duration = Duration::from_millis(300);
/// Pause between two tries to get a number for this start.
const JOIN_PAUSE: Duration = Duration::from_millis(500);

/// Settings of ownership.
#[derive(Clone, Debug)]
pub struct OwnershipConfig {
    /// Bundles of a namespace that is used for the first time, 1 to 128. Fixed from then on.
    pub bundles: u32,
    /// Others may try to take this broker's bundles when metadata has not heard of it for this long.
    pub session_time_to_live: Duration,
    /// How often loads are compared. Zero: never.
    pub shedding_interval: Duration,
    /// When to give a bundle up.
    pub shedding: SheddingLimits,
}

impl Default for OwnershipConfig {
    fn default() -> Self {
        Self {
            bundles: 4,
            session_time_to_live: Duration::from_secs(5),
            shedding_interval: Duration::from_secs(30),
            shedding: SheddingLimits::default(),
        }
    }
}

/// Where a topic is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Located {
    /// Here.
    Here,
    /// By this broker, as metadata has it.
    At(BrokerAddresses),
    /// By nobody yet: this broker should take it, and is to be asked with the authoritative flag.
    Ask(BrokerAddresses),
}

struct Joined {
    instance: BrokerInstance,
    inputs: MailboxSender<Input>,
    registration: Registration,
}

/// See the module.
pub(in crate::broker) struct Ownership {
    runtime: Runtime,
    metadata: Metadata,
    config: OwnershipConfig,
    topics: Arc<ServedTopics>,
    counts: Mutex<BTreeMap<NamespaceName, u32>>,
    joined: OnceLock<Joined>,
    meter: Arc<Mutex<LoadMeter>>,
    stop: Shutdown,
    /// When owners were last looked for at their addresses.
    probes: Mutex<BTreeMap<BrokerInstance, Instant>>,
    /// Only for the planted bug of that name.
    stale: Mutex<BTreeMap<TopicName, Located>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Ownership {
    pub(in crate::broker) fn new(
        runtime: Runtime,
        metadata: Metadata,
        config: OwnershipConfig,
        topics: Arc<ServedTopics>,
    ) -> Arc<Self> {
        Arc::new(Self {
            runtime,
            metadata,
            config,
            topics,
            counts: Mutex::default(),
            joined: OnceLock::new(),
            meter: Arc::default(),
            stop: Shutdown::new(),
            probes: Mutex::default(),
            stale: Mutex::default(),
        })
    }

    /// Registers this broker. Waits for metadata as long as it takes.
    pub(in crate::broker) async fn join(
        self: &Arc<Self>,
        addresses: BrokerAddresses,
        connections: Arc<dyn Fn() -> u64 + Send + Sync>,
    ) {
        let instance = loop {
            match self.topics.start_number().await {
                Ok(number) => break BrokerInstance(number),
                Err(error) => tracing::info!(%error, "cannot join yet"),
            }
            self.runtime.clock.sleep(JOIN_PAUSE).await;
        };
        let (runtime, metadata) = (&self.runtime, &self.metadata);
        let (meter, topics, clock) =
            (Arc::clone(&self.meter), Arc::clone(&self.topics), runtime.clock.clone());
        let measure = Arc::new(move || {
            let mut meter = lock(&meter);
            meter.look(clock.now(), topics.traffic());
            LoadFigures { connections: connections(), ..meter.sum() }
        });
        let registration = Registration::start(
            runtime,
            Arc::clone(metadata),
            instance,
            addresses,
            self.config.session_time_to_live,
            measure,
        );
        registration.registered().await;
        let (inputs, receiver) = mailbox(MAILBOX_MAX);
        let driver =
            Driver::new(runtime.clone(), Arc::clone(metadata), Arc::clone(&self.topics), instance);
        runtime.tasks.spawn("ownership", driver.run(receiver, self.stop.signal()));
        let watching = driver::watch(runtime.clone(), Arc::clone(metadata), inputs.clone());
        let stop = self.stop.signal();
        runtime.tasks.spawn("ownership watch", async move {
            tokio::select! {
                biased;
                () = stop.triggered() => {}
                () = watching => {}
            }
        });
        let joined = Joined { instance, inputs, registration };
        if self.joined.set(joined).is_err() {
            tracing::warn!("the broker joined twice");
        }
        if !self.config.shedding_interval.is_zero() {
            runtime.tasks.spawn("shedding", Arc::clone(self).shed());
        }
    }

    fn joined(&self) -> Result<&Joined, BrokerError> {
        let not_yet = || BrokerError::NotReady("the broker has not joined the cluster".to_owned());
        self.joined.get().ok_or_else(not_yet)
    }

    /// How many bundles a namespace has; decided now if it is used for the first time.
    pub(in crate::broker) async fn bundle_count(
        &self,
        namespace: &NamespaceName,
    ) -> Result<u32, BrokerError> {
        if let Some(count) = lock(&self.counts).get(namespace) {
            return Ok(*count);
        }
        let key = BundlesRecord::key(namespace);
        let bundles = self.config.bundles.clamp(1, BUNDLES_OF_NAMESPACE_MAX);
        let count = match self.metadata.get(&key).await? {
            Some(found) => {
                BundlesRecord::decode(&found.value).map_err(BrokerError::Metadata)?.bundles
            }
            None => {
                let record = BundlesRecord::new(bundles);
                match self.metadata.put(&key, record.encode(), Expect::Absent, None).await {
                    Ok(_) => bundles,
                    // Somebody was faster, or nobody knows: what is there counts.
                    Err(
                        MetadataError::VersionMismatch { .. } | MetadataError::OutcomeUnknown(_),
                    ) => {
                        let moved =
                            || BrokerError::NotReady("the namespace is being made".to_owned());
                        let found = self.metadata.get(&key).await?.ok_or_else(moved)?;
                        let record = BundlesRecord::decode(&found.value);
                        record.map_err(BrokerError::Metadata)?.bundles
                    }
                    Err(error) => return Err(error.into()),
                }
            }
        };
        let mut counts = lock(&self.counts);
        if counts.len() < NAMESPACES_MAX {
            counts.insert(namespace.clone(), count);
        }
        Ok(count)
    }

    /// The bundle a topic is in.
    pub(in crate::broker) async fn bundle_of(
        &self,
        name: &TopicName,
    ) -> Result<Bundle, BrokerError> {
        Ok(Bundle::of(name, self.bundle_count(name.namespace()).await?))
    }

    /// Where a topic is served. If nobody serves it: with `authoritative`, or when this broker is the one
    /// to take it, it is taken.
    pub(in crate::broker) async fn locate(
        &self,
        name: &TopicName,
        authoritative: bool,
    ) -> Result<Located, BrokerError> {
        if mutant!("B-stale-lookup") {
            if let Some(before) = lock(&self.stale).get(name) {
                return Ok(before.clone());
            }
            let located = self.locate_now(name, authoritative).await?;
            lock(&self.stale).insert(name.clone(), located.clone());
            return Ok(located);
        }
        self.locate_now(name, authoritative).await
    }

    async fn locate_now(
        &self,
        name: &TopicName,
        authoritative: bool,
    ) -> Result<Located, BrokerError> {
        let bundle = self.bundle_of(name).await?;
        if self.topics.is_served(&bundle) {
            return Ok(Located::Here);
        }
        let joined = self.joined()?;
        for _ in 0..LOOKS_MAX {
            let owner = self.live_owner(&bundle).await?;
            let is_own = owner.as_ref().is_some_and(|(owner, _)| *owner == joined.instance);
            if let Some((_, addresses)) = owner.filter(|_| !is_own) {
                return Ok(Located::At(addresses));
            }
            // A record that names this broker although it does not serve the bundle (a claim or a release whose
            // fate was unknown) sends everybody here: then nobody else may be chosen.
            if !authoritative && !is_own {
                let candidate = self.candidate(&bundle).await?;
                if candidate.0 != joined.instance {
                    return Ok(Located::Ask(candidate.1));
                }
            }
            match self.ask(|reply| Input::Acquire(bundle.clone(), reply)).await? {
                Answer::Here => return Ok(Located::Here),
                Answer::NotNow(reason) => return Err(BrokerError::NotReady(reason)),
                Answer::Elsewhere(_) | Answer::Done => {
                    reached!("ownership: the owner changed during a lookup");
                }
            }
        }
        Err(BrokerError::NotReady("Failed to acquire ownership: it moves about".to_owned()))
    }

    /// The owner by the record, if it is registered.
    async fn live_owner(
        &self,
        bundle: &Bundle,
    ) -> Result<Option<(BrokerInstance, BrokerAddresses)>, BrokerError> {
        let Some(found) = self.metadata.get(&OwnershipRecord::key(bundle)).await? else {
            return Ok(None);
        };
        let record = OwnershipRecord::decode(&found.value).map_err(BrokerError::Metadata)?;
        let Some(owner) = record.owner else { return Ok(None) };
        let Some(found) = self.metadata.get(&owner.key()).await? else { return Ok(None) };
        let broker = BrokerRecord::decode(&found.value).map_err(BrokerError::Metadata)?;
        if self.is_refused(owner, &broker).await {
            reached!("ownership: nobody listens at the owner's address");
            let gone = Expect::Version(found.version);
            match self.metadata.delete(&owner.key(), gone).await {
                Ok(()) => return Ok(None),
                // It has just told something: it is there.
                Err(MetadataError::VersionMismatch { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Some((owner, addresses(&broker))))
    }

    /// Whether the address of another broker refuses connections: its process is gone, and its bundles need
    /// not wait for its session to run out. If this is wrong (somebody between the two refuses for it), the
    /// broker registers again at its next beat and a bundle has moved.
    async fn is_refused(&self, owner: BrokerInstance, broker: &BrokerRecord) -> bool {
        let now = self.runtime.clock.now();
        {
            let mut probes = lock(&self.probes);
            let is_recent = probes.get(&owner).is_some_and(|last| now.since(*last) < PROBE_REST);
            if is_recent || self.joined.get().is_none_or(|joined| joined.instance == owner) {
                return false;
            }
            if probes.len() >= registration::BROKERS_MAX {
                probes.clear();
            }
            probes.insert(owner, now);
        }
        let address = broker.pulsar.trim_start_matches("pulsar://");
        let connecting = self.runtime.network.connect(address);
        match self.runtime.clock.timeout(PROBE_LIMIT, connecting).await {
            Ok(Err(error)) => error.kind() == std::io::ErrorKind::ConnectionRefused,
            Ok(Ok(_)) | Err(_) => false,
        }
    }

    async fn candidate(
        &self,
        bundle: &Bundle,
    ) -> Result<(BrokerInstance, BrokerAddresses), BrokerError> {
        let brokers = self.brokers().await?;
        let nobody = || BrokerError::NotReady("no broker can take the topic now".to_owned());
        let chosen = choose(&brokers, bundle).ok_or_else(nobody)?;
        let record = brokers.iter().find(|(instance, _)| *instance == chosen);
        record.map(|(instance, record)| (*instance, addresses(record))).ok_or_else(nobody)
    }

    /// Every registered broker.
    pub(in crate::broker) async fn brokers(
        &self,
    ) -> Result<Vec<(BrokerInstance, BrokerRecord)>, BrokerError> {
        let brokers = registration::brokers(&self.metadata).await?;
        Ok(brokers.into_iter().map(|(instance, record, _)| (instance, record)).collect())
    }

    /// Every namespace that was ever used.
    pub(in crate::broker) async fn namespaces(&self) -> Result<Vec<NamespaceName>, BrokerError> {
        let mut names = Vec::new();
        let mut pages = Pages::new(&self.metadata, BUNDLES_PREFIX);
        while let Some(page) = pages.next().await? {
            let keys = page.iter().filter_map(|(key, _)| key.strip_prefix(BUNDLES_PREFIX));
            names.extend(keys.filter_map(|key| NamespaceName::parse(key).ok()));
        }
        Ok(names)
    }

    /// Gives a bundle up, if it is held: its topics are closed, then nobody owns it.
    pub(in crate::broker) async fn release(&self, bundle: &Bundle) -> Result<(), BrokerError> {
        match self.ask(|reply| Input::Release(bundle.clone(), reply)).await? {
            Answer::NotNow(reason) => Err(BrokerError::NotReady(reason)),
            Answer::Here | Answer::Elsewhere(_) | Answer::Done => Ok(()),
        }
    }

    /// The registered owner of a bundle that is not this broker.
    pub(in crate::broker) async fn other_owner(
        &self,
        bundle: &Bundle,
    ) -> Result<Option<BrokerAddresses>, BrokerError> {
        let own = self.joined()?.instance;
        let owner = self.live_owner(bundle).await?;
        Ok(owner.filter(|(instance, _)| *instance != own).map(|(_, addresses)| addresses))
    }

    async fn ask(
        &self,
        input: impl FnOnce(oneshot::Sender<Answer>) -> Input,
    ) -> Result<Answer, BrokerError> {
        let gone = || BrokerError::NotReady("the broker is stopping".to_owned());
        let (reply, answer) = oneshot::channel();
        self.joined()?.inputs.send(input(reply)).await.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())
    }

    /// Hands over: tells that no bundle is taken any more, then closes and releases each.
    pub(in crate::broker) async fn hand_over(&self) {
        let Ok(joined) = self.joined() else { return };
        joined.registration.leave().await;
        let stopping = self.ask(Input::Stop);
        if self.runtime.clock.timeout(HAND_OVER_LIMIT, stopping).await.is_err() {
            reached!("ownership: a hand-over took too long");
            tracing::warn!("not every bundle was handed over in {HAND_OVER_LIMIT:?}");
        }
    }

    /// Takes this broker off the list and ends its tasks.
    pub(in crate::broker) async fn end(&self) {
        if let Ok(joined) = self.joined() {
            joined.registration.end().await;
        }
        self.stop.trigger();
    }

    async fn shed(self: Arc<Self>) {
        let mut shedder = Shedder::new(self.config.shedding);
        loop {
            let stop = self.stop.signal();
            tokio::select! {
                biased;
                () = stop.triggered() => return,
                () = self.runtime.clock.sleep(self.config.shedding_interval) => {}
            }
            let Ok(joined) = self.joined() else { return };
            let Ok(brokers) = self.brokers().await else { continue };
            let (own, others): (Vec<_>, Vec<_>) =
                brokers.into_iter().partition(|(instance, _)| *instance == joined.instance);
            let Some((_, own)) = own.first() else { continue };
            let able: Vec<LoadFigures> = others
                .iter()
                .filter(|(_, record)| !record.leaving)
                .map(|(_, record)| record.load)
                .collect();
            let bundles = lock(&self.meter).bundles();
            let Some(bundle) = shedder.round(own.load, &able, &bundles) else { continue };
            reached!("ownership: a bundle was given up for balance");
            tracing::info!(%bundle, "bundle given up: others carry less");
            if let Err(error) = self.release(&bundle).await {
                tracing::info!(%bundle, %error, "bundle not given up");
            }
        }
    }
}

fn addresses(record: &BrokerRecord) -> BrokerAddresses {
    BrokerAddresses {
        pulsar: record.pulsar.clone(),
        http: record.http.clone(),
        grpc: record.grpc.clone(),
    }
}
