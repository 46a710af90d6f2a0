//! The bookie service: a bookie answered over gRPC. Nothing is decided here; what is checked is that the
//! request is meant for this bookie and that its entries arrived undamaged.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::{Request, Response, Status, Streaming};

use super::Bookie;
use crate::domain::{
    AddAnswer, AddBatch, AddError, AddSink, BookieId, CreatorToken, Entry, EntryId, LedgerId,
    ReadError,
};
use crate::rpc::bookie_messages::{
    add_result_to_wire, batch_from_wire, entry_to_wire, last_add_confirmed_to_wire,
    read_error_to_wire, read_from_wire,
};
use crate::rpc::generated::bookie as wire;
use crate::rpc::generated::bookie::bookie_server;
use crate::rpc::{MESSAGE_BYTES, MESSAGE_BYTES_MAX};
use crate::runtime::{Mailbox, MailboxSender, Runtime, mailbox};
use crate::{mutant, reached};

/// Payload bytes of one stream that may wait for their answers; the stream is not read beyond it.
pub const STREAM_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Payload bytes one read answers at most, whatever it asks for.
pub const READ_BYTES_MAX: u32 = 16 * 1024 * 1024;
/// What a batch costs beside its payloads.
const BATCH_OVERHEAD_BYTES: usize = 256;

/// Answers the bookie service.
pub struct BookieService {
    runtime: Runtime,
    bookie: Bookie,
}

/// The generated service around [`BookieService`].
pub type BookieServer = bookie_server::BookieServer<BookieService>;

/// Takes one batch's answer to its stream.
struct BatchSink {
    number: u64,
    answers: MailboxSender<wire::AddAnswer>,
    /// Given back when the batch was answered.
    _room: OwnedSemaphorePermit,
}

impl AddSink for BatchSink {
    fn answered(&self, answer: AddAnswer) {
        // Admitted under the stream's bound; if the stream is gone nobody waits.
        let _ = self.answers.push(add_result_to_wire(self.number, answer.result));
    }
}

impl BookieService {
    /// The service for `rpc::Routes`.
    pub fn server(runtime: Runtime, bookie: Bookie) -> BookieServer {
        bookie_server::BookieServer::new(Self { runtime, bookie })
            .max_decoding_message_size(MESSAGE_BYTES_MAX)
    }

    fn check_meant(&self, meant: u64) -> Result<(), ReadError> {
        if BookieId(meant) == self.bookie.id() || mutant!("S20") {
            return Ok(());
        }
        reached!("bookie: a request was meant for another bookie");
        Err(ReadError::Unreachable(format!(
            "{} is gone, {} answers at its address",
            BookieId(meant),
            self.bookie.id()
        )))
    }
}

fn batch_cost(batch: &AddBatch) -> usize {
    let payloads: usize = batch.entries.iter().map(|entry| entry.payload.len() + 64).sum();
    BATCH_OVERHEAD_BYTES + payloads
}

/// Reads batches until the stream ends; answers find their own way.
async fn take_batches(
    bookie: Bookie,
    mut requests: Streaming<wire::AddRequests>,
    answers: MailboxSender<wire::AddAnswer>,
) {
    let room = Arc::new(Semaphore::new(STREAM_BYTES_MAX));
    while let Ok(Some(requests)) = requests.message().await {
        let meant_here = BookieId(requests.bookie) == bookie.id() || mutant!("S20");
        for batch in requests.batches {
            let (number, batch) = batch_from_wire(batch);
            let refusal = if meant_here {
                let damage = batch.entries.iter().find_map(|entry| entry.verify_digest().err());
                damage.map(|damage| {
                    reached!("bookie: an entry arrived damaged");
                    AddError::Damaged(damage.to_string())
                })
            } else {
                Some(AddError::Unreachable(format!("{} answers here", bookie.id())))
            };
            if let Some(refusal) = refusal {
                if answers.push(add_result_to_wire(number, Err(refusal))).is_err() {
                    return;
                }
                continue;
            }
            let cost = u32::try_from(batch_cost(&batch).min(STREAM_BYTES_MAX)).unwrap_or(u32::MAX);
            let Ok(permit) = Arc::clone(&room).acquire_many_owned(cost).await else { return };
            let sink = BatchSink { number, answers: answers.clone(), _room: permit };
            bookie.add(batch, Arc::new(sink));
        }
        if answers.is_closed() {
            return;
        }
    }
}

/// Everything answered since the last message, together.
fn answer_messages(
    answers: Mailbox<wire::AddAnswer>,
) -> impl futures_util::Stream<Item = Result<wire::AddAnswers, Status>> {
    stream::unfold(answers, |mut answers| async move {
        let ready = answers.take_all().await?;
        Some((Ok(wire::AddAnswers { answers: ready.into_iter().collect() }), answers))
    })
}

/// Entries in messages of about [`MESSAGE_BYTES`]; no entries are one empty message.
fn read_answers(entries: Vec<Entry>) -> Vec<wire::ReadAnswer> {
    let mut answers = vec![wire::ReadAnswer::default()];
    let mut bytes = 0;
    for entry in entries {
        if bytes >= MESSAGE_BYTES {
            answers.push(wire::ReadAnswer::default());
            bytes = 0;
        }
        bytes += entry.payload.len() + 64;
        if let Some(answer) = answers.last_mut() {
            answer.entries.push(entry_to_wire(entry));
        }
    }
    answers
}

#[tonic::async_trait]
impl bookie_server::Bookie for BookieService {
    type AddStream = BoxStream<'static, Result<wire::AddAnswers, Status>>;
    type ReadStream = BoxStream<'static, Result<wire::ReadAnswer, Status>>;

    async fn add(
        &self,
        request: Request<Streaming<wire::AddRequests>>,
    ) -> Result<Response<Self::AddStream>, Status> {
        let (sender, answers) = mailbox(1);
        self.runtime.tasks.spawn(
            "bookie add stream",
            take_batches(self.bookie.clone(), request.into_inner(), sender),
        );
        Ok(Response::new(answer_messages(answers).boxed()))
    }

    async fn read(
        &self,
        request: Request<wire::ReadRequest>,
    ) -> Result<Response<Self::ReadStream>, Status> {
        let request = request.into_inner();
        let result = match self.check_meant(request.bookie) {
            Ok(()) => {
                let mut read = read_from_wire(&request);
                read.entries_max = read.entries_max.max(1);
                read.bytes_max = read.bytes_max.min(READ_BYTES_MAX);
                self.bookie.read(read).await
            }
            Err(error) => Err(error),
        };
        let answers = match result {
            Ok(entries) => read_answers(entries),
            Err(error) => {
                let (failure, detail) = read_error_to_wire(error);
                vec![wire::ReadAnswer { entries: Vec::new(), failure: failure.into(), detail }]
            }
        };
        Ok(Response::new(stream::iter(answers).map(Ok).boxed()))
    }

    async fn last_add_confirmed(
        &self,
        request: Request<wire::LastAddConfirmedRequest>,
    ) -> Result<Response<wire::LastAddConfirmedAnswer>, Status> {
        let request = request.into_inner();
        let result = match self.check_meant(request.bookie) {
            Ok(()) => {
                let creator = CreatorToken(request.creator);
                let ledger = LedgerId(request.ledger);
                match request.wait.filter(|_| !request.fence) {
                    Some(wait) => {
                        let patience = Duration::from_millis(wait.patience_ms);
                        let beyond = EntryId(wait.beyond);
                        self.bookie.wait_last_add_confirmed(ledger, creator, beyond, patience).await
                    }
                    None => self.bookie.last_add_confirmed(ledger, creator, request.fence).await,
                }
            }
            Err(error) => Err(error),
        };
        Ok(Response::new(last_add_confirmed_to_wire(result)))
    }

    async fn tell_last_add_confirmed(
        &self,
        request: Request<wire::TellRequest>,
    ) -> Result<Response<wire::TellAnswer>, Status> {
        let request = request.into_inner();
        let result = match self.check_meant(request.bookie) {
            Ok(()) => {
                let creator = CreatorToken(request.creator);
                let confirmed = EntryId(request.last_add_confirmed);
                self.bookie
                    .tell_last_add_confirmed(LedgerId(request.ledger), creator, confirmed)
                    .await
            }
            Err(error) => Err(error),
        };
        Ok(Response::new(match result {
            Ok(()) => wire::TellAnswer::default(),
            Err(error) => {
                let (failure, detail) = read_error_to_wire(error);
                wire::TellAnswer { failure: failure.into(), detail }
            }
        }))
    }
}
