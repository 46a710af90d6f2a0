//! Reads frames, gives publishes to the broker a batch a read, and everything else to its handler.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::BytesMut;
use futures_util::future::BoxFuture;
use tokio::io::{AsyncReadExt, ReadHalf};

use super::handles::OpenProducer;
use super::{Connection, ConnectionEnd};
use crate::broker::Publish;
use crate::frontend::pulsar::codec::{Command, next_frame, proto, reserve_for_next};
use crate::frontend::pulsar::commands;
use crate::reached;
use crate::runtime::ByteStream;

/// Publishes of one turn, by producer.
#[derive(Default)]
pub(in crate::frontend::pulsar) struct PublishBatches {
    by_producer: BTreeMap<u64, (OpenProducer, Vec<Publish>)>,
}

impl PublishBatches {
    /// The producer's batch of this turn, begun with `open` if there is none.
    pub(in crate::frontend::pulsar) fn of(
        &mut self,
        producer_id: u64,
        open: impl FnOnce() -> Option<OpenProducer>,
    ) -> Option<&mut (OpenProducer, Vec<Publish>)> {
        use std::collections::btree_map::Entry;
        match self.by_producer.entry(producer_id) {
            Entry::Occupied(entry) => Some(entry.into_mut()),
            Entry::Vacant(entry) => open().map(|open| entry.insert((open, Vec::new()))),
        }
    }

    /// Gives everything to the broker.
    pub(in crate::frontend::pulsar) fn publish(&mut self) {
        while let Some((_, (open, publishes))) = self.by_producer.pop_first() {
            if !publishes.is_empty() {
                open.producer.publish(publishes);
            }
        }
    }
}

struct Reader<'a> {
    connection: &'a Arc<Connection>,
    stream: ReadHalf<ByteStream>,
    buffer: BytesMut,
    is_connected: bool,
    /// The next time to look whether the client lives.
    tick: BoxFuture<'static, ()>,
    /// Something came since the last tick.
    heard: bool,
}

/// Reads until the connection ends.
pub(super) async fn read(
    connection: &Arc<Connection>,
    stream: ReadHalf<ByteStream>,
) -> ConnectionEnd {
    let tick = connection.runtime.clock.sleep(connection.config.handshake_limit);
    let mut reader = Reader {
        connection,
        stream,
        buffer: BytesMut::new(),
        is_connected: false,
        tick,
        heard: true,
    };
    let mut batches = PublishBatches::default();
    loop {
        let result = reader.handle_frames(&mut batches).await;
        batches.publish();
        let result = match result {
            Ok(()) => reader.receive().await,
            Err(end) => Err(end),
        };
        if let Err(end) = result {
            return end;
        }
    }
}

impl Reader<'_> {
    async fn handle_frames(&mut self, batches: &mut PublishBatches) -> Result<(), ConnectionEnd> {
        loop {
            let limit = self.connection.config.frame_limit(self.is_connected);
            let Some(frame) = next_frame(&mut self.buffer, limit)? else { return Ok(()) };
            let command = Command::decode(&frame.command)?;
            match (&command, self.is_connected) {
                (Command::Connect(_), true) => {
                    return Err(ConnectionEnd::Violation("a second CONNECT"));
                }
                (Command::Connect(_), false) => {
                    self.is_connected = true;
                    self.tick = self.next_tick();
                }
                (_, false) => return Err(ConnectionEnd::Violation("a command before CONNECT")),
                (_, true) => {}
            }
            if !matches!(command, Command::Send(_)) && !frame.payload.is_empty() {
                return Err(ConnectionEnd::Violation("bytes after a simple command"));
            }
            commands::dispatch(self.connection, command, &frame.payload, batches).await?;
        }
    }

    fn next_tick(&self) -> BoxFuture<'static, ()> {
        self.connection.runtime.clock.sleep(self.connection.config.keep_alive)
    }

    /// Waits for room, then for bytes, once.
    async fn receive(&mut self) -> Result<(), ConnectionEnd> {
        let connection = Arc::clone(self.connection);
        let stop = connection.stop.signal();
        if connection.inflight.is_full() {
            reached!("pulsar connection: too many publishes in flight");
            tokio::select! {
                biased;
                () = stop.triggered() => return Err(ConnectionEnd::Stopped),
                () = connection.inflight.half_free() => self.heard = true,
            }
        }
        if connection.outbox.is_clogged() {
            reached!("pulsar connection: the client is not read until it reads");
            tokio::select! {
                biased;
                () = stop.triggered() => return Err(ConnectionEnd::Stopped),
                () = connection.outbox.unclogged() => self.heard = true,
            }
        }
        reserve_for_next(&mut self.buffer);
        tokio::select! {
            biased;
            () = stop.triggered() => Err(ConnectionEnd::Stopped),
            read = self.stream.read_buf(&mut self.buffer) => match read {
                Ok(0) => Err(ConnectionEnd::Peer),
                Ok(_) => {
                    self.heard = true;
                    Ok(())
                }
                Err(error) => Err(ConnectionEnd::Broken(error)),
            },
            () = &mut self.tick => self.look_for_life(),
        }
    }

    fn look_for_life(&mut self) -> Result<(), ConnectionEnd> {
        if !self.is_connected {
            return Err(ConnectionEnd::Handshake);
        }
        // The ping of the last tick was answered, or anything else came, or there is no life there.
        if !self.heard {
            return Err(ConnectionEnd::Silent);
        }
        self.heard = false;
        self.connection.outbox.command(&Command::Ping(proto::CommandPing {}));
        self.tick = self.next_tick();
        Ok(())
    }
}
