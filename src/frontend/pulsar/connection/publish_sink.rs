//! Receipts of one producer, in the order of its sends, refusals of the front end's own included.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::BytesMut;

use super::handles::Handles;
use super::inflight::Inflight;
use super::outbox::Outbox;
use crate::broker::{CloseReason, ProducerSink, PublishOutcome};
use crate::domain::Position;
use crate::frontend::pulsar::codec::proto::{self, ServerError};
use crate::frontend::pulsar::codec::{Command, encode_command, encode_send_receipt};
use crate::frontend::pulsar::error_map;
use crate::runtime::Tasks;
use crate::{invariant, mutant, reached};

/// The request id of what the broker does unasked.
const UNASKED: u64 = u64::MAX;

/// A refusal by the front end itself.
pub(in crate::frontend::pulsar) struct Refusal {
    pub(in crate::frontend::pulsar) error: ServerError,
    pub(in crate::frontend::pulsar) message: String,
}

struct Pending {
    sequence_id: u64,
    highest_sequence_id: Option<u64>,
    bytes: usize,
    /// Refused by the front end: it only waits for its turn.
    refusal: Option<Refusal>,
}

#[derive(Default)]
struct State {
    pending: VecDeque<Pending>,
    /// The client knows the producer is open.
    announced: bool,
    /// The broker closed it: nothing more is said about it.
    closed: bool,
}

/// Where the broker tells outcomes of one producer.
pub(in crate::frontend::pulsar) struct PublishSink {
    producer_id: u64,
    generation: u64,
    outbox: Arc<Outbox>,
    inflight: Arc<Inflight>,
    handles: Arc<Handles>,
    tasks: Tasks,
    state: Mutex<State>,
}

enum Answer {
    Receipt { sequence_id: u64, highest_sequence_id: Option<u64>, position: Position },
    Error { sequence_id: u64, error: ServerError, message: String },
}

impl PublishSink {
    pub(in crate::frontend::pulsar) fn new(
        producer_id: u64,
        generation: u64,
        outbox: Arc<Outbox>,
        inflight: Arc<Inflight>,
        handles: Arc<Handles>,
        tasks: Tasks,
    ) -> Self {
        let state = Mutex::new(State::default());
        Self { producer_id, generation, outbox, inflight, handles, tasks, state }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers the client's request to open, unless the broker has closed the producer already.
    pub(in crate::frontend::pulsar) fn announce(&self, success: &Command) -> bool {
        let mut state = self.state();
        if state.closed {
            return false;
        }
        state.announced = true;
        self.outbox.command(success);
        true
    }

    /// Notes a send before it is given to the broker. False if the producer is closed: the send is dropped,
    /// the client sends it again on its next connection.
    pub(in crate::frontend::pulsar) fn register(
        &self,
        sequence_id: u64,
        highest_sequence_id: Option<u64>,
        bytes: usize,
        refusal: Option<Refusal>,
    ) -> bool {
        let mut state = self.state();
        if state.closed {
            return false;
        }
        self.inflight.add(bytes);
        let is_refused = refusal.is_some();
        state.pending.push_back(Pending { sequence_id, highest_sequence_id, bytes, refusal });
        if is_refused {
            let mut answers = Vec::new();
            self.take_refused(&mut state, &mut answers);
            self.tell(answers);
        }
        true
    }

    /// Takes refusals whose turn has come.
    fn take_refused(&self, state: &mut State, answers: &mut Vec<Answer>) {
        while let Some(Pending { refusal: Some(_), .. }) = state.pending.front() {
            let Some(pending) = state.pending.pop_front() else { return };
            self.inflight.remove(1, pending.bytes);
            if let Some(Refusal { error, message }) = pending.refusal {
                answers.push(Answer::Error { sequence_id: pending.sequence_id, error, message });
            }
        }
    }

    fn tell(&self, mut answers: Vec<Answer>) {
        if mutant!("F-order") {
            answers.reverse();
        }
        let mut buffer = BytesMut::with_capacity(answers.len() * 32);
        for answer in answers {
            match answer {
                Answer::Receipt { sequence_id, highest_sequence_id, position } => {
                    encode_send_receipt(
                        self.producer_id,
                        sequence_id,
                        highest_sequence_id,
                        position,
                        &mut buffer,
                    );
                }
                Answer::Error { sequence_id, error, message } => {
                    let error = proto::CommandSendError {
                        producer_id: self.producer_id,
                        sequence_id,
                        error: error.into(),
                        message,
                    };
                    encode_command(&Command::SendError(error), &mut buffer);
                }
            }
        }
        if !buffer.is_empty() {
            self.outbox.push(buffer.freeze(), None);
        }
    }

    /// Tells the client once that the producer is closed, and forgets what is pending.
    fn close(&self, state: &mut State) {
        if state.closed {
            return;
        }
        state.closed = true;
        let pending = std::mem::take(&mut state.pending);
        self.inflight.remove(pending.len(), pending.iter().map(|pending| pending.bytes).sum());
        if state.announced {
            self.handles.retire_producer(self.producer_id);
            self.outbox.command(&Command::CloseProducer(proto::CommandCloseProducer {
                producer_id: self.producer_id,
                request_id: UNASKED,
                ..Default::default()
            }));
        }
    }

    fn forget(&self) {
        self.handles.producers().remove_generation(self.producer_id, self.generation);
    }

    /// Closes the broker's producer too. Its id stays pending until that is done, so that the client's new
    /// producer does not meet the old one.
    fn close_at_broker(&self) {
        let (id, generation) = (self.producer_id, self.generation);
        let open = self.handles.producers().back_to_pending(id, generation);
        if let Some(open) = open {
            let handles = Arc::clone(&self.handles);
            self.tasks.spawn("pulsar-close-producer", async move {
                open.producer.close().await;
                handles.producers().remove_generation(id, generation);
            });
        }
    }
}

impl ProducerSink for PublishSink {
    fn published(&self, outcomes: Vec<PublishOutcome>) {
        let mut state = self.state();
        let mut answers = Vec::with_capacity(outcomes.len());
        let (mut count, mut bytes) = (0, 0);
        let mut must_close = false;
        for outcome in outcomes {
            if state.closed {
                return;
            }
            let Some(pending) = state.pending.pop_front() else {
                invariant!(false, "an outcome for {} that was not sent", outcome.sequence_id);
                return;
            };
            invariant!(
                pending.sequence_id == outcome.sequence_id,
                "outcome of {} comes before that of {}",
                outcome.sequence_id,
                pending.sequence_id
            );
            count += 1;
            bytes += pending.bytes;
            match outcome.result {
                Ok(position) => answers.push(Answer::Receipt {
                    sequence_id: pending.sequence_id,
                    highest_sequence_id: pending.highest_sequence_id,
                    position,
                }),
                Err(error) => {
                    reached!("pulsar connection: a publish failed");
                    // What comes after a failure must not overtake it: the client starts over from here.
                    must_close = true;
                    if let Some(code) = error_map::of_publish(&error) {
                        answers.push(Answer::Error {
                            sequence_id: pending.sequence_id,
                            error: code,
                            message: error.to_string(),
                        });
                    }
                    break;
                }
            }
            self.take_refused(&mut state, &mut answers);
        }
        self.inflight.remove(count, bytes);
        self.tell(answers);
        if must_close {
            self.close(&mut state);
            drop(state);
            self.close_at_broker();
        }
    }

    fn closed(&self, _reason: CloseReason) {
        self.close(&mut self.state());
        self.forget();
    }
}
