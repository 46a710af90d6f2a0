//! Writes what is queued in as few writes as possible.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncWriteExt, WriteHalf};

use super::Connection;
use super::outbox::Outgoing;
use crate::reached;
use crate::runtime::{ByteStream, Mailbox};

/// Frames are gathered up to this many bytes a write.
const GATHERED: usize = 128 * 1024;
/// Parts from this size on are written as they are, not gathered.
const DIRECT: usize = 32 * 1024;

struct Writer {
    connection: Arc<Connection>,
    stream: WriteHalf<ByteStream>,
    gathered: BytesMut,
}

/// Writes until the end is asked for, or the client takes nothing any more.
pub(super) async fn write(
    connection: Arc<Connection>,
    mut queue: Mailbox<Outgoing>,
    stream: WriteHalf<ByteStream>,
) {
    let mut writer =
        Writer { connection, stream, gathered: BytesMut::with_capacity(GATHERED + DIRECT) };
    while let Some(items) = queue.take_all().await {
        match writer.write_all(items).await {
            Ok(true) => {}
            Ok(false) => break,
            Err(_) => {
                reached!("pulsar connection: the client does not read or is gone");
                break;
            }
        }
    }
    writer.connection.stop_now();
    let limit = writer.connection.config.write_limit;
    // The connection is over either way.
    let _ = writer.connection.runtime.clock.timeout(limit, writer.stream.shutdown()).await;
}

impl Writer {
    /// False once the end was asked for.
    async fn write_all(&mut self, items: VecDeque<Outgoing>) -> io::Result<bool> {
        for item in items {
            match item {
                Outgoing::Frames(head, tail) => {
                    self.add(head).await?;
                    if let Some(tail) = tail {
                        self.add(tail).await?;
                    }
                }
                Outgoing::End => {
                    self.flush().await?;
                    return Ok(false);
                }
            }
        }
        self.flush().await?;
        Ok(true)
    }

    async fn add(&mut self, bytes: Bytes) -> io::Result<()> {
        if bytes.len() >= DIRECT {
            self.flush().await?;
            return self.write_part(&bytes).await;
        }
        self.gathered.extend_from_slice(&bytes);
        if self.gathered.len() >= GATHERED { self.flush().await } else { Ok(()) }
    }

    async fn flush(&mut self) -> io::Result<()> {
        if self.gathered.is_empty() {
            return Ok(());
        }
        let mut gathered = std::mem::take(&mut self.gathered);
        let result = self.write_part(&gathered).await;
        gathered.clear();
        self.gathered = gathered;
        result
    }

    async fn write_part(&mut self, bytes: &[u8]) -> io::Result<()> {
        let clock = self.connection.runtime.clock.clone();
        clock
            .timeout(self.connection.config.write_limit, self.stream.write_all(bytes))
            .await
            .map_err(|elapsed| io::Error::new(io::ErrorKind::TimedOut, elapsed))??;
        for consumer_id in self.connection.outbox.written(bytes.len()) {
            if let Some(consumer) = self.connection.handles.consumer(consumer_id) {
                consumer.resume();
            }
        }
        Ok(())
    }
}
