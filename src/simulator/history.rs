//! What clients did and were told in one run. Every published message carries a unique number, so the
//! checks over it are linear. Outcomes that were never told stay in it as unknown.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use super::checkers::FinalChain;
use super::metadata_history::MetadataHistory;
use super::noted::Noted;
use crate::domain::Position;
use crate::runtime::sim::{Note, Recorder};

/// Where a message is: its entry, and its index there if the entry is a batch (else -1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The entry.
    pub position: Position,
    /// The index in the batch, -1 outside one.
    pub batch_index: i32,
}

impl std::fmt::Display for Place {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}:{}", self.position, self.batch_index)
    }
}

/// Subscriptions whose consumers go on until they have got everything.
pub const DRAINED_SUBSCRIPTIONS: &[&str] = &["exclusive", "shared"];

/// The Exclusive one of them.
pub const EXCLUSIVE: &str = DRAINED_SUBSCRIPTIONS[0];

/// A message's unique number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageNumber(pub u64);

/// What became of a publish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PublishFate {
    /// Receipt with this position.
    Committed(Place),
    /// Certainly not stored.
    Rejected,
    /// Nobody told.
    Unknown,
}

/// One publish.
#[derive(Clone, Debug)]
pub struct PublishRecord {
    /// The topic.
    pub topic: String,
    /// Which producer, numbered over the run; its messages are ordered.
    pub producer: u32,
    /// Virtual nanoseconds at the send.
    pub sent_at: u64,
    /// What became of it.
    pub fate: PublishFate,
    /// The broker it was sent to, `host:port`.
    pub broker: String,
}

/// One delivery to a consumer.
#[derive(Clone, Debug)]
pub struct DeliveryRecord {
    /// The topic.
    pub topic: String,
    /// The subscription; `None` for the final reader.
    pub subscription: String,
    /// Which consumer session, numbered over the run.
    pub session: u32,
    /// The message's number; `None` if the bytes were not a message of ours.
    pub number: Option<MessageNumber>,
    /// Where the broker says it is.
    pub position: Place,
    /// Virtual nanoseconds.
    pub at: u64,
}

/// One acknowledgement with its receipt.
#[derive(Clone, Debug)]
pub struct AckRecord {
    /// The topic.
    pub topic: String,
    /// The subscription.
    pub subscription: String,
    /// What was acknowledged.
    pub position: Place,
    /// Virtual nanoseconds when the receipt came; `None` if it never came.
    pub receipt_at: Option<u64>,
}

impl AckRecord {
    /// As a recording has it.
    fn note(&self, noted: Noted, number: u64) -> Note {
        let text = format!("{} {}, at {}", self.topic, self.subscription, self.position);
        Note::from(noted).facts(place_facts(number, self.position)).text(text)
    }
}

/// A session of a subscription that only acknowledges cumulatively: what it gets has no gaps.
#[derive(Clone, Debug)]
pub struct RewindRecord {
    /// The topic.
    pub topic: String,
    /// The session.
    pub session: u32,
    /// Where the seek just before it went, if there was one and it was answered.
    pub sought: Option<Rewind>,
}

/// Where a seek went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rewind {
    /// To the first message kept.
    Earliest,
    /// To this entry.
    To(Position),
}

/// The history of one run.
#[derive(Debug, Default)]
pub struct History {
    /// Publishes by number.
    pub publishes: BTreeMap<MessageNumber, PublishRecord>,
    /// Deliveries in order of receipt.
    pub deliveries: Vec<DeliveryRecord>,
    /// Acknowledgements in order of sending.
    pub acks: Vec<AckRecord>,
    /// By topic, the last place the Exclusive subscription asked to acknowledge up to.
    pub cumulative_acks: BTreeMap<String, Place>,
    /// By topic and subscription, the session that looked at what was left unacknowledged.
    pub last_sessions: BTreeMap<(String, String), u32>,
    /// By session, when its subscription was asked for, virtual nanoseconds.
    pub sessions_asked: BTreeMap<u32, u64>,
    /// Sessions without gaps, in order.
    pub rewinds: Vec<RewindRecord>,
    /// Topics whose consumed ledgers are deleted: their final log has lost its beginning.
    pub trimmed: BTreeSet<String>,
    /// What the broker did against the protocol, in words.
    pub protocol_violations: Vec<String>,
    /// Subscriptions whose properties were looked at, and those that had lost them.
    pub properties_seen: u64,
    /// Subscriptions that had lost their properties.
    pub properties_lost: Vec<String>,
    /// Per topic, the whole log as the final reader saw it.
    pub final_log: BTreeMap<String, Vec<(Place, Option<MessageNumber>)>>,
    /// Per topic, its chain of ledgers after the run.
    pub final_chains: BTreeMap<String, FinalChain>,
    /// What metadata's clients were told, and what its members did.
    pub metadata: MetadataHistory,
    /// Places by topic and subscription, of the deliveries seen so far.
    delivered: BTreeMap<(String, String), BTreeSet<Place>>,
    deliveries_seen: usize,
    /// Entries at the beginning of the final log that are known to be delivered.
    found_delivered: BTreeMap<(String, String), usize>,
    next_number: u64,
    next_producer: u32,
    next_session: u32,
    /// Writes down what happens as it happens, if the run is recorded.
    recorder: Recorder,
    /// Records of what has no answer yet, if the run is recorded.
    asked: BTreeMap<(u8, u64), u32>,
}

/// The one clock all events of a history are stamped with: the same for every client, whatever their nodes'
/// clocks say.
#[derive(Clone)]
pub struct HistoryClock(Arc<dyn Fn() -> Duration + Send + Sync>);

impl HistoryClock {
    /// A clock that asks this.
    pub fn new(now: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// Time since the start of the run.
    pub fn now(&self) -> Duration {
        (self.0)()
    }
}

/// Shared by the workloads of a run.
#[derive(Clone, Default)]
pub struct SharedHistory(Arc<Mutex<History>>);

impl SharedHistory {
    /// The history, locked; never hold it across an await.
    pub fn lock(&self) -> MutexGuard<'_, History> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// A history that notes in this recording what happens.
    pub fn recorded(recorder: Recorder) -> Self {
        let history = Self::default();
        history.lock().recorder = recorder;
        history
    }
}

impl History {
    /// A fresh producer number.
    pub fn new_producer(&mut self) -> u32 {
        self.next_producer += 1;
        self.next_producer
    }

    /// A fresh number for a consumer session that is about to be asked for.
    pub fn new_session(&mut self, at: u64) -> u32 {
        self.next_session += 1;
        self.sessions_asked.insert(self.next_session, at);
        self.next_session
    }

    /// Records a send and gives the message its number. Its fate is unknown until told.
    pub fn sent(&mut self, topic: &str, producer: u32, at: u64) -> MessageNumber {
        self.next_number += 1;
        let number = MessageNumber(self.next_number);
        let record = PublishRecord {
            topic: topic.to_owned(),
            producer,
            sent_at: at,
            fate: PublishFate::Unknown,
            broker: String::new(),
        };
        self.publishes.insert(number, record);
        self.note_question(Noted::Publish, number.0, || {
            let facts = [number.0 as i64, i64::from(producer), 0];
            Note::from(Noted::Publish).facts(facts).text(topic)
        });
        number
    }

    /// Notes, in a recording, what a client asks; the number is the client's own among its sort.
    pub fn note_question(&mut self, what: Noted, number: u64, note: impl FnOnce() -> Note) {
        let record = self.recorder.note(note);
        if record != 0 {
            self.asked.insert((what as u8, number), record);
        }
    }

    /// Notes, in a recording, what came of it.
    pub fn note_answer(&mut self, what: Noted, number: u64, note: impl FnOnce(&Self) -> Note) {
        let record = self.recorder.note(|| note(self));
        if let Some(question) = self.asked.remove(&(what as u8, number)) {
            self.recorder.also(record, question);
        }
    }

    /// Notes something of a client, in a recording.
    pub fn note(&self, note: impl FnOnce() -> Note) {
        self.recorder.note(note);
    }

    /// Records which broker a message was sent to.
    pub fn sent_to(&mut self, number: MessageNumber, broker: String) {
        if let Some(record) = self.publishes.get_mut(&number) {
            record.broker = broker;
        }
    }

    /// Records what became of a publish.
    pub fn told(&mut self, number: MessageNumber, fate: PublishFate) {
        if let Some(record) = self.publishes.get_mut(&number) {
            record.fate = fate;
        }
        self.note_answer(Noted::Publish, number.0, |_| match fate {
            PublishFate::Committed(place) => Note::from(Noted::Committed)
                .facts(place_facts(number.0, place))
                .text(place.to_string()),
            _ => Note::from(Noted::Rejected).facts([number.0 as i64, 0, 0]),
        });
    }

    /// Records a delivery.
    pub fn delivered(&mut self, delivery: DeliveryRecord) {
        self.recorder.note(|| {
            let number = delivery.number.map_or(0, |number| number.0);
            let DeliveryRecord { topic, subscription, session, position, .. } = &delivery;
            let text = format!("{topic} {subscription}, session {session}, at {position}");
            Note::from(Noted::Delivered).facts(place_facts(number, *position)).text(text)
        });
        self.deliveries.push(delivery);
    }

    /// Records an acknowledgement without receipt; answers its number.
    pub fn asked_ack(&mut self, ack: AckRecord) -> usize {
        let number = self.acks.len();
        self.note_question(Noted::Acknowledge, number as u64, || {
            ack.note(Noted::Acknowledge, number as u64)
        });
        self.acks.push(ack);
        number
    }

    /// Records when the receipt of an acknowledgement came.
    pub fn told_ack(&mut self, ack: usize, at: u64) {
        if let Some(record) = self.acks.get_mut(ack) {
            record.receipt_at = Some(at);
        }
        self.note_answer(Noted::Acknowledge, ack as u64, |history| {
            let record = history.acks.get(ack);
            record.map(|record| record.note(Noted::Acknowledged, ack as u64)).unwrap_or_default()
        });
    }

    /// A message of the final log that a subscription has not got yet, in words; `None` if there is none.
    pub fn undelivered(&mut self) -> Option<String> {
        for delivery in self.deliveries.iter().skip(self.deliveries_seen) {
            let key = (delivery.topic.clone(), delivery.subscription.clone());
            self.delivered.entry(key).or_default().insert(delivery.position);
        }
        self.deliveries_seen = self.deliveries.len();
        for (topic, log) in &self.final_log {
            for subscription in DRAINED_SUBSCRIPTIONS {
                let key = (topic.clone(), (*subscription).to_owned());
                let got = self.delivered.entry(key.clone()).or_default();
                // What was found delivered stays so: a long log is gone through once.
                let found = self.found_delivered.entry(key).or_default();
                let missing = log.iter().skip(*found).position(|(place, _)| !got.contains(place));
                *found = missing.map_or(log.len(), |missing| *found + missing);
                if let Some((place, _)) = log.get(*found) {
                    return Some(format!("{topic}/{subscription} never got {place}"));
                }
            }
        }
        None
    }

    /// Records that the Exclusive subscription asked to acknowledge everything up to here.
    pub fn asked_cumulative_ack(&mut self, topic: &str, place: Place) {
        let last = self.cumulative_acks.entry(topic.to_owned()).or_insert(place);
        *last = (*last).max(place);
    }

    /// Publishes whose receipt came.
    pub fn committed(&self) -> impl Iterator<Item = (MessageNumber, &PublishRecord, Place)> {
        self.publishes.iter().filter_map(|(number, record)| match record.fate {
            PublishFate::Committed(position) => Some((*number, record, position)),
            PublishFate::Rejected | PublishFate::Unknown => None,
        })
    }
}

/// A number and a place, as a recording has them.
fn place_facts(number: u64, place: Place) -> [i64; 3] {
    [number as i64, place.position.ledger.0 as i64, place.position.entry.0]
}

/// Bytes of a body before the filler.
const HEAD_BYTES: usize = 16;
/// The filler repeats after as many.
const FILLER_BYTES: usize = 256;

/// What the byte at each place of a body is, but for the head.
fn filler(number: MessageNumber) -> [u8; FILLER_BYTES] {
    std::array::from_fn(|at| (number.0 as u8).wrapping_add(at as u8))
}

/// The body of a message: its number and filler that depends on it, so that mixed-up bytes show.
pub fn encode_body(number: MessageNumber, length: usize) -> Vec<u8> {
    let length = length.max(HEAD_BYTES);
    let filler = filler(number);
    let mut body = Vec::with_capacity(length.next_multiple_of(FILLER_BYTES));
    while body.len() < length {
        body.extend_from_slice(&filler);
    }
    body.truncate(length);
    body[..8].copy_from_slice(&number.0.to_be_bytes());
    body[8..HEAD_BYTES].copy_from_slice(&crate::runtime::mix(number.0).to_be_bytes());
    body
}

/// The number in a message's body, `None` if any byte is not as [`encode_body`] made it.
pub fn decode_body(body: &[u8]) -> Option<MessageNumber> {
    let head = body.get(..HEAD_BYTES)?;
    let number = MessageNumber(u64::from_be_bytes(head[..8].try_into().ok()?));
    let filler = filler(number);
    let mut parts = body.chunks(FILLER_BYTES);
    let first = parts.next()?;
    let is_good = head[8..] == crate::runtime::mix(number.0).to_be_bytes()
        && first[HEAD_BYTES..] == filler[HEAD_BYTES..first.len()]
        && parts.all(|part| part == &filler[..part.len()]);
    is_good.then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_byte_is_no_message_of_ours() {
        for length in [16, 100, 256, 700] {
            let body = encode_body(MessageNumber(77), length);
            assert_eq!((decode_body(&body), body.len()), (Some(MessageNumber(77)), length));
            for at in 0..body.len() {
                let mut changed = body.clone();
                changed[at] ^= 1;
                assert_eq!(decode_body(&changed), None, "byte {at} of {length}");
            }
        }
    }
}
