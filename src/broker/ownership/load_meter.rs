//! Turns the counters of topics into what each bundle carries. Rates are averaged with those of before, so
//! that one burst does not move a bundle.

use std::collections::BTreeMap;

use super::bundle::Bundle;
use super::load::LoadFigures;
use crate::domain::Instant;

/// Two looks closer than this are one.
const LOOK_SECONDS_MIN: f64 = 0.5;

/// Counters of a bundle's topics.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::broker) struct Traffic {
    /// Topics loaded.
    pub(in crate::broker) topics: u64,
    /// Messages published and delivered since they were loaded.
    pub(in crate::broker) messages: u64,
    /// The same in bytes.
    pub(in crate::broker) bytes: u64,
}

/// See the module. Holds one sample for each bundle that has a topic loaded.
#[derive(Default)]
pub(super) struct LoadMeter {
    looked_at: Option<Instant>,
    samples: BTreeMap<Bundle, (Traffic, LoadFigures)>,
}

impl LoadMeter {
    /// Takes the counters of now.
    pub(super) fn look(&mut self, now: Instant, counters: BTreeMap<Bundle, Traffic>) {
        let seconds = self.looked_at.map_or(0.0, |before| now.since(before).as_secs_f64());
        if self.looked_at.is_some() && seconds < LOOK_SECONDS_MIN {
            return;
        }
        self.looked_at = Some(now);
        let before = std::mem::take(&mut self.samples);
        for (bundle, traffic) in counters {
            let (last, rates) = before.get(&bundle).copied().unwrap_or_default();
            // A topic that was unloaded takes its counters with it.
            let rate = |now: u64, last: u64, average: u64| {
                let current = now.saturating_sub(last) as f64 / seconds.max(LOOK_SECONDS_MIN);
                u64::midpoint(average, current as u64)
            };
            let figures = LoadFigures {
                topics: traffic.topics,
                connections: 0,
                messages_per_second: rate(
                    traffic.messages,
                    last.messages,
                    rates.messages_per_second,
                ),
                bytes_per_second: rate(traffic.bytes, last.bytes, rates.bytes_per_second),
            };
            self.samples.insert(bundle, (traffic, figures));
        }
    }

    /// What each bundle carries.
    pub(super) fn bundles(&self) -> Vec<(Bundle, LoadFigures)> {
        self.samples.iter().map(|(bundle, (_, figures))| (bundle.clone(), *figures)).collect()
    }

    /// What all carry together.
    pub(super) fn sum(&self) -> LoadFigures {
        let zero = LoadFigures::default();
        self.samples.values().fold(zero, |sum, (_, figures)| sum.plus(figures))
    }
}
