//! The machine of appends against a storage that confirms, fails and recovers as it likes: every entry
//! has one outcome, in order; what is committed is stored once, in order of appending, under dense numbers; who
//! expects another number is told the right one; nothing of a session is taken behind a refusal.

use std::time::Duration;

use bytes::Bytes;
use proptest::prelude::*;
use seawall::broker::managed_ledger::machine::{Effect, Machine, MachineLimits, Settle};
use seawall::broker::managed_ledger::{AppendError, AppendOutcome, NewEntry};
use seawall::broker::{AppendSession, AppendTerms, EntryHeader};
use seawall::domain::{EntryId, FormatLevel, Instant, LedgerId, Position, WallTime};

#[derive(Clone, Debug)]
enum Step {
    Append(u64),
    /// A session of so many entries, each expecting its number, but for one of them; in one call or one by one.
    Session(u64, u64, bool),
    Send,
    Confirm(i64),
    Fail,
    /// Decides the end this many entries above what was confirmed.
    Settle(i64),
    Open,
    /// Late news of a former ledger.
    Late(i64),
    Time,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (1_u64..6).prop_map(Step::Append),
        3 => (1_u64..6, 0_u64..9, any::<bool>())
            .prop_map(|(count, wrong, at_once)| Step::Session(count, wrong, at_once)),
        5 => Just(Step::Send),
        4 => (1_i64..6).prop_map(Step::Confirm),
        1 => Just(Step::Fail),
        3 => (0_i64..5).prop_map(Step::Settle),
        3 => Just(Step::Open),
        1 => (0_i64..9).prop_map(Step::Late),
        1 => Just(Step::Time),
    ];
    proptest::collection::vec(step, 0..120)
}

#[derive(Default)]
struct Storage {
    ledgers: Vec<Vec<Bytes>>,
    confirmed: i64,
    writable: bool,
    creating: bool,
    settling: Option<Settle>,
    outcomes: Vec<AppendOutcome>,
    committed: Vec<(Position, Bytes)>,
}

impl Storage {
    fn current(&self) -> LedgerId {
        LedgerId(self.ledgers.len() as u64)
    }

    fn perform(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Create => self.creating = true,
                Effect::Settle(ledger, how) => {
                    assert_eq!(ledger, self.current());
                    self.settling = Some(how);
                    self.writable = false;
                }
                Effect::Committed { ledger, first, payloads, .. } => {
                    for (entry, payload) in (first.0..).zip(payloads) {
                        self.committed.push((Position::new(ledger, EntryId(entry)), payload));
                    }
                }
                Effect::Outcomes(outcomes) => self.outcomes.extend(outcomes),
                Effect::Fenced(reason) => panic!("fenced: {reason}"),
            }
        }
    }
}

/// The time of the call that brings this entry first.
fn appended_at(tag: u64) -> WallTime {
    WallTime(1_000_000 + tag)
}

fn entry(tag: u64, terms: AppendTerms) -> NewEntry {
    NewEntry {
        tag,
        message_count: 2,
        is_batch: true,
        publish_time: WallTime(tag),
        client_bytes: Bytes::from(tag.to_string()),
        terms,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn every_entry_is_stored_once_and_in_order(steps in steps()) {
        let limits = MachineLimits {
            pending_max: 12,
            entries_max: 7,
            bytes_max: 400,
            age_max: Duration::from_secs(1),
        };
        let mut machine = Machine::new(limits, 0);
        let mut storage = Storage { confirmed: -1, ..Storage::default() };
        let mut now = Instant(0);
        let mut tag = 0;
        // The first entry of each call.
        let mut calls = std::collections::BTreeSet::new();
        // What each entry of a session expects, and where its session began.
        let mut expecting = std::collections::BTreeMap::new();
        // Whatever happened, it comes to rest when storage works again.
        let rest = [Step::Open, Step::Send, Step::Confirm(99), Step::Settle(99)];
        let steps = steps.into_iter().chain(rest.into_iter().cycle().take(100));
        for step in steps {
            match step {
                Step::Append(count) => {
                    let entries = (tag..tag + count).map(|tag| entry(tag, AppendTerms::default()));
                    calls.insert(tag);
                    machine.append(entries.collect(), appended_at(tag));
                    tag += count;
                }
                Step::Session(count, wrong, at_once) => {
                    let (session, session_tag) = (AppendSession::default(), tag);
                    // Raising nothing tells the next number.
                    let next = machine.raise_token(0);
                    // Behind the wrong one somebody else takes the number it should have expected, so that
                    // those after it expect the right ones again.
                    let mut entries = Vec::new();
                    for place in 0..count {
                        let expected = next + place + if place == wrong { 3 } else { 0 };
                        let terms = AppendTerms {
                            expected: Some(expected),
                            token: None,
                            session: Some(session.clone()),
                        };
                        expecting.insert(tag, (expected, session_tag));
                        entries.push(entry(tag, terms));
                        tag += 1;
                        if place == wrong {
                            entries.push(entry(tag, AppendTerms::default()));
                            tag += 1;
                        }
                    }
                    if at_once {
                        calls.insert(session_tag);
                        machine.append(entries, appended_at(session_tag));
                    } else {
                        for entry in entries {
                            let at = appended_at(entry.tag);
                            calls.insert(entry.tag);
                            machine.append(vec![entry], at);
                        }
                    }
                }
                Step::Send => {
                    let payloads = machine.sendable(now);
                    if storage.writable && !payloads.is_empty() {
                        let count = payloads.len();
                        let ledger = storage.ledgers.last_mut().expect("an open ledger");
                        let first = EntryId(ledger.len() as i64);
                        ledger.extend(payloads);
                        machine.sent(first, count);
                    }
                }
                Step::Confirm(count) => {
                    let sent = storage.ledgers.last().map_or(0, Vec::len) as i64;
                    let up_to = (storage.confirmed + count).min(sent - 1);
                    if storage.writable && up_to > storage.confirmed {
                        storage.confirmed = up_to;
                        machine.confirmed(storage.current(), EntryId(up_to));
                    }
                }
                Step::Fail if storage.writable => {
                    storage.writable = false;
                    machine.writer_ended(storage.current(), false);
                }
                Step::Settle(above) => {
                    if let Some(how) = storage.settling.take() {
                        let ledger = storage.ledgers.last_mut().expect("a settling ledger");
                        let sent = ledger.len() as i64;
                        let last = (storage.confirmed + above).min(sent - 1);
                        prop_assert!(how == Settle::Recover || storage.confirmed == sent - 1);
                        ledger.truncate(usize::try_from(last + 1).expect("a length"));
                        machine.settled(EntryId(last));
                    }
                }
                Step::Open if storage.creating => {
                    storage.creating = false;
                    storage.writable = true;
                    storage.confirmed = -1;
                    storage.ledgers.push(Vec::new());
                    machine.opened(storage.current(), now);
                }
                Step::Late(up_to) if storage.ledgers.len() > 1 => {
                    machine.confirmed(LedgerId(1), EntryId(up_to));
                    machine.writer_ended(LedgerId(1), true);
                }
                Step::Time => now = now + Duration::from_millis(400),
                Step::Fail | Step::Open | Step::Late(_) => {}
            }
            storage.perform(machine.settle(now));
        }
        let tags: Vec<_> = storage.outcomes.iter().map(|outcome| outcome.tag).collect();
        prop_assert_eq!(tags, (0..tag).collect::<Vec<_>>());
        let mut stored = Vec::new();
        for (ledger, entries) in (1..).zip(&storage.ledgers) {
            prop_assert!(entries.len() <= 7);
            for (entry, payload) in (0..).zip(entries) {
                stored.push((Position::new(LedgerId(ledger), EntryId(entry)), payload.clone()));
            }
        }
        prop_assert_eq!(&storage.committed, &stored);
        let mut stored = stored.into_iter();
        let mut index = 0;
        let mut committed = 0;
        let mut broken = std::collections::BTreeSet::new();
        for outcome in &storage.outcomes {
            let expected = expecting.get(&outcome.tag);
            if let Some((_, session)) = expected
                && outcome.result.is_err()
            {
                broken.insert(*session);
            }
            match &outcome.result {
                Ok(position) => {
                    prop_assert_eq!(outcome.number, committed);
                    committed += 1;
                    if let Some((expected, session)) = expected {
                        prop_assert_eq!(*expected, outcome.number);
                        prop_assert!(!broken.contains(session), "taken behind a refusal");
                    }
                    let (at, payload) = stored.next().expect("stored as answered");
                    prop_assert_eq!(*position, at);
                    let (header, bytes) = EntryHeader::split(&payload, FormatLevel::NEWEST).expect("our header");
                    prop_assert_eq!(bytes, Bytes::from(outcome.tag.to_string()));
                    prop_assert_eq!(header.first_index, index);
                    let call = calls.range(..=outcome.tag).next_back().expect("its call");
                    prop_assert_eq!(header.broker_time, appended_at(*call));
                    index += 2;
                }
                Err(AppendError::WrongNumber { next }) => {
                    // All before it is committed when it is heard.
                    prop_assert_eq!(*next, committed);
                    prop_assert!(expected.is_some_and(|(expected, _)| *expected != committed));
                }
                Err(AppendError::SessionBroken) => prop_assert!(expected.is_some()),
                Err(error) => prop_assert_eq!(error, &AppendError::TooManyPending),
            }
        }
        prop_assert!(stored.next().is_none());
    }
}
