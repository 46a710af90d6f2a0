//! The one task that owns the add stream.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::mpsc;
use tonic::Streaming;

use super::pending::{Add, Due, Pending};
use crate::domain::{AddAnswer, AddSink, BookieId};
use crate::reached;
use crate::rpc::generated::bookie::bookie_client::BookieClient as Generated;
use crate::rpc::generated::bookie::{AddAnswers, AddRequests};
use crate::rpc::{Channel, MESSAGE_BYTES_MAX, ReceiverStream};
use crate::runtime::{Mailbox, Runtime};

/// Messages handed to the connection and not yet taken by it. Few: while they wait, batches gather into
/// larger messages.
const OUTGOING_MESSAGES: usize = 2;

/// What the handle sends.
pub(super) enum Inbound {
    /// A batch to send.
    Add(Add),
    /// A batch that was refused; its answer.
    Refused(AddAnswer, Arc<dyn AddSink>),
}

/// An open stream.
struct Open {
    outgoing: mpsc::Sender<AddRequests>,
    answers: Streaming<AddAnswers>,
}

pub(super) struct Driver {
    runtime: Runtime,
    channel: Channel,
    inbox: Mailbox<Inbound>,
    in_flight: Arc<AtomicUsize>,
    open_timeout: Duration,
    pending: Pending,
    /// No handle is left: nothing new will come.
    closing: bool,
}

impl Driver {
    pub(super) fn new(
        runtime: Runtime,
        id: BookieId,
        channel: Channel,
        inbox: Mailbox<Inbound>,
        in_flight: Arc<AtomicUsize>,
        open_timeout: Duration,
    ) -> Self {
        let pending = Pending::new(id);
        Self { runtime, channel, inbox, in_flight, open_timeout, pending, closing: false }
    }

    /// Runs until the handle is gone and everything is answered.
    pub(super) async fn run(mut self) {
        loop {
            match self.inbox.take_all().await {
                Some(inbound) => self.take(inbound),
                None => return,
            }
            if self.pending.is_empty() {
                continue;
            }
            let reason = match self.open().await {
                Ok(open) => self.exchange(open).await,
                Err(reason) => reason,
            };
            if !self.pending.is_empty() {
                reached!("remote bookie: the add stream broke");
            }
            for due in self.pending.broken(&reason) {
                self.answer(due);
            }
            if self.closing {
                return;
            }
        }
    }

    fn take(&mut self, inbound: VecDeque<Inbound>) {
        for inbound in inbound {
            match inbound {
                Inbound::Add(add) => self.pending.add(add),
                Inbound::Refused(answer, sink) => sink.answered(answer),
            }
        }
    }

    fn answer(&self, due: Due) {
        self.in_flight.fetch_sub(due.cost, Ordering::SeqCst);
        due.sink.answered(due.answer);
    }

    async fn open(&self) -> Result<Open, String> {
        self.channel.ready().await.map_err(|error| error.to_string())?;
        let (outgoing, requests) = mpsc::channel(OUTGOING_MESSAGES);
        let mut client =
            Generated::new(self.channel.clone()).max_decoding_message_size(MESSAGE_BYTES_MAX);
        let opening = client.add(ReceiverStream::new(requests));
        match self.runtime.clock.timeout(self.open_timeout, opening).await {
            Ok(Ok(answers)) => Ok(Open { outgoing, answers: answers.into_inner() }),
            Ok(Err(status)) => Err(status.to_string()),
            Err(elapsed) => Err(elapsed.to_string()),
        }
    }

    /// Sends and receives until the stream ends; answers why.
    async fn exchange(&mut self, open: Open) -> String {
        let Open { outgoing, mut answers } = open;
        loop {
            if self.closing && self.pending.is_empty() {
                return "the client was dropped".to_owned();
            }
            tokio::select! {
                biased;
                message = answers.message() => match message {
                    Ok(Some(message)) => {
                        for answer in message.answers {
                            if let Some(due) = self.pending.answered(answer) {
                                self.answer(due);
                            }
                        }
                    }
                    Ok(None) => return "the bookie ended the stream".to_owned(),
                    Err(status) => return status.to_string(),
                },
                permit = outgoing.reserve(), if self.pending.has_unsent() => match permit {
                    Ok(permit) => permit.send(self.pending.next_message()),
                    Err(_) => return "the connection dropped the stream".to_owned(),
                },
                inbound = self.inbox.take_all(), if !self.closing => match inbound {
                    Some(inbound) => self.take(inbound),
                    None => self.closing = true,
                },
            }
        }
    }
}
