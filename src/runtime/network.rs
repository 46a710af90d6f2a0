//! Byte streams between nodes and from clients.

use std::io;
use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::io::{AsyncRead, AsyncWrite};

/// A connected, ordered, reliable-until-broken byte stream. Reads and writes may be short. Writes are
/// sent without waiting for a flush (`TCP_NODELAY`). A broken peer may show as an error, as an end of
/// stream, or as silence: only a deadline of one's own tells silence from slowness.
pub trait ByteStreamIo: AsyncRead + AsyncWrite + Send {}

impl<T: AsyncRead + AsyncWrite + Send> ByteStreamIo for T {}

/// A boxed stream.
pub type ByteStream = Pin<Box<dyn ByteStreamIo>>;

/// What a runtime must provide. Addresses are `host:port`; port 0 asks for any free port.
#[async_trait]
pub trait NetworkDriver: Send + Sync {
    /// Starts listening.
    async fn listen(&self, address: &str) -> io::Result<Arc<dyn ListenerDriver>>;
    /// Connects; may hang for ever when the other side is cut off, so callers set a deadline.
    async fn connect(&self, address: &str) -> io::Result<ByteStream>;
}

/// A connection that somebody opened to us. Both addresses are `host:port`.
pub struct Accepted {
    /// The connection.
    pub stream: ByteStream,
    /// The other side's address.
    pub peer: String,
    /// Our own address as the other side reached it: a listener on every address has one for each.
    pub local: String,
}

/// Whether a `host:port` is of every address of its machine: one can listen there, but not connect to it.
pub fn is_any_host(address: &str) -> bool {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    matches!(host, "0.0.0.0" | "[::]" | "::" | "")
}

/// What a listening socket must provide.
#[async_trait]
pub trait ListenerDriver: Send + Sync {
    /// The next connection.
    async fn accept(&self) -> io::Result<Accepted>;
    /// The address bound, with the real port.
    fn local_address(&self) -> String;
}

/// Handle to a node's network.
#[derive(Clone)]
pub struct Network(Arc<dyn NetworkDriver>);

/// A listening socket; closed when the last clone is dropped.
#[derive(Clone)]
pub struct Listener(Arc<dyn ListenerDriver>);

impl Network {
    /// Wraps a runtime's network.
    pub fn new(driver: Arc<dyn NetworkDriver>) -> Self {
        Self(driver)
    }

    /// Starts listening on `host:port`.
    pub async fn listen(&self, address: &str) -> io::Result<Listener> {
        self.0.listen(address).await.map(Listener)
    }

    /// Connects to `host:port`. May hang: wrap in [`super::Clock::timeout`].
    pub async fn connect(&self, address: &str) -> io::Result<ByteStream> {
        self.0.connect(address).await
    }
}

impl Listener {
    /// The next connection.
    pub async fn accept(&self) -> io::Result<Accepted> {
        self.0.accept().await
    }

    /// The address bound, with the real port.
    pub fn local_address(&self) -> String {
        self.0.local_address()
    }
}
