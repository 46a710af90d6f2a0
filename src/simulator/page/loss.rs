//! The story of a message that was promised and is not there: what clients were told, and then, up to the close that left
//! it out or else to the end of the storm, what became of its ledger, who served its topic, which nodes started and ended,
//! and what the nemesis did.

use std::collections::{BTreeMap, BTreeSet};

use super::story::{Place, Story, is_fault};
use crate::runtime::sim::{Happening, Recording};
use crate::simulator::noted::{COME_BACK, Noted};

/// The most rows of each sort; the last are kept.
const TOLD_MAX: usize = 20;
const LEDGER_MAX: usize = 20;
const OWNERS_MAX: usize = 8;
const NODES_MAX: usize = 12;
const FAULTS_MAX: usize = 12;

/// A recording, read for what became of some places.
struct Reading<'a> {
    recording: &'a Recording,
    /// Of each ledger the lowest entry that is missed.
    missed: BTreeMap<i64, i64>,
}

/// The number in a word such as `ledger=3`.
fn field(words: &str, name: &str) -> Option<i64> {
    let value = |word: &str| word.strip_prefix(name)?.strip_prefix('=')?.parse().ok();
    words.split_whitespace().find_map(value)
}

impl Reading<'_> {
    fn words(&self, row: usize) -> &str {
        let text = self.recording.records[row].text as usize;
        self.recording.texts.get(text).map_or("", |text| text)
    }

    fn is(&self, row: usize, noted: Noted) -> bool {
        self.recording.records[row].kind == noted as u8
    }

    /// Whether a log line tells what became of a ledger; not what one bookie answered.
    fn is_of_the_ledger(&self, row: usize) -> bool {
        let words = self.words(row);
        self.is(row, Noted::Log)
            && field(words, "ledger").is_some_and(|ledger| self.missed.contains_key(&ledger))
            && !words.contains(" bookie=")
    }

    /// Whether it is that the ledger was closed without what is missed.
    fn is_cut(&self, row: usize) -> bool {
        let words = self.words(row);
        let missed = field(words, "ledger").and_then(|ledger| self.missed.get(&ledger));
        let end = field(words, "last_entry");
        self.is_of_the_ledger(row)
            && words.contains("closed")
            && end.zip(missed).is_some_and(|(end, missed)| end < *missed)
    }

    /// Where one of the topics has another owner, as the brokers say.
    fn owners(&self, rows: std::ops::RangeInclusive<usize>, topics: &BTreeSet<&str>) -> Vec<usize> {
        let mut owners = BTreeSet::new();
        let is_news = |row: &usize| {
            let node = self.recording.records[*row].node;
            let owns = self.words(*row).split(", ").any(|topic| topics.contains(topic));
            self.is(*row, Noted::Owns)
                && if owns { owners.insert(node) } else { owners.remove(&node) }
        };
        rows.filter(is_news).collect()
    }

    /// Whether a node, not a client, started, served or ended.
    fn is_of_a_node(&self, row: usize) -> bool {
        const LIFE: &[u8] = &[
            Happening::Start as u8,
            Happening::Crash as u8,
            Happening::PowerLoss as u8,
            Noted::Serves as u8,
            Noted::GaveUp as u8,
        ];
        let record = &self.recording.records[row];
        let name = (record.node as usize).checked_sub(1);
        let name = name.and_then(|index| self.recording.nodes.get(index));
        LIFE.contains(&record.kind) && !name.is_some_and(|name| name.starts_with("client-"))
    }
}

fn last(mut rows: Vec<usize>, at_most: usize) -> Vec<usize> {
    rows.split_off(rows.len().saturating_sub(at_most))
}

/// The story of a loss at these places, of which clients were told in the rows `told`, or nobody was.
pub(super) fn loss(told: &[usize], places: &BTreeSet<Place>, recording: &Recording) -> Story {
    let mut missed = BTreeMap::new();
    for (ledger, entry, _) in places {
        missed.entry(*ledger).and_modify(|at: &mut i64| *at = (*at).min(*entry)).or_insert(*entry);
    }
    let reading = Reading { recording, missed };
    let of_the_ledger =
        || (0..recording.records.len()).filter(|row| reading.is_of_the_ledger(*row));
    let (first, told_last) = match told {
        [] => (
            of_the_ledger().next(),
            of_the_ledger().rfind(|row| reading.words(*row).contains("closed")),
        ),
        [first, ..] => (Some(*first), told.last().copied()),
    };
    let Some(first) = first else { return Story::default() };
    let told_last = told_last.unwrap_or(first);
    let all = first..recording.records.len();
    let is_healed =
        |row: &usize| reading.is(*row, Noted::Phase) && reading.words(*row) == COME_BACK;
    let end = all.clone().find(|row| reading.is_cut(*row));
    let end = end.or_else(|| all.clone().find(is_healed).filter(|_| !told.is_empty()));
    let end = end.map_or(told_last, |end| end.max(told_last));
    let sent = told.iter().filter(|row| reading.is(**row, Noted::Publish));
    let topics: BTreeSet<&str> = sent.map(|row| reading.words(*row)).collect();
    let of = |wanted: &dyn Fn(usize) -> bool| -> Vec<usize> {
        (first..=end).filter(|row| wanted(*row)).collect()
    };
    let kind = |row: usize| recording.records[row].kind;
    let is_strike = |row: usize| {
        reading.is(row, Noted::Strike) || is_fault(kind(row)) && !reading.is_of_a_node(row)
    };
    let mut rows: BTreeSet<usize> = last(told.to_vec(), TOLD_MAX).into_iter().collect();
    rows.extend(last(of(&|row| reading.is_of_the_ledger(row)), LEDGER_MAX));
    rows.extend(last(reading.owners(first..=end, &topics), OWNERS_MAX));
    rows.extend(last(of(&|row| reading.is_of_a_node(row)), NODES_MAX));
    rows.extend(last(of(&is_strike), FAULTS_MAX));
    rows.insert(end);
    Story { moment: Some(end), rows: rows.into_iter().collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::sim::{Note, Recorder, RecordingLimits};

    fn told(recorder: &Recorder, noted: Noted, node: u32, text: &'static str) {
        recorder.note(|| Note::from(noted).on(node).facts([7, 3, 4]).text(text));
    }

    fn log(recorder: &Recorder, text: &'static str) {
        recorder.note(|| Note::from(Noted::Log).on(1).facts([4, 0, 0]).text(text));
    }

    /// What a broker did between two closes, the first of them of another ledger.
    fn recorded(is_cut: bool) -> Recording {
        let recorder = Recorder::within(RecordingLimits::default());
        told(&recorder, Noted::Publish, 3, "t0");
        told(&recorder, Noted::Committed, 3, "3:4:1");
        told(&recorder, Noted::Owns, 1, "t1");
        recorder.note(|| Note::from(Happening::PowerLoss).on(1));
        log(&recorder, "recovered and closed (ledger::recovery::record)  ledger=2  last_entry=1");
        log(&recorder, "recovery begins (ledger::recovery::driver)  ledger=3  fragments=1");
        log(&recorder, "entry not read (ledger::recovery::trace)  ledger=3  bookie=0a  entry=4");
        recorder.note(|| Note::from(Happening::Start).on(3));
        recorder.note(|| Note::from(Happening::Start).on(1));
        if is_cut {
            log(&recorder, "recovered and closed (ledger::recovery)  ledger=3  last_entry=3");
        } else {
            log(&recorder, "recovered and closed (ledger::recovery)  ledger=3  last_entry=4");
        }
        told(&recorder, Noted::Owns, 2, "t0, t1");
        recorder.note(|| Note::from(Noted::Phase).text(COME_BACK));
        recorder.note(|| Note::from(Happening::Crash).on(1));
        recorder.recording(["broker-0", "broker-1", "client-0"].map(str::to_owned).into())
    }

    #[test]
    fn it_ends_with_the_close_that_left_the_message_out() {
        let places = [(3, 4, Some(1))].into();
        let story = loss(&[0, 1], &places, &recorded(true));
        assert_eq!(story, Story { moment: Some(9), rows: vec![0, 1, 3, 5, 8, 9] });
    }

    #[test]
    fn of_a_place_that_nobody_was_told_of_it_is_the_story_of_the_ledger() {
        let recording = recorded(false);
        let story = loss(&[], &[(3, 4, None)].into(), &recording);
        assert_eq!(story, Story { moment: Some(9), rows: vec![5, 8, 9] });
        assert_eq!(loss(&[], &[(9, 4, None)].into(), &recording), Story::default());
    }

    #[test]
    fn it_ends_with_the_storm_if_no_close_left_the_message_out() {
        let places = [(3, 4, Some(1))].into();
        let story = loss(&[0, 1], &places, &recorded(false));
        assert_eq!(story, Story { moment: Some(11), rows: vec![0, 1, 3, 5, 8, 9, 10, 11] });
    }
}
