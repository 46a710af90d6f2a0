//! TCP with Nagle's algorithm off.

use std::io;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::net::{TcpListener, TcpStream};

use crate::runtime::{Accepted, ByteStream, ListenerDriver, NetworkDriver};

pub(super) struct TcpNetwork;

#[async_trait]
impl NetworkDriver for TcpNetwork {
    async fn listen(&self, address: &str) -> io::Result<Arc<dyn ListenerDriver>> {
        let listener = TcpListener::bind(address).await?;
        let local_address = listener.local_addr()?.to_string();
        Ok(Arc::new(TcpAcceptor { listener, local_address }))
    }

    async fn connect(&self, address: &str) -> io::Result<ByteStream> {
        let stream = TcpStream::connect(address).await?;
        // Small frames must leave at once: with Nagle and delayed acks a request waits 40 ms.
        stream.set_nodelay(true)?;
        Ok(Box::pin(stream))
    }
}

struct TcpAcceptor {
    listener: TcpListener,
    local_address: String,
}

#[async_trait]
impl ListenerDriver for TcpAcceptor {
    async fn accept(&self) -> io::Result<Accepted> {
        let (stream, peer) = self.listener.accept().await?;
        stream.set_nodelay(true)?;
        let local = stream.local_addr()?.to_string();
        Ok(Accepted { stream: Box::pin(stream), peer: peer.to_string(), local })
    }

    fn local_address(&self) -> String {
        self.local_address.clone()
    }
}
