//! The shortest story of a broken promise: what clients did and were told of the messages and places that its text names,
//! the faults that struck in between, and the moment it ends with.

use std::collections::BTreeSet;

use super::loss::loss;
use crate::runtime::sim::{Happening, Record, Recording};
use crate::simulator::checkers::{BEHIND_ITS_END, Violation};
use crate::simulator::noted::{COME_BACK, Noted};

/// The most rows of a story; the last are kept.
const ROWS_MAX: usize = 40;
/// The most faults in it, of each kind the first on each node; the last are kept.
const FAULTS_MAX: usize = 16;
/// Calls on a register shown before and behind the one that fits nowhere.
const CALLS_AROUND: usize = 8;

/// Rows of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Story {
    /// The row in which what was broken was last seen; none if the text names nothing that was recorded.
    pub(super) moment: Option<usize>,
    /// All rows, in order.
    pub(super) rows: Vec<usize>,
}

/// The place of a message: ledger, entry, index in its batch. Without an index, the whole entry.
pub(super) type Place = (i64, i64, Option<i64>);

/// What a text names.
#[derive(Debug, Default, PartialEq, Eq)]
struct Named<'a> {
    text: &'a str,
    messages: BTreeSet<i64>,
    places: BTreeSet<Place>,
    registers: BTreeSet<i64>,
    /// Terms of the metadata group.
    terms: BTreeSet<i64>,
}

/// Whole numbers that follow a word.
fn behind(text: &str, word: &str) -> BTreeSet<i64> {
    let number = |rest: &str| {
        let end = rest.find(|character: char| !character.is_ascii_digit()).unwrap_or(rest.len());
        rest[..end].parse().ok()
    };
    text.split(word).skip(1).filter_map(number).collect()
}

/// Places in a text, written `ledger:entry` or `ledger:entry:index`.
fn places(text: &str) -> BTreeSet<Place> {
    let is_part = |character: char| character.is_ascii_digit() || ":-".contains(character);
    let words = text.split(|character: char| !is_part(character));
    let place = |word: &str| {
        let mut parts = word.split(':').map(str::parse::<i64>);
        Some((parts.next()?.ok()?, parts.next()?.ok()?, parts.next().and_then(Result::ok)))
    };
    words.filter_map(place).collect()
}

impl<'a> Named<'a> {
    fn of(text: &'a str) -> Self {
        let [messages, registers, terms] =
            ["message ", "register ", "term "].map(|word| behind(text, word));
        Self { text, messages, places: places(text), registers, terms }
    }

    fn has_place(&self, words: &str) -> bool {
        places(words).iter().any(|(ledger, entry, index)| {
            self.places.contains(&(*ledger, *entry, *index))
                || self.places.contains(&(*ledger, *entry, None))
        })
    }

    /// Whether a record of a client's subscription is about a subscription that the text does not speak of.
    fn is_of_another_subscription(&self, words: &str) -> bool {
        let Some((topic, rest)) = words.split_once(' ') else { return false };
        let subscription = rest.split(',').next().unwrap_or_default();
        self.text.contains(&format!("{topic}/"))
            && !self.text.contains(&format!("{topic}/{subscription} "))
    }

    /// Whether a record is something of a client about what is named, or of a leader.
    fn is_about(&self, record: &Record, words: &str) -> bool {
        let Some(noted) = Noted::ALL.iter().find(|noted| **noted as u8 == record.kind) else {
            return false;
        };
        let message = self.messages.contains(&record.facts[0]);
        match noted {
            Noted::Publish | Noted::Rejected => message,
            Noted::Committed => message || self.has_place(words),
            Noted::Delivered => {
                (message || self.has_place(words)) && !self.is_of_another_subscription(words)
            }
            Noted::Acknowledge | Noted::Acknowledged => {
                self.has_place(words) && !self.is_of_another_subscription(words)
            }
            Noted::Leads => self.terms.contains(&record.facts[0]),
            Noted::Ask | Noted::Answered => self.registers.contains(&record.facts[1]),
            _ => false,
        }
    }
}

pub(super) fn is_fault(kind: u8) -> bool {
    const FAULTS: &[Happening] = &[
        Happening::Crash,
        Happening::PowerLoss,
        Happening::Pause,
        Happening::Cut,
        Happening::Rot,
        Happening::Wiped,
        Happening::Swapped,
        Happening::Injected,
        Happening::DiskStalled,
        Happening::DiskWorse,
    ];
    FAULTS.iter().any(|fault| *fault as u8 == kind) || kind == Noted::GaveUp as u8
}

/// The story of a violation.
pub(super) fn story(violation: &Violation, recording: &Recording) -> Story {
    let records = &recording.records;
    if violation.promise == "panic" {
        let moment = records.iter().rposition(|record| record.kind == Happening::Panic as u8);
        return Story { moment, rows: moment.into_iter().collect() };
    }
    let told = told(&violation.detail, recording);
    if told.is_empty() && violation.promise == "P6" {
        return way_back(recording);
    }
    let is_loss =
        violation.checker == "no_acknowledged_loss" || violation.detail.contains(BEHIND_ITS_END);
    // Of a place that no client was told of there is what became of its ledger.
    if is_loss || told.is_empty() {
        return loss(&told, &places(&violation.detail), recording);
    }
    let (Some(first), Some(last)) = (told.first().copied(), told.last().copied()) else {
        return Story::default();
    };
    let mut seen = BTreeSet::new();
    let faults: Vec<usize> = (first..=last)
        .filter(|row| is_fault(records[*row].kind))
        .filter(|row| seen.insert((records[*row].kind, records[*row].node, records[*row].text)))
        .collect();
    let faults = &faults[faults.len().saturating_sub(FAULTS_MAX)..];
    let mut rows: Vec<usize> = told.into_iter().chain(faults.iter().copied()).collect();
    rows.sort_unstable();
    let rows = rows.split_off(rows.len().saturating_sub(ROWS_MAX));
    Story { moment: Some(last), rows }
}

/// What nodes did while the cluster should have come back.
fn way_back(recording: &Recording) -> Story {
    let records = &recording.records;
    let is_phase = |row: &usize| records[*row].kind == Noted::Phase as u8;
    let is_begin = |row: &usize| {
        is_phase(row)
            && recording
                .texts
                .get(records[*row].text as usize)
                .is_some_and(|text| text == COME_BACK)
    };
    let Some(begin) = (0..records.len()).find(is_begin) else { return Story::default() };
    let end = (begin + 1..records.len()).find(is_phase).unwrap_or(records.len() - 1);
    let is_told = |row: &usize| {
        let Record { kind, facts, .. } = records[*row];
        let is_start = kind == Happening::Start as u8 || kind == Noted::Serves as u8;
        is_start || is_fault(kind) || (kind == Noted::Log as u8 && facts[0] <= 2)
    };
    let mut rows: Vec<usize> = (begin + 1..end).filter(is_told).collect();
    let rows = rows.split_off(rows.len().saturating_sub(ROWS_MAX));
    Story { moment: Some(end), rows: std::iter::once(begin).chain(rows).chain([end]).collect() }
}

/// What clients did and were told of what a text names, in order.
fn told(text: &str, recording: &Recording) -> Vec<usize> {
    let records = &recording.records;
    let words =
        |row: usize| recording.texts.get(records[row].text as usize).map_or("", |text| text);
    let mut named = Named::of(text);
    // What lies at a place has a number, by which it was sent.
    let committed = (0..records.len()).filter(|row| records[*row].kind == Noted::Committed as u8);
    let there = committed.filter(|row| named.has_place(words(*row)));
    let numbers: Vec<i64> = there.map(|row| records[row].facts[0]).collect();
    named.messages.extend(numbers);
    let told: Vec<usize> =
        (0..records.len()).filter(|row| named.is_about(&records[*row], words(*row))).collect();
    // Of a register all calls are about it: those around the one that fits nowhere.
    match behind(text, "asked_at: ").first() {
        Some(at) if !named.registers.is_empty() => {
            let here = told.partition_point(|row| (records[*row].at as i64) < *at);
            let end = told.len().min(here + CALLS_AROUND);
            told[here.saturating_sub(CALLS_AROUND)..end].to_vec()
        }
        _ => told,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::sim::{Note, Recorder, RecordingLimits};

    #[test]
    fn what_checkers_say_is_understood() {
        let text = "message 17 of t was acknowledged at 3:4:-1; the log has message 9 there";
        let named = Named::of(text);
        assert_eq!(named.messages, [9, 17].into());
        assert_eq!(named.places, [(3, 4, Some(-1))].into());
        assert_eq!(Named::of("register 2: at most 3 of 9 calls").registers, [2].into());
        assert_eq!(Named::of("members 1 and 3 both led term 4").terms, [4].into());
        assert!(Named::of("nothing at all").messages.is_empty());
    }

    fn violation(detail: &str) -> Violation {
        let (promise, checker, detail) = ("P4".to_owned(), "c".to_owned(), detail.to_owned());
        Violation { promise, checker, detail }
    }

    #[test]
    fn a_story_is_about_what_was_broken_and_the_faults_in_between() {
        let recorder = Recorder::within(RecordingLimits::default());
        let client = |noted: Noted, facts: [i64; 3], text: &'static str| {
            recorder.note(|| Note::from(noted).on(2).facts(facts).text(text));
        };
        recorder.note(|| Note::from(Happening::Crash).on(1));
        client(Noted::Publish, [7, 1, 0], "t0");
        client(Noted::Publish, [8, 1, 0], "t0");
        client(Noted::Committed, [7, 3, 4], "3:4:1");
        client(Noted::Committed, [8, 3, 4], "3:4:2");
        client(Noted::Delivered, [7, 3, 4], "t0 shared, session 2, at 3:4:1");
        client(Noted::Acknowledge, [0, 3, 4], "t0 shared, at 3:4:1");
        recorder.note(|| Note::from(Happening::PowerLoss).on(1));
        recorder.note(|| Note::from(Happening::PowerLoss).on(1));
        client(Noted::Delivered, [7, 3, 4], "t0 exclusive, session 3, at 3:4:1");
        client(Noted::Delivered, [7, 3, 4], "t0 shared, session 4, at 3:4:1");
        client(Noted::Publish, [9, 1, 0], "t0");
        let recording = recorder.recording(Vec::new());
        let told = story(&violation("t0/shared got 3:4:1 again in session 4"), &recording);
        assert_eq!(told, Story { moment: Some(10), rows: vec![1, 3, 5, 6, 7, 10] });
        let untold = story(&violation("the log cannot be read"), &recording);
        assert_eq!(untold, Story::default());
    }

    #[test]
    fn two_leaders_of_a_term_have_the_story_of_what_was_between_them() {
        let recorder = Recorder::within(RecordingLimits::default());
        let leads = |node: u32, term: i64| {
            recorder.note(|| Note::from(Noted::Leads).on(node).facts([term, 0, 0]));
        };
        leads(1, 1);
        leads(2, 2);
        recorder.note(|| Note::from(Happening::Crash).on(2));
        leads(3, 2);
        let both = violation("members 2 and 3 both led term 2");
        let told = story(&both, &recorder.recording(Vec::new()));
        assert_eq!(told, Story { moment: Some(3), rows: vec![1, 2, 3] });
    }

    #[test]
    fn a_cluster_that_does_not_come_back_has_the_story_of_its_nodes() {
        let recorder = Recorder::within(RecordingLimits::default());
        recorder.note(|| Note::from(Happening::Crash).on(1));
        recorder.note(|| Note::from(Noted::Phase).text(COME_BACK));
        recorder.note(|| Note::from(Happening::Start).on(1));
        recorder.note(|| Note::from(Happening::Timer).on(1));
        recorder.note(|| Note::from(Noted::GaveUp).on(1).text("no"));
        recorder.note(|| Note::from(Noted::Phase).text("checks"));
        let lasting = Violation { promise: "P6".to_owned(), ..violation("it takes no message") };
        let told = story(&lasting, &recorder.recording(Vec::new()));
        assert_eq!(told, Story { moment: Some(5), rows: vec![1, 2, 4, 5] });
    }
}
