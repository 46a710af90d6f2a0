//! The handle of a remote bookie.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use tonic::Status;

use super::driver::{Driver, Inbound};
use super::pending::{Add, batch_cost, entry_ids};
use crate::domain::{
    AddAnswer, AddBatch, AddError, AddSink, BookieId, CreatorToken, Entry, EntryId,
    LastAddConfirmed, LedgerId, ReadError, ReadRequest,
};
use crate::ledger::BookieClient;
use crate::reached;
use crate::rpc::bookie_messages::{
    entry_from_wire, last_add_confirmed_from_wire, read_failure_from_wire, read_to_wire,
};
use crate::rpc::generated::bookie as wire;
use crate::rpc::generated::bookie::bookie_client::BookieClient as Generated;
use crate::rpc::{Channel, ChannelConfig, MESSAGE_BYTES_MAX};
use crate::runtime::{MailboxSender, Runtime, mailbox};

/// Bounds and times of a remote bookie's client.
#[derive(Clone, Debug)]
pub struct RemoteBookieConfig {
    /// Bytes of adds without an answer; a batch beyond it is answered `Overloaded`.
    pub in_flight_bytes: usize,
    /// The add stream must be open within this after the connection is.
    pub open_timeout: Duration,
    /// A read, a fence or a hint ends after this at the latest, with `Unreachable`. Callers have shorter
    /// deadlines of their own.
    pub call_timeout: Duration,
    /// The connection.
    pub channel: ChannelConfig,
}

impl Default for RemoteBookieConfig {
    fn default() -> Self {
        Self {
            in_flight_bytes: 64 * 1024 * 1024,
            open_timeout: Duration::from_secs(3),
            call_timeout: Duration::from_secs(30),
            channel: ChannelConfig::default(),
        }
    }
}

/// A bookie at an address. Its connection lives as long as this.
pub struct RemoteBookie {
    id: BookieId,
    channel: Channel,
    inbound: MailboxSender<Inbound>,
    in_flight: Arc<AtomicUsize>,
    config: RemoteBookieConfig,
}

impl RemoteBookie {
    /// A client of bookie `id` at `host:port`; connects when first used.
    pub fn new(runtime: Runtime, id: BookieId, address: &str, config: RemoteBookieConfig) -> Self {
        let channel = Channel::new(runtime.clone(), address, config.channel.clone());
        let in_flight = Arc::new(AtomicUsize::new(0));
        // Bounded by bytes on their way, see `add`; the capacity is not used.
        let (inbound, inbox) = mailbox(1);
        let driver = Driver::new(
            runtime.clone(),
            id,
            channel.clone(),
            inbox,
            Arc::clone(&in_flight),
            config.open_timeout,
        );
        runtime.tasks.spawn("remote bookie", driver.run());
        Self { id, channel, inbound, in_flight, config }
    }

    fn client(&self) -> Generated<Channel> {
        Generated::new(self.channel.clone()).max_decoding_message_size(MESSAGE_BYTES_MAX)
    }

    async fn call<T>(&self, call: impl Future<Output = Result<T, Status>>) -> Result<T, ReadError> {
        self.call_within(self.config.call_timeout, call).await
    }

    async fn call_within<T>(
        &self,
        limit: Duration,
        call: impl Future<Output = Result<T, Status>>,
    ) -> Result<T, ReadError> {
        self.channel
            .bounded(limit, call)
            .await
            .map_err(|status| ReadError::Unreachable(status.to_string()))
    }
}

/// Collects a run of entries; more than was asked for is refused.
async fn read(
    mut client: Generated<Channel>,
    request: wire::ReadRequest,
) -> Result<Result<Vec<Entry>, ReadError>, Status> {
    let ledger = LedgerId(request.ledger);
    let entries_max = request.entries_max.max(1) as usize;
    let bytes_max = request.bytes_max as usize + MESSAGE_BYTES_MAX;
    let mut answers = client.read(request).await?.into_inner();
    let mut entries = Vec::new();
    let mut bytes = 0;
    while let Some(answer) = answers.message().await? {
        if let Err(error) = read_failure_from_wire(answer.failure, answer.detail) {
            return Ok(Err(error));
        }
        for entry in answer.entries {
            bytes += entry.payload.len();
            entries.push(entry_from_wire(ledger, entry));
        }
        if entries.len() > entries_max || bytes > bytes_max {
            return Ok(Err(ReadError::Unknown("more entries than asked for".to_owned())));
        }
    }
    if entries.is_empty() {
        return Ok(Err(ReadError::Unknown("neither entries nor a failure".to_owned())));
    }
    Ok(Ok(entries))
}

#[async_trait]
impl BookieClient for RemoteBookie {
    fn add(&self, batch: AddBatch, sink: Arc<dyn AddSink>) {
        let cost = batch_cost(&batch);
        let before = self.in_flight.fetch_add(cost, Ordering::SeqCst);
        let is_over = before + cost > self.config.in_flight_bytes || cost > MESSAGE_BYTES_MAX / 2;
        let inbound = if is_over {
            reached!("remote bookie: too much on its way");
            self.in_flight.fetch_sub(cost, Ordering::SeqCst);
            // Answered from the driver's task: the caller may hold a lock that its sink takes.
            let answer = AddAnswer {
                bookie: self.id,
                ledger: batch.ledger,
                entries: entry_ids(&batch),
                result: Err(AddError::Overloaded),
            };
            Inbound::Refused(answer, sink)
        } else {
            Inbound::Add(Add { batch, sink })
        };
        let Err(inbound) = self.inbound.push(inbound) else { return };
        // The driver is gone, so its node is stopping.
        let (answer, sink) = match inbound {
            Inbound::Refused(answer, sink) => (answer, sink),
            Inbound::Add(add) => {
                let result = Err(AddError::Unreachable("this node is stopping".to_owned()));
                let entries = entry_ids(&add.batch);
                let answer =
                    AddAnswer { bookie: self.id, ledger: add.batch.ledger, entries, result };
                (answer, add.sink)
            }
        };
        sink.answered(answer);
    }

    async fn read(&self, request: ReadRequest) -> Result<Vec<Entry>, ReadError> {
        self.call(read(self.client(), read_to_wire(self.id, &request))).await?
    }

    async fn last_add_confirmed(
        &self,
        ledger: LedgerId,
        creator: CreatorToken,
        fence: bool,
    ) -> Result<LastAddConfirmed, ReadError> {
        let request = wire::LastAddConfirmedRequest {
            bookie: self.id.0,
            ledger: ledger.0,
            creator: creator.0,
            fence,
            wait: None,
        };
        let mut client = self.client();
        let answer = self.call(client.last_add_confirmed(request)).await?.into_inner();
        last_add_confirmed_from_wire(answer)
    }

    async fn wait_last_add_confirmed(
        &self,
        ledger: LedgerId,
        creator: CreatorToken,
        beyond: EntryId,
        patience: Duration,
    ) -> Result<LastAddConfirmed, ReadError> {
        let patience_ms = u64::try_from(patience.as_millis()).unwrap_or(u64::MAX);
        let request = wire::LastAddConfirmedRequest {
            bookie: self.id.0,
            ledger: ledger.0,
            creator: creator.0,
            fence: false,
            wait: Some(wire::Wait { beyond: beyond.0, patience_ms }),
        };
        let mut client = self.client();
        let limit = patience + self.config.call_timeout;
        let answer = self.call_within(limit, client.last_add_confirmed(request)).await?;
        last_add_confirmed_from_wire(answer.into_inner())
    }

    async fn tell_last_add_confirmed(
        &self,
        ledger: LedgerId,
        creator: CreatorToken,
        last_add_confirmed: EntryId,
    ) -> Result<(), ReadError> {
        let request = wire::TellRequest {
            bookie: self.id.0,
            ledger: ledger.0,
            creator: creator.0,
            last_add_confirmed: last_add_confirmed.0,
        };
        let mut client = self.client();
        let answer = self.call(client.tell_last_add_confirmed(request)).await?.into_inner();
        read_failure_from_wire(answer.failure, answer.detail)
    }
}
