//! A write: the call is the ledger's one writer. Its answers are made as they are taken, and its requests are
//! read meanwhile, so a client that takes no answers is not read for long either.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use tokio::sync::{Notify, OwnedSemaphorePermit};
use tonic::{Code, Status, Streaming};

use super::{PURPOSE, PURPOSE_BYTES_MAX};
use crate::domain::{EntryId, LedgerId};
use crate::frontend::grpc::GrpcConfig;
use crate::frontend::grpc::refusal::Refusal;
use crate::ledger::{
    AppendRefused, ENSEMBLE_MAX, LedgerClient, LedgerWriter, Quorum, WriterEnd, WriterEvents,
};
use crate::reached;
use crate::rpc::generated::public::{self as wire, Outcome, Reason, write_answer, write_request};

/// What the writer last told.
#[derive(Default)]
struct News {
    told: Mutex<Told>,
    changed: Notify,
}

#[derive(Clone, Default)]
struct Told {
    /// Number of entries confirmed.
    confirmed: i64,
    ended: Option<WriterEnd>,
}

impl News {
    fn lock(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Completes when something was told that the caller has not seen.
    async fn after(&self, seen: i64) -> Told {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let told = self.lock().clone();
            if told.confirmed > seen || told.ended.is_some() {
                return told;
            }
            changed.await;
        }
    }
}

impl WriterEvents for News {
    fn confirmed(&self, _ledger: LedgerId, up_to: EntryId) {
        self.lock().confirmed = up_to.next().0;
        self.changed.notify_waiters();
    }

    fn ended(&self, _ledger: LedgerId, last_confirmed: EntryId, reason: WriterEnd) {
        {
            let mut told = self.lock();
            told.confirmed = told.confirmed.max(last_confirmed.next().0);
            told.ended = Some(reason);
        }
        self.changed.notify_waiters();
    }
}

enum Finish {
    /// The client has no more to say: the ledger stays open.
    Leave,
    Close,
    /// A bad request: what was good before it is finished first.
    Refuse(Refusal),
}

struct WriteSession {
    ledgers: LedgerClient,
    config: GrpcConfig,
    requests: Streaming<wire::WriteRequest>,
    news: Arc<News>,
    writer: Option<LedgerWriter>,
    /// Sizes of entries appended and not told as confirmed.
    pending: VecDeque<usize>,
    pending_bytes: usize,
    /// An entry the writer had no room for.
    held_back: Option<Bytes>,
    /// Entries told as confirmed.
    told: i64,
    /// No more requests are read, and what follows when nothing is pending.
    finish: Option<Finish>,
    _permit: OwnedSemaphorePermit,
}

/// The answers of a write.
pub(super) fn session(
    ledgers: LedgerClient,
    config: GrpcConfig,
    requests: Streaming<wire::WriteRequest>,
    permit: OwnedSemaphorePermit,
) -> BoxStream<'static, Result<wire::WriteAnswer, Status>> {
    let session = WriteSession {
        ledgers,
        config,
        requests,
        news: Arc::default(),
        writer: None,
        pending: VecDeque::new(),
        pending_bytes: 0,
        held_back: None,
        told: 0,
        finish: None,
        _permit: permit,
    };
    let answers = stream::unfold(Some(session), |session| async move {
        let mut session = session?;
        match session.answer().await {
            Ok(Some(item)) => {
                let is_last = matches!(item, write_answer::Item::Closed(_));
                let answer = wire::WriteAnswer { item: Some(item) };
                Some((Ok(answer), (!is_last).then_some(session)))
            }
            Ok(None) => None,
            Err(refusal) => Some((Err(Status::from(refusal)), None)),
        }
    });
    answers.boxed()
}

enum Step {
    Told(Told),
    Request(Result<Option<wire::WriteRequest>, Status>),
}

impl WriteSession {
    /// The next answer; `None` when all is said.
    async fn answer(&mut self) -> Result<Option<write_answer::Item>, Refusal> {
        if self.writer.is_none() {
            return self.create().await.map(Some);
        }
        loop {
            if self.pending.is_empty()
                && self.held_back.is_none()
                && let Some(finish) = self.finish.take()
            {
                return self.end(finish).await;
            }
            let may_read = self.finish.is_none()
                && self.held_back.is_none()
                && self.pending.len() < self.config.pending_entries_max
                && self.pending_bytes < self.config.pending_bytes_max;
            let step = tokio::select! {
                biased;
                told = self.news.after(self.told) => Step::Told(told),
                request = self.requests.message(), if may_read => Step::Request(request),
            };
            match step {
                Step::Told(told) if told.confirmed > self.told => {
                    return Ok(Some(self.confirmed(told.confirmed)));
                }
                Step::Told(told) => return Err(self.ended(told.ended)),
                Step::Request(request) => self.obey(request),
            }
        }
    }

    async fn create(&mut self) -> Result<write_answer::Item, Refusal> {
        let first = self.requests.message().await.map_err(|status| Refusal::unreadable(&status))?;
        let Some(write_request::Item::Create(create)) = first.and_then(|request| request.item)
        else {
            return Err(Refusal::invalid("the first request of a write is `create`"));
        };
        let quorum = match create.replication {
            None => self.config.quorum,
            Some(asked) => Quorum::new(asked.ensemble, asked.write, asked.ack)
                .map_err(|error| Refusal::invalid(error.to_string()))?,
        };
        if quorum.ensemble > ENSEMBLE_MAX {
            let rule = format!("an ensemble has at most {ENSEMBLE_MAX} bookies");
            return Err(Refusal::invalid(rule));
        }
        if create.purpose.len() > PURPOSE_BYTES_MAX {
            let rule = format!("a purpose has at most {PURPOSE_BYTES_MAX} bytes");
            return Err(Refusal::invalid(rule));
        }
        let purpose = format!("{PURPOSE} {}", create.purpose);
        let events = Arc::<News>::clone(&self.news);
        let writer = self.ledgers.create(quorum, purpose.trim_end(), events).await?;
        let ledger = writer.ledger().0;
        self.writer = Some(writer);
        Ok(write_answer::Item::Created(wire::LedgerCreated { ledger }))
    }

    fn obey(&mut self, request: Result<Option<wire::WriteRequest>, Status>) {
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
        let bytes_max = self.config.message_bytes_max;
        let refusal = match request.item {
            Some(write_request::Item::Append(entry)) if entry.payload.len() <= bytes_max => {
                self.append(entry.payload);
                return;
            }
            Some(write_request::Item::Append(_)) => {
                Refusal::invalid(format!("an entry has at most {bytes_max} bytes"))
            }
            Some(write_request::Item::Close(_)) => {
                self.finish = Some(Finish::Close);
                return;
            }
            Some(write_request::Item::Create(_)) | None => {
                Refusal::invalid("expected `append` or `close`")
            }
        };
        self.finish = Some(Finish::Refuse(refusal));
    }

    fn append(&mut self, payload: Bytes) {
        let Some(writer) = &self.writer else { return };
        match writer.append(vec![payload.clone()]) {
            Ok(_) => {
                self.pending_bytes += payload.len();
                self.pending.push_back(payload.len());
            }
            Err(AppendRefused::WindowFull(_)) => {
                reached!("grpc: the window of a ledger is full");
                self.held_back = Some(payload);
            }
            // Why it ended is being told.
            Err(AppendRefused::Ended(_)) => self.held_back = Some(payload),
        }
    }

    fn confirmed(&mut self, confirmed: i64) -> write_answer::Item {
        for _ in self.told..confirmed {
            self.pending_bytes -= self.pending.pop_front().unwrap_or(0);
        }
        self.told = confirmed;
        if let Some(payload) = self.held_back.take() {
            self.append(payload);
        }
        write_answer::Item::Confirmed(wire::EntriesConfirmed { last_entry: confirmed - 1 })
    }

    /// The writer ended by itself: of entries under way the outcome is unknown until the ledger is recovered.
    fn ended(&self, end: Option<WriterEnd>) -> Refusal {
        let end = end.unwrap_or(WriterEnd::Closed);
        let message = format!("the writer ended: {end}");
        let refusal = if end == WriterEnd::Fenced {
            reached!("grpc: a writer was fenced");
            Refusal::new(Code::FailedPrecondition, Reason::LedgerFenced, message)
        } else {
            Refusal::unknown(Reason::Storage, message)
        };
        let is_certain = self.pending.is_empty();
        let outcome = if is_certain { Outcome::Rejected } else { Outcome::Unknown };
        refusal
            .with(|failure| failure.outcome = outcome.into())
            .last_confirmed(EntryId(self.told - 1))
    }

    async fn end(&mut self, finish: Finish) -> Result<Option<write_answer::Item>, Refusal> {
        let writer = match (finish, self.writer.take()) {
            (Finish::Close, Some(writer)) => writer,
            (Finish::Refuse(refusal), _) => {
                return Err(refusal.rejected().last_confirmed(EntryId(self.told - 1)));
            }
            (Finish::Close | Finish::Leave, _) => return Ok(None),
        };
        let closed = writer.close().await?;
        Ok(Some(write_answer::Item::Closed(wire::LedgerFacts {
            ledger: closed.ledger.0,
            state: wire::LedgerState::Closed.into(),
            last_entry: closed.last_entry.0,
            length: closed.length,
        })))
    }
}
