//! Publishing: entries into the turn's batch, one append a turn, outcomes to each producer in order.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::command::Reply;
use super::handle::{Producer, ProducerShared};
use super::producers::ProducerKey;
use super::task::TopicTask;
use crate::broker::dispatch::Event;
use crate::broker::managed_ledger::{AppendError, AppendOutcome, NewEntry};
use crate::broker::messages::{CloseReason, ProducerSink, Publish, PublishError, PublishOutcome};
use crate::broker::service::{BrokerError, ProducerOptions};
use crate::domain::Position;
use crate::{invariant, mutant, reached};

/// An entry without outcome.
pub(super) struct PendingPublish {
    producer: ProducerKey,
    tag: u64,
    sequence_id: u64,
    highest_sequence_id: Option<u64>,
    messages: u32,
    bytes: u64,
    /// Counted in the topic's pending entries.
    admitted: bool,
    /// Never appended; its refusal waits for the outcomes of those before it.
    refused: Option<PublishError>,
}

impl TopicTask {
    pub(super) fn add_producer(
        &mut self,
        options: ProducerOptions,
        sink: Arc<dyn ProducerSink>,
        reply: Reply<Result<Producer, BrokerError>>,
    ) {
        if self.closing.is_some() {
            let _ = reply.send(Err(BrokerError::NotReady("the topic is closing".to_owned())));
            return;
        }
        let name_bytes = options.name.as_ref().map_or(0, String::len);
        if name_bytes > self.config.name_bytes_max || options.name.as_deref() == Some("") {
            let rule = format!("a producer's name has 1 to {} bytes", self.config.name_bytes_max);
            let _ = reply.send(Err(BrokerError::Invalid(rule)));
            return;
        }
        let added = self.producers.add(options, sink, &self.names, self.now);
        let answer = added.map(|(key, name, replaced)| {
            if let Some(replaced) = replaced {
                reached!("topic: producer replaced by a higher epoch");
                replaced.sink.closed(CloseReason::Replaced);
            }
            let topic = Arc::clone(&self.shared);
            Producer { inner: Arc::new(ProducerShared { key, name, topic }) }
        });
        // If the caller is gone, dropping its handle closes the producer again.
        let _ = reply.send(answer);
    }

    pub(super) fn publish(&mut self, key: ProducerKey, entries: Vec<Publish>, admitted: bool) {
        let Some(producer) = self.producers.get_mut(key) else {
            // Its sink was told `closed`; nothing may follow.
            if admitted {
                self.shared.pending.fetch_sub(entries.len(), Ordering::Relaxed);
            }
            return;
        };
        producer.pending += entries.len();
        let refused = if self.closing.is_some() {
            Some(PublishError::TopicMoved)
        } else if producer.closing {
            Some(PublishError::ProducerClosed)
        } else if !admitted {
            reached!("topic: publish refused, too many pending");
            Some(PublishError::TooManyPending)
        } else {
            None
        };
        for entry in entries {
            if refused.is_some()
                && let Some(session) = &entry.terms.session
            {
                session.break_off();
            }
            let tag = self.next_tag;
            self.pending.push_back(PendingPublish {
                producer: key,
                tag,
                sequence_id: entry.sequence_id,
                highest_sequence_id: entry.highest_sequence_id,
                messages: entry.message_count,
                bytes: entry.client_bytes.len() as u64,
                admitted,
                refused: refused.clone(),
            });
            if refused.is_none() {
                self.next_tag += 1;
                self.batch.push(NewEntry {
                    tag,
                    message_count: entry.message_count.max(1),
                    is_batch: entry.is_batch,
                    publish_time: entry.publish_time,
                    client_bytes: entry.client_bytes,
                    terms: entry.terms,
                });
            }
        }
        if refused.is_some() {
            self.answer_refused();
        }
    }

    /// Appends what this turn brought, in one call.
    pub(super) fn append_batch(&mut self) {
        if !self.batch.is_empty() {
            self.ledger.append(std::mem::take(&mut self.batch));
        }
    }

    /// The managed ledger's outcomes, in the order of appending.
    pub(super) fn appended(&mut self, outcomes: Vec<AppendOutcome>) {
        let mut committed = false;
        for outcome in outcomes {
            self.answer_refused();
            let Some(pending) = self.pending.pop_front() else {
                invariant!(false, "outcome {} of an entry that is not pending", outcome.tag);
                return;
            };
            invariant!(
                pending.tag == outcome.tag,
                "outcome of entry {} comes where {} is next",
                outcome.tag,
                pending.tag
            );
            let result = outcome.result.map_err(|error| match error {
                AppendError::Fenced => PublishError::TopicMoved,
                AppendError::TooManyPending => PublishError::TooManyPending,
                AppendError::WrongNumber { next } => PublishError::WrongNumber { next },
                AppendError::StaleToken { current } => PublishError::StaleToken { current },
                AppendError::SessionBroken => PublishError::SessionBroken,
                AppendError::OutcomeUnknown(reason) => PublishError::OutcomeUnknown(reason),
            });
            if result.is_ok() {
                committed = true;
                self.inward.add(u64::from(pending.messages), pending.bytes, self.now);
                self.shared.carry(u64::from(pending.messages), pending.bytes);
            }
            self.answer(pending, outcome.number, result);
        }
        self.answer_refused();
        // Receipts leave before deliveries.
        self.send_outcomes();
        if committed {
            let end = self.ledger.last_confirmed();
            self.drive_all(&Event::NewData { end });
        }
    }

    /// Refusals that are first in line.
    fn answer_refused(&mut self) {
        while let Some(first) = self.pending.front_mut()
            && let Some(error) = first.refused.take()
            && let Some(pending) = self.pending.pop_front()
        {
            self.answer(pending, 0, Err(error));
        }
    }

    fn answer(
        &mut self,
        pending: PendingPublish,
        number: u64,
        result: Result<Position, PublishError>,
    ) {
        if pending.admitted {
            self.shared.pending.fetch_sub(1, Ordering::Relaxed);
        }
        let Some(producer) = self.producers.get_mut(pending.producer) else { return };
        producer.pending -= 1;
        if result.is_ok() {
            producer.inward.add(u64::from(pending.messages), pending.bytes, self.now);
        }
        if producer.outbox.is_empty() {
            self.touched.push(pending.producer);
        }
        producer.outbox.push(PublishOutcome {
            sequence_id: pending.sequence_id,
            highest_sequence_id: pending.highest_sequence_id,
            number,
            result,
        });
    }

    /// Sends what is in the outboxes, one call a producer.
    pub(super) fn send_outcomes(&mut self) {
        for key in std::mem::take(&mut self.touched) {
            if let Some(producer) = self.producers.get_mut(key) {
                let mut outcomes = std::mem::take(&mut producer.outbox);
                if mutant!("P-order") {
                    outcomes.reverse();
                }
                if !outcomes.is_empty() {
                    producer.sink.published(outcomes);
                }
                self.producers.finish_close(key);
            }
        }
    }

    /// The topic ends: what is pending may or may not be stored.
    pub(super) fn abandon_pending(&mut self, reason: &str) {
        self.batch.clear();
        while let Some(mut pending) = self.pending.pop_front() {
            let error = pending
                .refused
                .take()
                .unwrap_or_else(|| PublishError::OutcomeUnknown(reason.to_owned()));
            self.answer(pending, 0, Err(error));
        }
        self.send_outcomes();
    }
}
