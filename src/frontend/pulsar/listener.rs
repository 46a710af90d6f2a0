//! Accepts connections, up to a limit, until it is stopped.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::config::PulsarConfig;
use super::connection::Connection;
use super::counters::PulsarCounters;
use crate::broker::Broker;
use crate::reached;
use crate::runtime::{Accepted, Listener, Runtime, Shutdown, ShutdownSignal, Task, is_any_host};

/// How long a stop waits for connections to write what they hold.
const STOP_LIMIT: Duration = Duration::from_secs(5);
/// Rest after a failed accept, so that a lack of file descriptors does not become a busy loop.
const ACCEPT_REST: Duration = Duration::from_millis(50);

/// A connection being served: how to stop it, and its end.
type Served = (Shutdown, Task<()>);

/// A running Pulsar front end. Dropping it does not stop it.
pub struct PulsarFrontend {
    runtime: Runtime,
    local_address: String,
    counters: Arc<PulsarCounters>,
    stop: Shutdown,
    accepting: Task<()>,
    served: Arc<Mutex<BTreeMap<u64, Served>>>,
}

struct Acceptor {
    runtime: Runtime,
    broker: Broker,
    config: Arc<PulsarConfig>,
    /// What every client is told to connect to; each its own address here if there is none.
    advertised: Option<Arc<str>>,
    counters: Arc<PulsarCounters>,
    served: Arc<Mutex<BTreeMap<u64, Served>>>,
    next_number: u64,
}

impl PulsarFrontend {
    /// Listens and serves.
    pub async fn start(runtime: Runtime, broker: Broker, config: PulsarConfig) -> io::Result<Self> {
        let listener = runtime.network.listen(&config.listen).await?;
        let local_address = listener.local_address();
        let advertised: Option<Arc<str>> = match config.advertised.as_deref() {
            Some(url) if url.contains("://") => Some(url.into()),
            Some(address) => Some(format!("pulsar://{address}").into()),
            None if is_any_host(&local_address) => None,
            None => Some(format!("pulsar://{local_address}").into()),
        };
        let stop = Shutdown::new();
        let counters = Arc::new(PulsarCounters::default());
        let served = Arc::new(Mutex::new(BTreeMap::new()));
        let acceptor = Acceptor {
            runtime: runtime.clone(),
            broker,
            config: Arc::new(config),
            advertised,
            counters: Arc::clone(&counters),
            served: Arc::clone(&served),
            next_number: 0,
        };
        let accepting =
            runtime.tasks.spawn("pulsar-listener", acceptor.accept(listener, stop.signal()));
        Ok(Self { runtime, local_address, counters, stop, accepting, served })
    }

    /// The address bound, `host:port`.
    pub fn local_address(&self) -> &str {
        &self.local_address
    }

    /// Counts for metrics.
    pub fn counters(&self) -> Arc<PulsarCounters> {
        Arc::clone(&self.counters)
    }

    /// Stops listening, then closes every connection. Stop the broker first: then clients have been told to
    /// look their topics up again. Idempotent only in effect: call it once.
    pub async fn stop(self) {
        self.stop.trigger();
        // Cancelled means stopped too.
        let _ = self.accepting.await;
        let served = {
            let mut served = self.served.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *served)
        };
        for (stop, _) in served.values() {
            stop.trigger();
        }
        let deadline = self.runtime.clock.now() + STOP_LIMIT;
        for (_, (_, task)) in served {
            let left = deadline.since(self.runtime.clock.now());
            // Over the limit the rest is left to end by itself.
            let _ = self.runtime.clock.timeout(left, task).await;
        }
    }
}

impl Acceptor {
    async fn accept(mut self, listener: Listener, stop: ShutdownSignal) {
        loop {
            let accepted = tokio::select! {
                biased;
                () = stop.triggered() => return,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok(accepted) => self.serve(accepted),
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a Pulsar connection");
                    self.runtime.clock.sleep(ACCEPT_REST).await;
                }
            }
        }
    }

    fn serve(&mut self, accepted: Accepted) {
        let Accepted { stream, peer: address, local } = accepted;
        let advertised = match &self.advertised {
            Some(advertised) => Arc::clone(advertised),
            None => format!("pulsar://{local}").into(),
        };
        if self.counters.active() >= self.config.connections_max as u64 {
            reached!("pulsar listener: too many connections");
            self.counters.refused();
            tracing::warn!(address, "Pulsar connection refused: too many");
            return;
        }
        self.counters.opened();
        self.next_number += 1;
        let number = self.next_number;
        let stop = Shutdown::new();
        let serving = Connection::serve(
            self.runtime.clone(),
            self.broker.clone(),
            Arc::clone(&self.config),
            advertised,
            stream,
            address.clone(),
            stop.clone(),
        );
        let counters = Arc::clone(&self.counters);
        let served = Arc::clone(&self.served);
        // Held over the spawn, so that the task cannot take itself out before it is in.
        let mut table = self.served.lock().unwrap_or_else(PoisonError::into_inner);
        let task = self.runtime.tasks.spawn("pulsar-connection", async move {
            let end = serving.await;
            if end.is_protocol_error() {
                tracing::warn!(address, reason = %end, "Pulsar connection closed");
            } else {
                tracing::debug!(address, reason = %end, "Pulsar connection ended");
            }
            counters.ended(end.is_protocol_error());
            served.lock().unwrap_or_else(PoisonError::into_inner).remove(&number);
        });
        table.insert(number, (stop, task));
    }
}
