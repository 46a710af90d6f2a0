//! One connection shared by many producers and consumers: answers are handed to whoever asked, receipts
//! and messages to their handles.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::sync::oneshot;

use super::consumer::ConsumerEvent;
use super::error::ClientError;
use super::options::ClientOptions;
use super::producer::{ProducerEvent, ProducerInput};
use super::raw::connect_command;
use crate::domain::{EntryId, LedgerId, Position};
use crate::frontend::pulsar::codec::{
    Command, Frame, MAX_MESSAGE_SIZE_DEFAULT, encode_command, next_frame, proto, reserve_for_next,
};
use crate::runtime::{ByteStream, Mailbox, MailboxSender, Runtime, Shutdown, mailbox};

/// Bytes gathered for one write.
const GATHERED: usize = 128 * 1024;

/// A producer's inbox and the number of its session, which its events carry.
struct ProducerRoute(MailboxSender<ProducerInput>, u64);
struct ConsumerRoute(MailboxSender<(u64, ConsumerEvent)>, u64);

#[derive(Default)]
struct Routes {
    next_request: u64,
    requests: BTreeMap<u64, oneshot::Sender<Command>>,
    producers: BTreeMap<u64, ProducerRoute>,
    consumers: BTreeMap<u64, ConsumerRoute>,
    closed: bool,
}

/// Somebody waits for an answer; nobody does when it is dropped.
struct Waiting<'a> {
    connection: &'a Connection,
    request_id: u64,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.connection.routes().requests.remove(&self.request_id);
    }
}

/// A connection after its handshake.
pub(super) struct Connection {
    runtime: Runtime,
    /// `host:port` of the broker.
    pub(super) address: Arc<str>,
    options: ClientOptions,
    outbound: MailboxSender<Bytes>,
    routes: Mutex<Routes>,
    stop: Shutdown,
    max_message_size: usize,
}

impl Connection {
    /// Connects and shakes hands.
    pub(super) async fn open(
        runtime: &Runtime,
        address: &str,
        options: &ClientOptions,
    ) -> Result<Arc<Self>, ClientError> {
        let failed = |reason: String| ClientError::Connect { address: address.to_owned(), reason };
        let shaking = async {
            let mut stream = runtime
                .network
                .connect(address)
                .await
                .map_err(|error| failed(error.to_string()))?;
            let mut buffer = BytesMut::new();
            encode_command(&connect_command(), &mut buffer);
            stream.write_all(&buffer).await.map_err(|error| failed(error.to_string()))?;
            buffer.clear();
            let frame = read_frame(&mut stream, &mut buffer, options.frame_bytes_max).await?;
            match Command::decode(&frame.command) {
                Ok(Command::Connected(connected)) => Ok((stream, buffer, connected)),
                Ok(Command::Error(error)) => Err(refused(error.error, error.message)),
                other => Err(failed(format!("no CONNECTED: {other:?}"))),
            }
        };
        let (stream, buffer, connected) = runtime
            .clock
            .timeout(options.operation_limit, shaking)
            .await
            .map_err(|elapsed| failed(elapsed.to_string()))??;
        let (outbound, queue) = mailbox(options.outbound_frames_max);
        let told = connected.max_message_size.and_then(|size| usize::try_from(size).ok());
        let connection = Arc::new(Self {
            runtime: runtime.clone(),
            address: address.into(),
            options: options.clone(),
            outbound,
            routes: Mutex::new(Routes::default()),
            stop: Shutdown::new(),
            max_message_size: told.unwrap_or(MAX_MESSAGE_SIZE_DEFAULT),
        });
        let (read_half, write_half) = tokio::io::split(stream);
        runtime.tasks.spawn("client-writer", write(Arc::clone(&connection), queue, write_half));
        runtime.tasks.spawn("client-reader", read(Arc::clone(&connection), read_half, buffer));
        Ok(connection)
    }

    fn routes(&self) -> MutexGuard<'_, Routes> {
        self.routes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it is known to be over.
    pub(super) fn is_closed(&self) -> bool {
        self.routes().closed
    }

    /// Largest metadata plus payload the broker takes.
    pub(super) const fn max_message_size(&self) -> usize {
        self.max_message_size
    }

    /// Ends it. What is queued is still written if the broker takes it.
    pub(super) fn close(&self) {
        self.stop.trigger();
        let (producers, consumers) = {
            let mut routes = self.routes();
            routes.closed = true;
            routes.requests.clear();
            (std::mem::take(&mut routes.producers), std::mem::take(&mut routes.consumers))
        };
        // A handle that is gone needs no event.
        for (_, ProducerRoute(sender, session)) in producers {
            let _ = sender.push(ProducerInput::Event(session, ProducerEvent::Lost));
        }
        for (_, ConsumerRoute(sender, session)) in consumers {
            let _ = sender.push((session, ConsumerEvent::Lost));
        }
    }

    /// Sends events of a producer to an inbox.
    pub(super) fn route_producer(
        &self,
        id: u64,
        sender: MailboxSender<ProducerInput>,
        session: u64,
    ) -> Result<(), ClientError> {
        let mut routes = self.routes();
        if routes.closed {
            return Err(ClientError::Disconnected("connection closed".to_owned()));
        }
        routes.producers.insert(id, ProducerRoute(sender, session));
        Ok(())
    }

    /// Sends events of a consumer to an inbox.
    pub(super) fn route_consumer(
        &self,
        id: u64,
        sender: MailboxSender<(u64, ConsumerEvent)>,
        session: u64,
    ) -> Result<(), ClientError> {
        let mut routes = self.routes();
        if routes.closed {
            return Err(ClientError::Disconnected("connection closed".to_owned()));
        }
        routes.consumers.insert(id, ConsumerRoute(sender, session));
        Ok(())
    }

    /// Forgets a producer.
    pub(super) fn forget_producer(&self, id: u64) {
        self.routes().producers.remove(&id);
    }

    /// Forgets a consumer.
    pub(super) fn forget_consumer(&self, id: u64) {
        self.routes().consumers.remove(&id);
    }

    /// Queues a frame; waits while too many are queued.
    pub(super) async fn send(&self, frame: Bytes) -> Result<(), ClientError> {
        let limit = self.options.operation_limit;
        match self.runtime.clock.timeout(limit, self.outbound.send(frame)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(ClientError::Disconnected("connection closed".to_owned())),
            Err(_) => Err(ClientError::Elapsed { operation: "a write" }),
        }
    }

    /// Queues a command without waiting; dropped if the connection is closed.
    pub(super) fn push_command(&self, command: &Command) {
        let mut frame = BytesMut::new();
        encode_command(command, &mut frame);
        // Lost with the connection, as it would be on the wire.
        let _ = self.outbound.push(frame.freeze());
    }

    /// Asks and waits for the answer. An ERROR is `Refused`.
    pub(super) async fn request(
        &self,
        operation: &'static str,
        command: impl FnOnce(u64) -> Command,
    ) -> Result<Command, ClientError> {
        let (sender, answer) = oneshot::channel();
        let request_id = {
            let mut routes = self.routes();
            if routes.closed {
                return Err(ClientError::Disconnected("connection closed".to_owned()));
            }
            let request_id = routes.next_request;
            routes.next_request += 1;
            routes.requests.insert(request_id, sender);
            request_id
        };
        let mut frame = BytesMut::new();
        encode_command(&command(request_id), &mut frame);
        let asking = async {
            self.send(frame.freeze()).await?;
            answer.await.map_err(|_| ClientError::Disconnected("connection lost".to_owned()))
        };
        let _waiting = Waiting { connection: self, request_id };
        match self.runtime.clock.timeout(self.options.operation_limit, asking).await {
            Err(_) => Err(ClientError::Elapsed { operation }),
            Ok(Err(error)) => Err(error),
            Ok(Ok(Command::Error(error))) => Err(refused(error.error, error.message)),
            Ok(Ok(command)) => Ok(command),
        }
    }

    fn handle(&self, frame: Frame) -> Result<(), ClientError> {
        let command = Command::decode(&frame.command)
            .map_err(|error| ClientError::Protocol(error.to_string()))?;
        match command {
            Command::SendReceipt(receipt) => {
                let id = receipt.message_id.unwrap_or_default();
                let entry = EntryId(i64::try_from(id.entry_id).unwrap_or(-1));
                let position = Position::new(LedgerId(id.ledger_id), entry);
                let event = ProducerEvent::Receipt { sequence_id: receipt.sequence_id, position };
                self.tell_producer(receipt.producer_id, event);
            }
            Command::SendError(error) => {
                let refusal = refused(error.error, error.message);
                let event =
                    ProducerEvent::Refused { sequence_id: error.sequence_id, error: refusal };
                self.tell_producer(error.producer_id, event);
            }
            Command::Message(message) => {
                let id = message.consumer_id;
                let event = ConsumerEvent::Message { message, entry: frame.payload };
                self.tell_consumer(id, event);
            }
            Command::CloseProducer(close) => {
                self.tell_producer(close.producer_id, ProducerEvent::Lost);
                self.forget_producer(close.producer_id);
            }
            Command::CloseConsumer(close) => {
                self.tell_consumer(close.consumer_id, ConsumerEvent::Lost);
                self.forget_consumer(close.consumer_id);
            }
            Command::ActiveConsumerChange(change) => {
                let event = ConsumerEvent::Active(change.is_active());
                self.tell_consumer(change.consumer_id, event);
            }
            Command::Ping(_) => self.push_command(&Command::Pong(proto::CommandPong {})),
            Command::Pong(_) | Command::ReachedEndOfTopic(_) => {}
            answer => match request_id(&answer) {
                Some(u64::MAX) => {
                    return Err(ClientError::Protocol(format!("the broker says {answer:?}")));
                }
                Some(request_id) => {
                    if let Some(waiting) = self.routes().requests.remove(&request_id) {
                        // Whoever asked may have given up.
                        let _ = waiting.send(answer);
                    }
                }
                None => {
                    return Err(ClientError::Protocol(format!("unexpected {}", answer.name())));
                }
            },
        }
        Ok(())
    }

    fn tell_producer(&self, id: u64, event: ProducerEvent) {
        if let Some(ProducerRoute(sender, session)) = self.routes().producers.get(&id) {
            let _ = sender.push(ProducerInput::Event(*session, event));
        }
    }

    fn tell_consumer(&self, id: u64, event: ConsumerEvent) {
        if let Some(ConsumerRoute(sender, session)) = self.routes().consumers.get(&id) {
            // Bounded by the permits given.
            let _ = sender.push((*session, event));
        }
    }
}

/// A broker's refusal.
pub(super) fn refused(code: i32, message: String) -> ClientError {
    let code = proto::ServerError::try_from(code).unwrap_or(proto::ServerError::UnknownError);
    ClientError::Refused { code, message }
}

/// The request an answer belongs to.
fn request_id(command: &Command) -> Option<u64> {
    match command {
        Command::Success(answer) => Some(answer.request_id),
        Command::Error(answer) => Some(answer.request_id),
        Command::ProducerSuccess(answer) => Some(answer.request_id),
        Command::PartitionedMetadataResponse(answer) => Some(answer.request_id),
        Command::LookupResponse(answer) => Some(answer.request_id),
        Command::ConsumerStatsResponse(answer) => Some(answer.request_id),
        Command::GetLastMessageIdResponse(answer) => Some(answer.request_id),
        Command::GetTopicsOfNamespaceResponse(answer) => Some(answer.request_id),
        Command::GetSchemaResponse(answer) => Some(answer.request_id),
        Command::GetOrCreateSchemaResponse(answer) => Some(answer.request_id),
        Command::AckResponse(answer) => answer.request_id,
        _ => None,
    }
}

async fn read_frame(
    stream: &mut ByteStream,
    buffer: &mut BytesMut,
    limit: usize,
) -> Result<Frame, ClientError> {
    loop {
        let frame =
            next_frame(buffer, limit).map_err(|error| ClientError::Protocol(error.to_string()))?;
        if let Some(frame) = frame {
            return Ok(frame);
        }
        reserve_for_next(buffer);
        let read = stream
            .read_buf(buffer)
            .await
            .map_err(|error| ClientError::Disconnected(error.to_string()))?;
        if read == 0 {
            return Err(ClientError::Disconnected("end of stream".to_owned()));
        }
    }
}

async fn write(
    connection: Arc<Connection>,
    mut queue: Mailbox<Bytes>,
    mut stream: WriteHalf<ByteStream>,
) {
    let stop = connection.stop.signal();
    let mut gathered = BytesMut::with_capacity(GATHERED);
    let mut is_sound = true;
    while is_sound && !stop.is_triggered() {
        let frames = tokio::select! {
            biased;
            frames = queue.take_all() => frames,
            () = stop.triggered() => None,
        };
        let frames = frames.unwrap_or_default();
        is_sound = write_all(&connection, &mut stream, &mut gathered, frames).await.is_ok();
    }
    connection.close();
    if is_sound {
        let last = queue.take_ready();
        // Whoever closed does not wait for it.
        let _ = write_all(&connection, &mut stream, &mut gathered, last).await;
    }
    let limit = connection.options.operation_limit;
    // It is over either way.
    let _ = connection.runtime.clock.timeout(limit, stream.shutdown()).await;
}

async fn write_all(
    connection: &Connection,
    stream: &mut WriteHalf<ByteStream>,
    gathered: &mut BytesMut,
    frames: VecDeque<Bytes>,
) -> Result<(), ClientError> {
    for frame in frames {
        gathered.extend_from_slice(&frame);
        if gathered.len() >= GATHERED {
            write_part(connection, stream, gathered).await?;
        }
    }
    write_part(connection, stream, gathered).await
}

async fn write_part(
    connection: &Connection,
    stream: &mut WriteHalf<ByteStream>,
    gathered: &mut BytesMut,
) -> Result<(), ClientError> {
    if gathered.is_empty() {
        return Ok(());
    }
    let limit = connection.options.operation_limit;
    let written = connection.runtime.clock.timeout(limit, stream.write_all(gathered)).await;
    gathered.clear();
    match written {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(ClientError::Disconnected(error.to_string())),
        Err(_) => Err(ClientError::Elapsed { operation: "a write" }),
    }
}

async fn read(connection: Arc<Connection>, mut stream: ReadHalf<ByteStream>, mut buffer: BytesMut) {
    let stop = connection.stop.signal();
    let clock = &connection.runtime.clock;
    let mut tick = clock.sleep(connection.options.keep_alive);
    let mut heard = true;
    loop {
        loop {
            match next_frame(&mut buffer, connection.options.frame_bytes_max) {
                Ok(Some(frame)) => {
                    if let Err(error) = connection.handle(frame) {
                        tracing::warn!(%error, "Pulsar connection given up");
                        return connection.close();
                    }
                }
                Ok(None) => break,
                Err(error) => {
                    tracing::warn!(%error, "Pulsar connection given up");
                    return connection.close();
                }
            }
        }
        reserve_for_next(&mut buffer);
        tokio::select! {
            biased;
            () = stop.triggered() => return connection.close(),
            read = stream.read_buf(&mut buffer) => match read {
                Ok(count) if count > 0 => heard = true,
                _ => return connection.close(),
            },
            () = &mut tick => {
                if !heard {
                    return connection.close();
                }
                heard = false;
                connection.push_command(&Command::Ping(proto::CommandPing {}));
                tick = clock.sleep(connection.options.keep_alive);
            }
        }
    }
}
