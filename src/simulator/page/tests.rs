//! What the page's data says is what was recorded, and nothing in it can end its element.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::columns::tests::{numbers, unpack};
use super::*;
use crate::runtime::sim::{Happening, Note, Record, Recorder, RecordingLimits};
use crate::simulator::noted::Noted;
use crate::simulator::plan::Topology;
use crate::simulator::trial::Trial;

const HOSTILE: &str = "</script><img src=x onerror=\"document.title='owned'\"><!--<script>";

fn report(detail: &str) -> Report {
    let violation = Violation {
        promise: "P1".to_owned(),
        checker: "no_acknowledged_loss".to_owned(),
        detail: detail.to_owned(),
    };
    Report::of_failure(Trial::new(1, Topology::Cluster), violation)
}

fn element<'a>(page: &'a str, name: &str) -> &'a str {
    let begin = page.find(&format!("id=\"{name}\"")).unwrap();
    let begin = begin + page[begin..].find('>').unwrap() + 1;
    &page[begin..begin + page[begin..].find("</script>").unwrap()]
}

#[test]
fn hostile_text_stays_text() {
    let recorder = Recorder::within(RecordingLimits::default());
    recorder.note(|| Note::from(Noted::Log).on(1).text(HOSTILE));
    let page = page(&report(HOSTILE), &recorder.recording(vec![HOSTILE.to_owned()])).unwrap();
    assert!(!page.contains("<img"));
    let summary: serde_json::Value = serde_json::from_str(element(&page, "summary")).unwrap();
    assert_eq!(summary["nodes"][0], HOSTILE);
    assert_eq!(summary["violations"][0]["detail"], HOSTILE);
    let columns = unpack(element(&page, "events"));
    let texts: Vec<String> = serde_json::from_slice(&columns[15]).unwrap();
    assert_eq!(texts[1], HOSTILE);
}

#[test]
fn the_page_asks_for_nothing_from_elsewhere() {
    let page = page(&report("nothing"), &Recording::default()).unwrap();
    for word in ["http://", "https://", "src=", "@import", "url(", "fetch(", "{{"] {
        assert!(!page.contains(word), "{word}");
    }
    assert!(page.contains("default-src 'none'"));
}

#[test]
fn the_newest_traffic_and_the_whole_story_are_kept() {
    let limits = RecordingLimits { traffic: 3, story: 10, texts: 2 };
    let recorder = Recorder::within(limits);
    recorder.note(|| Note::from(Happening::Start).on(1));
    for count in 0..5 {
        recorder.note(|| {
            Note::from(Happening::Timer).on(1).facts([count, 0, 0]).text(count.to_string())
        });
    }
    let recording = recorder.recording(vec!["one".to_owned()]);
    let kept: Vec<(u32, i64)> =
        recording.records.iter().map(|record| (record.number, record.facts[0])).collect();
    assert_eq!(kept, [(1, 0), (4, 2), (5, 3), (6, 4)]);
    assert_eq!((recording.left_out, recording.texts.len()), (2, 3));
}

#[test]
fn an_operation_lasts_until_its_answer() {
    let recorder = Recorder::within(RecordingLimits::default());
    recorder.note(|| Note::from(Happening::Start).on(1));
    let asked = recorder.note(|| Note::from(Noted::Publish).on(1));
    recorder.note(|| Note::from(Noted::Publish).on(1));
    let told = recorder.note(|| Note::from(Noted::Committed).on(1));
    recorder.also(told, asked);
    recorder.note(|| Note::from(Happening::PowerLoss).on(1));
    let picture = picture(&recorder.recording(vec!["bookie-0".to_owned()]));
    let seen: Vec<_> = picture
        .spans
        .iter()
        .map(|span| (CLASSES[span.class as usize], span.from, span.to))
        .collect();
    let wanted = [
        ("starting", 0, Some(4)),
        ("committed", 1, Some(3)),
        ("unknown", 2, None),
        ("down", 4, None),
    ];
    assert_eq!(seen, wanted);
}

#[test]
fn a_node_says_what_is_wrong_with_its_links() {
    let recorder = Recorder::within(RecordingLimits::default());
    let link = |what: Happening, from: u32, to: i64| {
        recorder.note(|| Note::from(what).on(from).facts([to, 0, 0]));
    };
    link(Happening::Cut, 1, 2);
    link(Happening::Cut, 2, 1);
    link(Happening::Cut, 3, 1);
    link(Happening::Cut, 1, 3);
    recorder.note(|| Happening::AllHealed);
    let names = ["one", "two", "three"].map(str::to_owned);
    let picture = picture(&recorder.recording(names.into()));
    let of = |lane: u32| -> Vec<(&str, Option<usize>)> {
        let spans = picture.spans.iter().filter(|span| span.lane == lane);
        spans.map(|span| (span.text.as_str(), span.to)).collect()
    };
    // All at one moment: one state.
    assert_eq!(of(1), [("cut off from all", Some(4))]);
    assert_eq!(of(2), [("cut ← one, → one", Some(4))]);
    let links: Vec<&str> = picture.lanes[4..].iter().map(|lane| lane.name.as_str()).collect();
    assert_eq!(links, ["one → two", "two → one", "three → one", "one → three"]);
}

prop_compose! {
    fn record()(
        step in 0_u64..5_000_000,
        kind in 0_u8..28,
        node in 0_u32..4,
        cause in 0_u32..2000,
        facts in any::<[i64; 3]>(),
        gap in 1_u32..4,
    ) -> (u64, u32, Record) {
        (step, gap, Record { number: 0, at: 0, kind, node, cause, facts, text: 0 })
    }
}

proptest! {
    #[test]
    fn every_row_comes_out(steps in prop::collection::vec(record(), 0..200)) {
        let (mut at, mut number) = (0, 0);
        let records: Vec<Record> = steps
            .into_iter()
            .map(|(step, gap, record)| {
                (at, number) = (at + step, number + gap);
                Record { number, at, cause: record.cause.min(number - 1), ..record }
            })
            .collect();
        let known: BTreeSet<u32> = records.iter().map(|record| record.number).collect();
        let recording = Recording { records: records.clone(), ..Recording::default() };
        let page = page(&report(""), &recording).unwrap();
        let columns: Vec<Vec<i64>> =
            unpack(element(&page, "events"))[..8].iter().map(|bytes| numbers(bytes)).collect();
        let mut at = 0;
        for (row, record) in records.iter().enumerate() {
            at += columns[0][row];
            prop_assert_eq!(at as u64, record.at / 1000);
            prop_assert_eq!(columns[1][row], i64::from(record.node));
            prop_assert_eq!(columns[2][row], i64::from(record.kind));
            prop_assert_eq!([columns[4][row], columns[5][row], columns[6][row]], record.facts);
            let back = columns[3][row];
            match record.cause {
                0 => prop_assert_eq!(back, 0),
                cause if !known.contains(&cause) => prop_assert_eq!(back, row as i64 + 1),
                cause => prop_assert_eq!(records[row - back as usize].number, cause),
            }
        }
    }
}
