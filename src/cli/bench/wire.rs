//! What the generator says to a server, whichever it is.

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::BenchError;
use super::{floor_wire, pulsar_wire};

/// The shape of what is published.
#[derive(Clone, Copy, Debug)]
pub(super) struct MessageShape {
    /// Bytes of one message's payload.
    pub(super) size: usize,
    /// Messages in a frame; 1 is not batched.
    pub(super) batch: u32,
}

/// A server and how it is spoken to.
#[derive(Clone, Debug)]
pub(super) enum Target {
    /// The floor server.
    Floor {
        /// `host:port`.
        address: String,
    },
    /// Seawall, by the Pulsar protocol.
    Pulsar {
        /// `host:port`.
        address: String,
        /// Full topic name.
        topic: String,
    },
}

impl Target {
    /// A topic at a broker's service URL or address.
    pub(super) fn pulsar(url: &str, topic: &str) -> Self {
        let address = url.trim_start_matches("pulsar://").to_owned();
        Self::Pulsar { address, topic: topic.to_owned() }
    }

    async fn connect(&self) -> Result<TcpStream, BenchError> {
        let (Self::Floor { address } | Self::Pulsar { address, .. }) = self;
        let stream = TcpStream::connect(address)
            .await
            .map_err(BenchError::io(format!("connect {address}")))?;
        stream.set_nodelay(true).map_err(BenchError::io("set TCP_NODELAY"))?;
        Ok(stream)
    }
}

/// Makes frames.
pub(super) enum Encoder {
    /// For the floor.
    Floor(floor_wire::Encoder),
    /// For Seawall.
    Pulsar(pulsar_wire::Encoder),
}

impl Encoder {
    /// Appends frame `number`. With a stamp its payload begins with it.
    pub(super) fn frame(&mut self, number: u64, stamp: Option<u64>, out: &mut BytesMut) {
        match self {
            Self::Floor(encoder) => encoder.frame(number, stamp, out),
            Self::Pulsar(encoder) => encoder.frame(number, stamp, out),
        }
    }
}

/// A publishing connection.
pub(super) struct Publisher {
    /// The socket.
    pub(super) stream: TcpStream,
    /// Makes its frames.
    pub(super) encoder: Encoder,
    is_floor: bool,
}

impl Publisher {
    /// Connects and says what it is.
    pub(super) async fn open(
        target: &Target,
        index: usize,
        shape: MessageShape,
    ) -> Result<Self, BenchError> {
        let mut stream = target.connect().await?;
        match target {
            Target::Floor { .. } => {
                send(&mut stream, &[floor_wire::PUBLISHER]).await?;
                let encoder = Encoder::Floor(floor_wire::Encoder::new(shape));
                Ok(Self { stream, encoder, is_floor: true })
            }
            Target::Pulsar { topic, .. } => {
                let mut buffer = BytesMut::new();
                send(&mut stream, &pulsar_wire::connect()).await?;
                expect(&mut stream, &mut buffer, pulsar_wire::CONNECTED).await?;
                let name = format!("bench-{index}");
                send(&mut stream, &pulsar_wire::producer(topic, &name)).await?;
                expect(&mut stream, &mut buffer, pulsar_wire::PRODUCER_SUCCESS).await?;
                let encoder = Encoder::Pulsar(pulsar_wire::Encoder::new(shape, &name));
                Ok(Self { stream, encoder, is_floor: false })
            }
        }
    }

    /// How this connection's acknowledgements are read.
    pub(super) const fn reader(&self) -> AckReader {
        if self.is_floor { AckReader::Floor } else { AckReader::Pulsar }
    }
}

/// Reads acknowledgements.
#[derive(Clone, Copy)]
pub(super) enum AckReader {
    /// Of the floor.
    Floor,
    /// Of Seawall.
    Pulsar,
}

impl AckReader {
    /// Takes every whole acknowledgement from `input`; what the protocol wants said back goes to `reply`.
    pub(super) fn read(
        self,
        input: &mut BytesMut,
        reply: &mut BytesMut,
        acknowledged: &mut dyn FnMut(u64),
    ) -> Result<(), BenchError> {
        match self {
            Self::Floor => {
                floor_wire::read_acks(input, acknowledged);
                Ok(())
            }
            Self::Pulsar => pulsar_wire::read_receipts(input, reply, acknowledged),
        }
    }
}

/// A consuming connection.
pub(super) struct Subscriber {
    /// The socket.
    pub(super) stream: TcpStream,
    /// Takes messages apart.
    pub(super) reader: MessageReader,
    /// Received already while subscribing.
    pub(super) input: BytesMut,
}

/// Takes messages apart.
pub(super) enum MessageReader {
    /// Of the floor.
    Floor,
    /// Of Seawall, with its permits.
    Pulsar(pulsar_wire::Permits),
}

impl Subscriber {
    /// Connects and subscribes: to everything from the start, or to what comes from now on.
    pub(super) async fn open(target: &Target, from_start: bool) -> Result<Self, BenchError> {
        let mut stream = target.connect().await?;
        let mut input = BytesMut::with_capacity(1024 * 1024);
        match target {
            Target::Floor { .. } => {
                send(&mut stream, &[floor_wire::SUBSCRIBER]).await?;
                let mut hello = [0_u8; 1];
                stream.read_exact(&mut hello).await.map_err(BenchError::io("subscribe"))?;
                Ok(Self { stream, reader: MessageReader::Floor, input })
            }
            Target::Pulsar { topic, .. } => {
                send(&mut stream, &pulsar_wire::connect()).await?;
                expect(&mut stream, &mut input, pulsar_wire::CONNECTED).await?;
                send(&mut stream, &pulsar_wire::subscribe(topic, from_start)).await?;
                expect(&mut stream, &mut input, pulsar_wire::SUCCESS).await?;
                let permits = pulsar_wire::Permits::default();
                send(&mut stream, &pulsar_wire::flow(pulsar_wire::QUEUE)).await?;
                Ok(Self { stream, reader: MessageReader::Pulsar(permits), input })
            }
        }
    }
}

impl MessageReader {
    /// Takes every whole message from `input`, giving its last `payload` bytes' first 8 as a stamp.
    pub(super) fn read(
        &mut self,
        input: &mut BytesMut,
        reply: &mut BytesMut,
        payload: usize,
        received: &mut dyn FnMut(u64),
    ) -> Result<(), BenchError> {
        match self {
            Self::Floor => {
                floor_wire::read_records(input, received);
                Ok(())
            }
            Self::Pulsar(permits) => {
                pulsar_wire::read_messages(input, reply, permits, payload, received)
            }
        }
    }
}

async fn send(stream: &mut TcpStream, bytes: &[u8]) -> Result<(), BenchError> {
    stream.write_all(bytes).await.map_err(BenchError::io("write to the server"))
}

/// Waits for a command of this type; an error from the server is an error here.
async fn expect(
    stream: &mut TcpStream,
    input: &mut BytesMut,
    wanted: u64,
) -> Result<(), BenchError> {
    loop {
        while let Some(frame) = pulsar_wire::next_frame(input) {
            let found = pulsar_wire::command_type(&frame);
            if found == Some(wanted) {
                return Ok(());
            }
            pulsar_wire::refuse_errors(&frame)?;
        }
        let read = stream.read_buf(input).await.map_err(BenchError::io("read from the server"))?;
        if read == 0 {
            return Err(BenchError::Server("closed the connection while it was opened".to_owned()));
        }
    }
}

/// The first 8 bytes as a number; 0 when there are fewer.
pub(super) fn stamp_of(mut payload: &[u8]) -> u64 {
    if payload.len() >= 8 { payload.get_u64() } else { 0 }
}

/// Payload bytes, always the same, not all alike.
pub(super) fn payload(size: usize) -> Bytes {
    (0..size).map(|index| (index * 131 % 251) as u8).collect::<Vec<u8>>().into()
}
