//! Small TCP proxies: one in front of each port by which a node is reached by others. A link from a party to a
//! node can be cut in either direction (bytes are held, connections stay open, as when packets are lost), made
//! slow, or its connections broken.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::Notify;

use super::fault_plan::Party;
use crate::runtime::real::{connection_owner, own_process};
use crate::runtime::{Accepted, Listener, Runtime};

/// Bytes carried at once.
const CHUNK_BYTES: usize = 32 * 1024;
/// After a failed accept.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Longest wait for the node behind the proxy.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);

/// How a link is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LinkState {
    /// What is sent to the node is held.
    pub(super) holds_forth: bool,
    /// What the node answers is held.
    pub(super) holds_back: bool,
    /// Each chunk is late by this.
    pub(super) delay: Duration,
    /// Connections of an earlier generation are broken.
    generation: u64,
}

/// All links, and who has which process id.
pub(super) struct Links {
    links: Mutex<BTreeMap<(Party, usize), LinkState>>,
    processes: Mutex<BTreeMap<u32, usize>>,
    changed: Notify,
    nodes: usize,
}

impl Links {
    /// All links of a cluster of this size carry.
    pub(super) fn new(nodes: usize) -> Arc<Self> {
        Arc::new(Self {
            links: Mutex::default(),
            processes: Mutex::default(),
            changed: Notify::new(),
            nodes,
        })
    }

    fn locked(&self) -> MutexGuard<'_, BTreeMap<(Party, usize), LinkState>> {
        self.links.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn locked_processes(&self) -> MutexGuard<'_, BTreeMap<u32, usize>> {
        self.processes.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// A node has this process id from now on.
    pub(super) fn runs_as(&self, node: usize, process: u32) {
        let mut processes = self.locked_processes();
        processes.retain(|_, other| *other != node);
        processes.insert(process, node);
    }

    /// Changes a link.
    pub(super) fn change(&self, from: Party, to: usize, change: impl FnOnce(&mut LinkState)) {
        change(self.locked().entry((from, to)).or_default());
        self.changed.notify_waiters();
    }

    /// Everybody, as the one end of links.
    pub(super) fn parties(&self) -> impl Iterator<Item = Party> + use<> {
        (1..=self.nodes).map(Party::Node).chain([Party::Clients])
    }

    /// Breaks the connections to a node.
    pub(super) fn reset(&self, to: usize) {
        for from in self.parties() {
            self.change(from, to, |link| link.generation += 1);
        }
    }

    /// All links carry again.
    pub(super) fn heal_all(&self) {
        for link in self.locked().values_mut() {
            *link = LinkState { generation: link.generation, ..LinkState::default() };
        }
        self.changed.notify_waiters();
    }

    fn state(&self, from: Party, to: usize) -> LinkState {
        self.locked().get(&(from, to)).copied().unwrap_or_default()
    }

    /// Who opened a connection that came from `peer` to our `port`.
    fn party_of(&self, peer: &str, port: u16) -> Party {
        let from = peer.rsplit(':').next().and_then(|text| text.parse().ok()).unwrap_or(0);
        let processes: Vec<u32> =
            self.locked_processes().keys().copied().filter(|id| *id != own_process()).collect();
        let owner = connection_owner(from, port, &processes);
        let node = owner.and_then(|process| self.locked_processes().get(&process).copied());
        node.map_or(Party::Clients, Party::Node)
    }
}

/// Starts a proxy in front of a node's port; answers its own address. It runs as long as the process.
pub(super) async fn start_proxy(
    runtime: &Runtime,
    links: &Arc<Links>,
    host: &str,
    node: usize,
    target: String,
) -> std::io::Result<String> {
    let listener = runtime.network.listen(&format!("{host}:0")).await?;
    let address = listener.local_address();
    let port = address.rsplit(':').next().and_then(|text| text.parse().ok()).unwrap_or(0);
    let place = Place { runtime: runtime.clone(), links: Arc::clone(links), node, port, target };
    drop(runtime.tasks.spawn("chaos proxy", accept(place, listener)));
    Ok(address)
}

#[derive(Clone)]
struct Place {
    runtime: Runtime,
    links: Arc<Links>,
    node: usize,
    port: u16,
    target: String,
}

async fn accept(place: Place, listener: Listener) {
    loop {
        match listener.accept().await {
            Ok(accepted) => {
                let carrying = carry(place.clone(), accepted);
                drop(place.runtime.tasks.spawn("chaos connection", carrying));
            }
            Err(error) => {
                tracing::warn!(%error, "a proxy does not accept");
                place.runtime.clock.sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn carry(place: Place, accepted: Accepted) {
    let from = place.links.party_of(&accepted.peer, place.port);
    let generation = place.links.state(from, place.node).generation;
    let connecting = place.runtime.network.connect(&place.target);
    let Ok(Ok(there)) = place.runtime.clock.timeout(CONNECT_LIMIT, connecting).await else {
        return;
    };
    let (here_read, here_write) = tokio::io::split(accepted.stream);
    let (there_read, there_write) = tokio::io::split(there);
    let forth = pump(&place, from, here_read, there_write, |link| link.holds_forth);
    let back = pump(&place, from, there_read, here_write, |link| link.holds_back);
    tokio::select! {
        biased;
        () = broken(&place, from, generation) => {}
        () = async { futures_util::join!(forth, back); } => {}
    }
}

/// Completes when connections of this generation are broken.
async fn broken(place: &Place, from: Party, generation: u64) {
    loop {
        let changed = place.links.changed.notified();
        tokio::pin!(changed);
        changed.as_mut().enable();
        if place.links.state(from, place.node).generation != generation {
            return;
        }
        changed.await;
    }
}

/// Carries one direction until its end; what was read while the link is held is kept and sent later.
async fn pump(
    place: &Place,
    from: Party,
    mut source: impl AsyncRead + Unpin,
    mut sink: impl AsyncWrite + Unpin,
    holds: impl Fn(&LinkState) -> bool,
) {
    let mut buffer = vec![0; CHUNK_BYTES];
    loop {
        let read = source.read(&mut buffer).await.unwrap_or(0);
        loop {
            let changed = place.links.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let state = place.links.state(from, place.node);
            if !holds(&state) {
                if !state.delay.is_zero() {
                    place.runtime.clock.sleep(state.delay).await;
                }
                break;
            }
            changed.await;
        }
        if read == 0 {
            // The other direction may have something to say still.
            let _ = sink.shutdown().await;
            return;
        }
        if sink.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
}
