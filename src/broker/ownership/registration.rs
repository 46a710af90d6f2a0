//! Keeping this broker in the list of those that can be reached, with its load. The record is tied to a
//! session. Its end only lets other brokers try to take bundles; what this one still serves is safe by
//! compare-and-set and fencing, and it registers again as soon as it can.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use super::load::LoadFigures;
use super::record::{BROKERS_PREFIX, BrokerInstance, BrokerRecord};
use crate::metadata::{Expect, Metadata, MetadataError, SessionId};
use crate::reached;
use crate::runtime::{Mailbox, MailboxSender, Runtime, Shutdown, mailbox};

/// Brokers of a cluster looked at; more are not seen.
pub(in crate::broker) const BROKERS_MAX: usize = 1000;
/// Longest wait of a leaving broker for metadata to hear of it.
const LEAVE_LIMIT: Duration = Duration::from_secs(1);

/// Where a broker is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokerAddresses {
    /// `pulsar://host:port`.
    pub pulsar: String,
    /// `http://host:port`.
    pub http: String,
    /// `host:port` of the gRPC port.
    pub grpc: String,
}

/// Tells what the broker carries now.
pub(super) type Measure = Arc<dyn Fn() -> LoadFigures + Send + Sync>;

enum Input {
    Leave(oneshot::Sender<()>),
    End(oneshot::Sender<()>),
}

/// A running registration.
pub(super) struct Registration {
    runtime: Runtime,
    inputs: MailboxSender<Input>,
    registered: Shutdown,
}

struct Registrar {
    runtime: Runtime,
    metadata: Metadata,
    instance: BrokerInstance,
    addresses: BrokerAddresses,
    time_to_live: Duration,
    measure: Measure,
    leaving: bool,
    session: Option<SessionId>,
    published: Option<BrokerRecord>,
    registered: Shutdown,
    /// Registrations of former starts at this address were taken off.
    cleared: bool,
}

impl Registration {
    /// Registers and keeps it so. The registration vanishes `time_to_live` after the broker was last heard
    /// of; it is kept alive, and the load told, three times in this.
    pub(super) fn start(
        runtime: &Runtime,
        metadata: Metadata,
        instance: BrokerInstance,
        addresses: BrokerAddresses,
        time_to_live: Duration,
        measure: Measure,
    ) -> Self {
        let registered = Shutdown::new();
        let (inputs, receiver) = mailbox(4);
        let registrar = Registrar {
            runtime: runtime.clone(),
            metadata,
            instance,
            addresses,
            time_to_live,
            measure,
            leaving: false,
            session: None,
            published: None,
            registered: registered.clone(),
            cleared: false,
        };
        runtime.tasks.spawn("broker registration", registrar.run(receiver));
        Self { runtime: runtime.clone(), inputs, registered }
    }

    /// Completes once it was on the list for the first time.
    pub(super) async fn registered(&self) {
        self.registered.signal().triggered().await;
    }

    /// Tells the others that it takes no more bundles; waits a little for that to be heard.
    pub(super) async fn leave(&self) {
        self.ask(Input::Leave).await;
    }

    /// Takes it off the list.
    pub(super) async fn end(&self) {
        self.ask(Input::End).await;
    }

    async fn ask(&self, input: impl FnOnce(oneshot::Sender<()>) -> Input) {
        let (reply, answer) = oneshot::channel();
        if self.inputs.send(input(reply)).await.is_ok() {
            // Not heard in time: the session expires by itself.
            let _ = self.runtime.clock.timeout(LEAVE_LIMIT, answer).await;
        }
    }
}

impl Registrar {
    async fn run(mut self, mut mailbox: Mailbox<Input>) {
        let beat = self.time_to_live / 3;
        let mut waiting = Vec::new();
        loop {
            let pause = match self.beat().await {
                Ok(()) => {
                    for reply in waiting.drain(..) {
                        let _: Result<(), ()> = oneshot::Sender::send(reply, ());
                    }
                    beat
                }
                Err(MetadataError::SessionExpired) => {
                    reached!("ownership: the broker's session had expired");
                    self.session = None;
                    self.published = None;
                    Duration::ZERO
                }
                Err(error) => {
                    tracing::info!(%error, "cannot register the broker now");
                    beat.min(Duration::from_millis(500))
                }
            };
            let inputs = tokio::select! {
                biased;
                inputs = mailbox.take_all() => inputs,
                () = self.runtime.clock.sleep(pause) => continue,
            };
            // Nobody is left who could end it: the node is going.
            let Some(inputs) = inputs else { return };
            for input in inputs {
                match input {
                    Input::Leave(reply) => {
                        self.leaving = true;
                        waiting.push(reply);
                    }
                    Input::End(reply) => {
                        if let Some(session) = self.session.take() {
                            // If it is not heard, the session expires.
                            let _ = self.metadata.close_session(session).await;
                        }
                        let _ = reply.send(());
                        return;
                    }
                }
            }
        }
    }

    async fn beat(&mut self) -> Result<(), MetadataError> {
        let session = match self.session {
            Some(session) => {
                self.metadata.keep_alive(session).await?;
                session
            }
            None => {
                let session = self.metadata.open_session(self.time_to_live).await?;
                self.session = Some(session);
                session
            }
        };
        if !self.cleared {
            self.clear_former_starts().await?;
            self.cleared = true;
        }
        let record = BrokerRecord::new(&self.addresses, self.leaving, (self.measure)());
        let key = self.instance.key();
        let is_news = self.published.as_ref().is_none_or(|before| record.is_news_after(before));
        if !is_news && self.metadata.get(&key).await?.is_some() {
            return Ok(());
        }
        self.published = None;
        self.metadata.put(&key, record.encode(), Expect::Any, Some(session)).await?;
        self.published = Some(record);
        self.registered.trigger();
        Ok(())
    }

    /// Who can listen at this address is the only one there: a former start is gone even if its session
    /// has not run out, and its bundles need not wait for that. If this is wrong, because two brokers tell
    /// the same address, the other registers again at its next beat and bundles have moved once.
    async fn clear_former_starts(&self) -> Result<(), MetadataError> {
        for (instance, record, version) in brokers(&self.metadata).await? {
            if record.pulsar == self.addresses.pulsar && instance < self.instance {
                reached!("ownership: a former start was still registered");
                match self.metadata.delete(&instance.key(), Expect::Version(version)).await {
                    Ok(()) | Err(MetadataError::VersionMismatch { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }
}

/// Every broker that is registered, by instance; with the version of its record.
pub(super) async fn brokers(
    metadata: &Metadata,
) -> Result<Vec<(BrokerInstance, BrokerRecord, crate::metadata::Revision)>, MetadataError> {
    let pairs = metadata.list(BROKERS_PREFIX, None, BROKERS_MAX).await?;
    let known = pairs.into_iter().filter_map(|(key, found)| {
        let instance = BrokerInstance::of_key(&key)?;
        // A record of a later version is of a broker this one cannot send anybody to.
        let record = BrokerRecord::decode(&found.value).ok()?;
        Some((instance, record, found.version))
    });
    Ok(known.collect())
}
