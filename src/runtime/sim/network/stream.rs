//! One end of a connection as a byte stream.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{EndPhase, Payload};
use crate::runtime::sim::keyed::{below, keyed, unit};
use crate::runtime::sim::lock;
use crate::runtime::sim::world::Shared;

/// The most bytes one write takes.
const WRITE_BYTES: usize = 64 * 1024;

/// Room of a segment in memory: writes that follow at once join it. What the allocator keeps at hand is smaller.
const SEGMENT_ROOM: usize = 960;

/// A stream; dropping it closes this end.
pub(super) struct SimStream {
    shared: Arc<Shared>,
    connection: u64,
    end: usize,
}

impl SimStream {
    pub(super) fn new(shared: &Arc<Shared>, connection: u64, end: usize) -> Self {
        Self { shared: Arc::clone(shared), connection, end }
    }

    /// A length that may be cut short.
    fn shorten(&self, operations: &mut u64, length: usize) -> usize {
        *operations += 1;
        let rate = self.shared.settings.short_io_rate;
        if length < 2 || rate <= 0.0 {
            return length;
        }
        let value = keyed(&[self.shared.seed, 6, self.connection, self.end as u64, *operations]);
        if unit(value) >= rate {
            return length;
        }
        1 + below(keyed(&[value]), length as u64 - 1) as usize
    }
}

fn broken(phase: EndPhase) -> io::Error {
    match phase {
        EndPhase::Reset => io::ErrorKind::ConnectionReset.into(),
        _ => io::ErrorKind::NotConnected.into(),
    }
}

impl AsyncRead for SimStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut writer = None;
        let result = {
            let mut network = lock(&self.shared.network);
            let Some(connection) = network.connections.get_mut(&self.connection) else {
                return Poll::Ready(Err(broken(EndPhase::Closed)));
            };
            let [client, server] = &mut connection.ends;
            let (end, peer) = if self.end == 0 { (client, server) } else { (server, client) };
            if buffer.remaining() == 0 {
                return Poll::Ready(Ok(()));
            }
            if end.received_bytes > 0 {
                let most = buffer.remaining().min(end.received_bytes);
                let mut wanted = self.shorten(&mut end.operations, most);
                end.received_bytes -= wanted;
                peer.outstanding = peer.outstanding.saturating_sub(wanted);
                while wanted > 0 {
                    let Some(head) = end.received.front_mut() else { break };
                    let length = head.len().min(wanted);
                    buffer.put_slice(&head[..length]);
                    head.advance(length);
                    if head.is_empty() {
                        end.received.pop_front();
                    }
                    wanted -= length;
                }
                writer = peer.writer.take();
                Poll::Ready(Ok(()))
            } else if end.phase == EndPhase::Open || end.phase == EndPhase::Vanished {
                if end.finished {
                    Poll::Ready(Ok(()))
                } else {
                    end.reader = Some(context.waker().clone());
                    Poll::Pending
                }
            } else {
                Poll::Ready(Err(broken(end.phase)))
            }
        };
        if let Some(writer) = writer {
            writer.wake();
        }
        result
    }
}

impl AsyncWrite for SimStream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut network = lock(&self.shared.network);
        let Some(connection) = network.connections.get_mut(&self.connection) else {
            return Poll::Ready(Err(broken(EndPhase::Closed)));
        };
        let end = &mut connection.ends[self.end];
        if end.write_shut {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        if !matches!(end.phase, EndPhase::Open | EndPhase::Vanished) {
            return Poll::Ready(Err(broken(end.phase)));
        }
        let room = self.shared.settings.stream_window.saturating_sub(end.outstanding);
        if room == 0 && !bytes.is_empty() {
            end.writer = Some(context.waker().clone());
            return Poll::Pending;
        }
        let length = self.shorten(&mut end.operations, bytes.len().min(room).min(WRITE_BYTES));
        end.outstanding += length;
        if end.phase == EndPhase::Open && length > 0 {
            let mut segment = BytesMut::with_capacity(length.max(SEGMENT_ROOM));
            segment.extend_from_slice(&bytes[..length]);
            self.shared.send(&mut network, self.connection, self.end, Payload::Data(segment));
        }
        Poll::Ready(Ok(length))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut network = lock(&self.shared.network);
        if let Some(connection) = network.connections.get_mut(&self.connection) {
            let end = &mut connection.ends[self.end];
            if !end.write_shut && end.phase == EndPhase::Open {
                end.write_shut = true;
                self.shared.send(&mut network, self.connection, self.end, Payload::Finish);
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl Drop for SimStream {
    fn drop(&mut self) {
        let mut network = lock(&self.shared.network);
        let Some(connection) = network.connections.get_mut(&self.connection) else { return };
        let end = &mut connection.ends[self.end];
        let (phase, unread, shut) = (end.phase, end.received_bytes > 0, end.write_shut);
        if !end.is_gone() {
            end.phase = EndPhase::Closed;
            end.received.clear();
            end.received_bytes = 0;
            (end.reader, end.writer) = (None, None);
            if phase == EndPhase::Open && unread {
                self.shared.send(&mut network, self.connection, self.end, Payload::Reset);
            } else if phase == EndPhase::Open && !shut {
                self.shared.send(&mut network, self.connection, self.end, Payload::Finish);
            }
        }
        network.forget_if_over(self.connection);
    }
}
