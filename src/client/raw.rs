//! The wire itself: any bytes out, frames in. For the bench's prepared frames and for hostile clients.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::error::ClientError;
use super::message::OutgoingMessage;
use crate::frontend::pulsar::codec::{
    Command, Frame, encode_command, encode_entry, encode_payload_command, next_frame, proto,
    reserve_for_next,
};
use crate::runtime::{ByteStream, Runtime};

/// A connection without any manners of its own.
pub struct RawConnection {
    runtime: Runtime,
    stream: ByteStream,
    buffer: BytesMut,
    limit: Duration,
}

impl RawConnection {
    /// Connects to `host:port`; `limit` is the deadline of this and every later operation.
    pub async fn connect(
        runtime: &Runtime,
        address: &str,
        limit: Duration,
    ) -> Result<Self, ClientError> {
        let failed = |reason: String| ClientError::Connect { address: address.to_owned(), reason };
        let stream = runtime
            .clock
            .timeout(limit, runtime.network.connect(address))
            .await
            .map_err(|elapsed| failed(elapsed.to_string()))?
            .map_err(|error| failed(error.to_string()))?;
        Ok(Self { runtime: runtime.clone(), stream, buffer: BytesMut::new(), limit })
    }

    /// Says CONNECT and waits for CONNECTED.
    pub async fn handshake(&mut self) -> Result<proto::CommandConnected, ClientError> {
        self.send_command(&connect_command()).await?;
        match self.next_command().await? {
            Command::Connected(connected) => Ok(connected),
            other => Err(ClientError::Protocol(format!("{} instead of CONNECTED", other.name()))),
        }
    }

    /// Writes bytes as they are.
    pub async fn send_bytes(&mut self, bytes: &[u8]) -> Result<(), ClientError> {
        self.runtime
            .clock
            .timeout(self.limit, self.stream.write_all(bytes))
            .await
            .map_err(|_| ClientError::Elapsed { operation: "a write" })?
            .map_err(|error| ClientError::Disconnected(error.to_string()))
    }

    /// Writes a simple command.
    pub async fn send_command(&mut self, command: &Command) -> Result<(), ClientError> {
        let mut frame = BytesMut::new();
        encode_command(command, &mut frame);
        self.send_bytes(&frame).await
    }

    /// The next frame. `Disconnected` at the end of the stream.
    pub async fn next_frame(&mut self) -> Result<Frame, ClientError> {
        const FRAME_MAX: usize = 64 * 1024 * 1024;
        loop {
            let frame = next_frame(&mut self.buffer, FRAME_MAX)
                .map_err(|error| ClientError::Protocol(error.to_string()))?;
            if let Some(frame) = frame {
                return Ok(frame);
            }
            reserve_for_next(&mut self.buffer);
            let read = self
                .runtime
                .clock
                .timeout(self.limit, self.stream.read_buf(&mut self.buffer))
                .await
                .map_err(|_| ClientError::Elapsed { operation: "a read" })?
                .map_err(|error| ClientError::Disconnected(error.to_string()))?;
            if read == 0 {
                return Err(ClientError::Disconnected("end of stream".to_owned()));
            }
        }
    }

    /// The next command, without what follows it.
    pub async fn next_command(&mut self) -> Result<Command, ClientError> {
        let frame = self.next_frame().await?;
        Command::decode(&frame.command).map_err(|error| ClientError::Protocol(error.to_string()))
    }
}

/// The CONNECT of this client.
pub(super) fn connect_command() -> Command {
    Command::Connect(proto::CommandConnect {
        client_version: concat!("Seawall-", env!("CARGO_PKG_VERSION")).to_owned(),
        protocol_version: Some(20),
        auth_method_name: Some("none".to_owned()),
        ..Default::default()
    })
}

/// A whole SEND frame of one message, for sending prepared frames.
pub fn publish_frame(
    producer_id: u64,
    sequence_id: u64,
    producer_name: &str,
    publish_time: u64,
    message: &OutgoingMessage,
) -> Bytes {
    let metadata = proto::MessageMetadata {
        producer_name: producer_name.to_owned(),
        sequence_id,
        publish_time,
        partition_key: message.key.clone(),
        properties: super::message::to_pairs(&message.properties),
        event_time: message.event_time,
        ..Default::default()
    };
    let entry = encode_entry(&metadata, &message.payload);
    let send = proto::CommandSend { producer_id, sequence_id, ..Default::default() };
    let mut frame = BytesMut::new();
    encode_payload_command(&Command::Send(send), &entry, &mut frame);
    frame.freeze()
}
