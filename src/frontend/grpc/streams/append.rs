//! An append: records of one call, stored as a prefix of what was sent. Its answers are made as they are taken,
//! and its requests are read meanwhile, so a client that takes no answers is not read for long either.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use tokio::sync::{Notify, OwnedSemaphorePermit};
use tonic::{Code, Status, Streaming};

use super::{facts, owner, raise_token, record};
use crate::broker::{
    AppendSession, AppendTerms, Broker, CloseReason, ConnectionFacts, Producer, ProducerOptions,
    ProducerSink, Publish, PublishError, PublishOutcome,
};
use crate::domain::WallTime;
use crate::frontend::grpc::GrpcConfig;
use crate::frontend::grpc::refusal::Refusal;
use crate::reached;
use crate::rpc::generated::public::{self as wire, Reason, append_answer, append_request};
use crate::runtime::Clock;

/// What the broker told and was not passed on yet: at most the outcomes of what is pending.
#[derive(Default)]
struct News {
    told: Mutex<Told>,
    changed: Notify,
}

#[derive(Default)]
struct Told {
    outcomes: VecDeque<PublishOutcome>,
    closed: Option<CloseReason>,
}

impl News {
    fn lock(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// What was told since the last time, when there is something.
    async fn next(&self) -> Told {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            {
                let mut told = self.lock();
                if !told.outcomes.is_empty() || told.closed.is_some() {
                    let closed = told.closed.clone();
                    return Told { outcomes: std::mem::take(&mut told.outcomes), closed };
                }
            }
            changed.await;
        }
    }
}

impl ProducerSink for News {
    fn published(&self, outcomes: Vec<PublishOutcome>) {
        self.lock().outcomes.extend(outcomes);
        self.changed.notify_waiters();
    }

    fn closed(&self, reason: CloseReason) {
        self.lock().closed = Some(reason);
        self.changed.notify_waiters();
    }
}

/// The call as a writer of its topic.
struct Writer {
    producer: Producer,
    token: Option<u64>,
    session: AppendSession,
}

enum Finish {
    /// The client has no more to say.
    Leave,
    /// A bad request: what was good before it is finished first.
    Refuse(Refusal),
}

struct AppendCall {
    clock: Clock,
    broker: Broker,
    config: GrpcConfig,
    requests: Streaming<wire::AppendRequest>,
    news: Arc<News>,
    writer: Option<Writer>,
    /// Sizes of records published and not told as committed.
    pending: VecDeque<usize>,
    pending_bytes: usize,
    published: u64,
    /// No more requests are read, and what follows when nothing is pending.
    finish: Option<Finish>,
    /// What ends the call after the answer that was just made.
    failed: Option<Refusal>,
    _permit: OwnedSemaphorePermit,
}

/// The answers of an append.
pub(super) fn answers(
    clock: Clock,
    broker: Broker,
    config: GrpcConfig,
    requests: Streaming<wire::AppendRequest>,
    permit: OwnedSemaphorePermit,
) -> BoxStream<'static, Result<wire::AppendAnswer, Status>> {
    let call = AppendCall {
        clock,
        broker,
        config,
        requests,
        news: Arc::default(),
        writer: None,
        pending: VecDeque::new(),
        pending_bytes: 0,
        published: 0,
        finish: None,
        failed: None,
        _permit: permit,
    };
    let answers = stream::unfold(Some(call), |call| async move {
        let mut call = call?;
        match call.answer().await {
            Ok(Some(item)) => Some((Ok(wire::AppendAnswer { item: Some(item) }), Some(call))),
            Ok(None) => None,
            Err(refusal) => Some((Err(Status::from(refusal)), None)),
        }
    });
    answers.boxed()
}

enum Step {
    Told(Told),
    Request(Result<Option<wire::AppendRequest>, Status>),
}

impl AppendCall {
    /// The next answer; `None` when all is said.
    async fn answer(&mut self) -> Result<Option<append_answer::Item>, Refusal> {
        if self.writer.is_none() {
            return self.open().await.map(Some);
        }
        loop {
            if let Some(refusal) = self.failed.take() {
                return Err(refusal);
            }
            if self.pending.is_empty()
                && let Some(finish) = self.finish.take()
            {
                return match finish {
                    Finish::Leave => Ok(None),
                    Finish::Refuse(refusal) => Err(refusal.rejected()),
                };
            }
            let may_read = self.finish.is_none()
                && self.pending.len() < self.config.pending_entries_max
                && self.pending_bytes < self.config.pending_bytes_max;
            let step = tokio::select! {
                biased;
                told = self.news.next() => Step::Told(told),
                request = self.requests.message(), if may_read => Step::Request(request),
            };
            match step {
                Step::Told(told) => {
                    let numbers = self.settle(told);
                    if !numbers.is_empty() {
                        let committed = wire::RecordsCommitted { numbers };
                        return Ok(Some(append_answer::Item::Committed(committed)));
                    }
                }
                Step::Request(request) => self.obey(request),
            }
        }
    }

    async fn open(&mut self) -> Result<append_answer::Item, Refusal> {
        let first = self.requests.message().await.map_err(|status| Refusal::unreadable(&status))?;
        let Some(append_request::Item::Open(open)) = first.and_then(|request| request.item) else {
            return Err(Refusal::invalid("the first request of an append is `open`"));
        };
        let topic = owner::topic(&self.broker, open.stream.as_ref(), true).await?;
        topic.log().make_stream().await.map_err(|error| Refusal::from(error).rejected())?;
        let told = match open.token {
            Some(token) => raise_token(&topic, token).await.map_err(Refusal::rejected)?,
            None => facts(topic.log().facts()),
        };
        let options = ProducerOptions {
            producer_id: 0,
            name: None,
            epoch: 0,
            metadata: Vec::new(),
            connection: ConnectionFacts {
                client_version: "grpc".to_owned(),
                connected_since: self.clock.wall(),
                ..ConnectionFacts::default()
            },
        };
        let producer = topic.add_producer(options, Arc::<News>::clone(&self.news)).await?;
        let session = AppendSession::default();
        self.writer = Some(Writer { producer, token: open.token, session });
        Ok(append_answer::Item::Opened(told))
    }

    fn obey(&mut self, request: Result<Option<wire::AppendRequest>, Status>) {
        let request = match request {
            Ok(Some(request)) => request,
            Ok(None) => {
                self.finish = Some(Finish::Leave);
                return;
            }
            Err(status) => {
                self.finish = Some(Finish::Refuse(Refusal::unreadable(&status)));
                return;
            }
        };
        let refused = match request.item {
            Some(append_request::Item::Record(record)) => {
                match record::check(&record, self.config.message_bytes_max) {
                    Ok(()) => {
                        self.publish(record);
                        return;
                    }
                    Err(refusal) => refusal,
                }
            }
            Some(append_request::Item::Open(_)) | None => Refusal::invalid("expected `record`"),
        };
        self.finish = Some(Finish::Refuse(refused));
    }

    fn publish(&mut self, new: wire::NewRecord) {
        let Some(Writer { producer, token, session }) = &self.writer else { return };
        let publish_time = new.publish_time.unwrap_or(self.clock.wall().0);
        let (expected, sequence_id) = (new.expected_number, self.published);
        let client_bytes = record::encode(new, producer.name(), sequence_id, publish_time);
        self.published += 1;
        self.pending_bytes += client_bytes.len();
        self.pending.push_back(client_bytes.len());
        producer.publish(vec![Publish {
            sequence_id,
            highest_sequence_id: None,
            message_count: 1,
            is_batch: false,
            publish_time: WallTime(publish_time),
            client_bytes,
            terms: AppendTerms { expected, token: *token, session: Some(session.clone()) },
        }]);
    }

    /// Numbers of what was committed, up to the first record that was not; that ends the call.
    fn settle(&mut self, told: Told) -> Vec<u64> {
        let mut numbers = Vec::with_capacity(told.outcomes.len());
        for outcome in told.outcomes {
            match outcome.result {
                Ok(_) => numbers.push(outcome.number),
                Err(error) => {
                    self.failed = Some(refusal_of(error));
                    return numbers;
                }
            }
            self.pending_bytes -= self.pending.pop_front().unwrap_or(0);
        }
        if let Some(reason) = told.closed {
            // What had no outcome never reached the log.
            reached!("grpc: a topic closed under an append");
            let message = format!("the stream is not served here any more: {reason:?}");
            self.failed = Some(Refusal::not_ready(message).rejected());
        }
        numbers
    }
}

fn refusal_of(error: PublishError) -> Refusal {
    let message = error.to_string();
    match error {
        PublishError::WrongNumber { next } => {
            Refusal::new(Code::Aborted, Reason::WrongNumber, message)
                .with(|failure| failure.next_number = Some(next))
                .rejected()
        }
        PublishError::StaleToken { current } => {
            Refusal::new(Code::FailedPrecondition, Reason::StaleToken, message)
                .with(|failure| failure.token = Some(current))
                .rejected()
        }
        PublishError::TooManyPending => Refusal::limit(message).rejected(),
        PublishError::TopicMoved | PublishError::ProducerClosed | PublishError::SessionBroken => {
            Refusal::not_ready(message).rejected()
        }
        PublishError::OutcomeUnknown(_) => Refusal::unknown(Reason::Storage, message),
    }
}
