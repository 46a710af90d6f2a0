//! Listening and connecting.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::Poll;

use async_trait::async_trait;
use tokio::sync::Notify;

use super::stream::SimStream;
use super::{Connection, End, EndPhase, ListenerState, Payload};
use crate::runtime::sim::lock;
use crate::runtime::sim::node::NodeState;
use crate::runtime::sim::recorder::{Happening, Note};
use crate::runtime::sim::trace::EventKind;
use crate::runtime::sim::world::Shared;
use crate::runtime::{Accepted, ByteStream, ListenerDriver, NetworkDriver};

/// Connections a listener holds before it refuses.
const BACKLOG: usize = 1024;

/// The network as one start of a node sees it.
pub(in crate::runtime::sim) struct SimNetwork {
    pub(in crate::runtime::sim) shared: Arc<Shared>,
    pub(in crate::runtime::sim) node: Arc<NodeState>,
    pub(in crate::runtime::sim) start: u64,
}

fn down() -> io::Error {
    io::Error::new(io::ErrorKind::NotConnected, "this node is down")
}

fn split(address: &str) -> io::Result<(&str, u16)> {
    address
        .rsplit_once(':')
        .and_then(|(host, port)| Some((host, port.parse().ok()?)))
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the address is not host:port"))
}

fn is_local(host: &str) -> bool {
    matches!(host, "localhost" | "127.0.0.1" | "0.0.0.0" | "[::]" | "[::1]" | "")
}

#[async_trait]
impl NetworkDriver for SimNetwork {
    async fn listen(&self, address: &str) -> io::Result<Arc<dyn ListenerDriver>> {
        if !self.node.is_start(self.start) {
            return Err(down());
        }
        let (host, port) = split(address)?;
        if host != self.node.host && !is_local(host) {
            let text = "this host is another node";
            return Err(io::Error::new(io::ErrorKind::AddrNotAvailable, text));
        }
        let mut network = lock(&self.shared.network);
        let port = if port == 0 { network.free_port(self.node.id) } else { port };
        let key = (self.node.id, port);
        if network.listeners.contains_key(&key) {
            return Err(io::Error::new(io::ErrorKind::AddrInUse, "the port is taken"));
        }
        network.next_generation += 1;
        let generation = network.next_generation;
        let arrived = Arc::new(Notify::new());
        network.listeners.insert(
            key,
            ListenerState {
                generation,
                pending: Default::default(),
                arrived: Arc::clone(&arrived),
            },
        );
        Ok(Arc::new(SimListener {
            shared: Arc::clone(&self.shared),
            node: Arc::clone(&self.node),
            start: self.start,
            port,
            generation,
            arrived,
        }))
    }

    async fn connect(&self, address: &str) -> io::Result<ByteStream> {
        if !self.node.is_start(self.start) {
            return Err(down());
        }
        let (host, port) = split(address)?;
        let target = if is_local(host) {
            self.node.id
        } else {
            let unknown = || io::Error::new(io::ErrorKind::NotFound, "no such host");
            self.shared.node_of_host(host).ok_or_else(unknown)?.id
        };
        let connection = {
            let mut network = lock(&self.shared.network);
            network.next_connection += 1;
            let number = network.next_connection;
            let client_port = network.free_port(self.node.id);
            let ends = [End::new(self.node.id), End::new(target)];
            network
                .connections
                .insert(number, Connection { port, client_port, stalled: false, ends });
            self.shared.send(&mut network, number, 0, Payload::Open);
            number
        };
        let facts = [connection, u64::from(self.node.id), u64::from(target)];
        self.shared.event(EventKind::Connect, facts);
        self.shared.recorder().note(|| {
            let note = Note::from(Happening::Connect).on(self.node.id).text(address);
            note.facts([i64::from(target), connection as i64, 0])
        });
        // Owns the end from here: dropping the future closes it.
        let stream = SimStream::new(&self.shared, connection, 0);
        poll_fn(|context| {
            let mut network = lock(&self.shared.network);
            let Some(found) = network.connections.get_mut(&connection) else {
                return Poll::Ready(Err(down()));
            };
            let end = &mut found.ends[0];
            match end.phase {
                EndPhase::Opening => {
                    end.reader = Some(context.waker().clone());
                    Poll::Pending
                }
                EndPhase::Open => Poll::Ready(Ok(())),
                EndPhase::Refused => {
                    let text = "nobody listens there";
                    Poll::Ready(Err(io::Error::new(io::ErrorKind::ConnectionRefused, text)))
                }
                _ => Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
            }
        })
        .await?;
        Ok(Box::pin(stream))
    }
}

struct SimListener {
    shared: Arc<Shared>,
    node: Arc<NodeState>,
    start: u64,
    port: u16,
    generation: u64,
    arrived: Arc<Notify>,
}

#[async_trait]
impl ListenerDriver for SimListener {
    async fn accept(&self) -> io::Result<Accepted> {
        loop {
            let arrived = self.arrived.notified();
            {
                let mut network = lock(&self.shared.network);
                let Some(listener) = network
                    .listeners
                    .get_mut(&(self.node.id, self.port))
                    .filter(|listener| listener.generation == self.generation)
                else {
                    return Err(down());
                };
                if let Some(number) = listener.pending.pop_front() {
                    let more = !listener.pending.is_empty();
                    if more {
                        self.arrived.notify_one();
                    }
                    let Some(connection) = network.connections.get(&number) else { continue };
                    let client = self.shared.node(connection.ends[0].node);
                    let host = client.map(|node| node.host.clone()).unwrap_or_default();
                    let peer = format!("{host}:{}", connection.client_port);
                    let stream = SimStream::new(&self.shared, number, 1);
                    let local = self.local_address();
                    return Ok(Accepted { stream: Box::pin(stream), peer, local });
                }
            }
            arrived.await;
        }
    }

    fn local_address(&self) -> String {
        format!("{}:{}", self.node.host, self.port)
    }
}

impl Drop for SimListener {
    fn drop(&mut self) {
        let key = (self.node.id, self.port);
        let mut network = lock(&self.shared.network);
        if network.listeners.get(&key).is_none_or(|found| found.generation != self.generation) {
            return;
        }
        let pending = network.listeners.remove(&key).map(|found| found.pending).unwrap_or_default();
        if !self.node.is_start(self.start) {
            return;
        }
        for number in pending {
            self.shared.send(&mut network, number, 1, Payload::Reset);
            if let Some(connection) = network.connections.get_mut(&number) {
                connection.ends[1].phase = EndPhase::Closed;
            }
        }
    }
}

impl Shared {
    /// The server side of an arriving request: true if it was taken.
    pub(super) fn admit_connection(
        network: &mut super::NetworkState,
        number: u64,
        node: u32,
        port: u16,
    ) -> bool {
        match network.listeners.get_mut(&(node, port)) {
            Some(listener) if listener.pending.len() < BACKLOG => {
                listener.pending.push_back(number);
                listener.arrived.notify_one();
                true
            }
            _ => false,
        }
    }
}
