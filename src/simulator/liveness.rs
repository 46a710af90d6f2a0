//! How long it takes until a healed cluster is as it was, as a distribution: what was measured when the baseline was
//! recorded, and how far a campaign may be above it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::plan::Topology;
use super::profile::Profile;

/// The shortest election time-out of the metadata group, milliseconds: the unit in which times are told.
pub const ELECTION_TIMEOUT_MS: u64 = 500;
/// A percentile may be above the baseline by this part of it, percent …
const BAND_PERCENT: u64 = 50;
/// … and by so many milliseconds, one election time-out: small times are mostly luck.
const BAND_MS: u64 = ELECTION_TIMEOUT_MS;
/// Fewer runs do not show a percentile that so few of a hundred are above: ten must be.
const ABOVE_MIN: u64 = 10;
/// Baselines, by topology and profile, as `seawall sim liveness --record` writes them.
const BASELINE: &str = include_str!("liveness_baseline.json");

/// The percentiles that are told and held.
pub const PERCENTILES: [u64; 3] = [50, 90, 99];

/// What is waited for after the heal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Milestone {
    /// Every topic took a message.
    Writable,
    /// Every copy is where it must be.
    Replicated,
    /// Everything was read and delivered.
    Recovered,
}

impl Milestone {
    /// Every milestone.
    pub const ALL: [Self; 3] = [Self::Writable, Self::Replicated, Self::Recovered];

    /// The word in tables.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Writable => "writable",
            Self::Replicated => "replicated",
            Self::Recovered => "recovered",
        }
    }
}

/// Times of many runs: how many there were, and their percentiles in milliseconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spread {
    /// Runs that came to the milestone.
    pub runs: u64,
    /// In the order of [`PERCENTILES`].
    pub ms: [u64; 3],
    /// The same of many more such runs would hardly be lower than this: that much is no luck of these seeds.
    #[serde(skip)]
    at_least: [u64; 3],
}

/// How far the share of runs below a value may be from what it would be of many more, in standard deviations of such a
/// share: one campaign in some hundreds is farther off.
const LUCK: f64 = 3.0;

impl Spread {
    /// Of these times, in any order; none if there are none.
    pub fn of(mut times: Vec<u64>) -> Option<Self> {
        times.sort_unstable();
        let last = times.len().checked_sub(1)?;
        let at = |percent: u64| times[(last as u64 * percent / 100) as usize];
        let runs = times.len() as u64;
        let at_least = PERCENTILES.map(|percent| {
            let variance = (percent * (100 - percent)) as f64 / runs as f64;
            at((percent as f64 - LUCK * variance.sqrt()).max(0.0) as u64)
        });
        Some(Self { runs, ms: PERCENTILES.map(at), at_least })
    }

    /// The percentiles that are above the band around a baseline, and not by luck: the percentile, what it is, what it may be.
    fn above(&self, baseline: &Self) -> Vec<(u64, u64, u64)> {
        let mut above = Vec::new();
        for (number, percent) in PERCENTILES.into_iter().enumerate() {
            let few = |spread: &Self| spread.runs * (100 - percent) < ABOVE_MIN * 100;
            if few(self) || few(baseline) {
                continue;
            }
            let most = baseline.ms[number] * (100 + BAND_PERCENT) / 100 + BAND_MS;
            if self.at_least[number] > most {
                above.push((percent, self.ms[number], most));
            }
        }
        above
    }
}

/// Spreads by milestone.
pub type Spreads = BTreeMap<Milestone, Spread>;

/// Baselines by topology and profile.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Baselines(BTreeMap<String, Spreads>);

impl Baselines {
    /// Those of this build; none if its file is damaged, which a test sees.
    pub fn recorded() -> Self {
        serde_json::from_str(BASELINE).unwrap_or_default()
    }

    fn key(topology: Topology, profile: Profile) -> String {
        format!("{} {}", topology.as_str(), profile.as_str())
    }

    /// Takes what was measured for the baseline.
    pub fn record(&mut self, topology: Topology, profile: Profile, measured: Spreads) {
        self.0.insert(Self::key(topology, profile), measured);
    }

    /// What is slower than it was when the baseline was recorded, beyond its band.
    pub fn complaints(&self, topology: Topology, profile: Profile, now: &Spreads) -> Vec<String> {
        let Some(baselines) = self.0.get(&Self::key(topology, profile)) else { return Vec::new() };
        let mut complaints = Vec::new();
        for (milestone, spread) in now {
            let Some(baseline) = baselines.get(milestone) else { continue };
            for (percent, ms, most) in spread.above(baseline) {
                complaints.push(format!(
                    "{} after the heal: {percent} % within {ms} ms, {most} are allowed by the baseline",
                    milestone.as_str()
                ));
            }
        }
        complaints
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::consensus::TimerSettings;

    fn spread(times: impl Iterator<Item = u64>) -> Spread {
        Spread::of(times.collect()).unwrap()
    }

    #[test]
    fn percentiles_of_times_in_any_order() {
        assert_eq!(Spread::of(Vec::new()), None);
        assert_eq!(spread([7].into_iter()).ms, [7, 7, 7]);
        assert_eq!(spread((0..=1000).rev()).ms, [500, 900, 990]);
    }

    #[test]
    fn what_became_slower_is_told_and_what_is_luck_is_not() {
        let baseline = spread((0..1000).map(|n| n * 4));
        let mut baselines = Baselines::default();
        let of = |spread: &Spread| Spreads::from([(Milestone::Writable, spread.clone())]);
        baselines.record(Topology::Swarm, Profile::Swarm, of(&baseline));
        let told =
            |spread: Spread| baselines.complaints(Topology::Swarm, Profile::Swarm, &of(&spread));
        assert!(told(baseline.clone()).is_empty());
        assert!(told(spread((0..1000).map(|n| n * 5))).is_empty(), "within the band");
        let slower = told(spread((0..1000).map(|n| n * 8)));
        assert_eq!(slower.len(), 3, "{slower:?}");
        assert!(slower[0].starts_with("writable after the heal: 50 % within 39"), "{slower:?}");
        // A tail alone: nineteen of twenty are as they were.
        let tail =
            told(spread((0..1000).map(|n| if n % 20 == 0 { n * 4 + 60_000 } else { n * 4 })));
        assert_eq!(tail.len(), 1, "{tail:?}");
        assert!(told(spread((0..15).map(|n| n * 800))).is_empty(), "too few to say");
        // Of a hundred runs that wait long or not at all some more than half may wait long.
        let some_more = |long: u64| spread((0..100).map(|n| if n < long { 5_000 } else { 0 }));
        assert!(told(some_more(60)).is_empty(), "luck");
        assert_eq!(told(some_more(70)).len(), 1);
        let elsewhere = Spreads::from([(Milestone::Writable, spread(0..9))]);
        assert!(baselines.complaints(Topology::Cluster, Profile::Swarm, &elsewhere).is_empty());
    }

    #[test]
    fn the_recorded_baselines_can_be_read() {
        let recorded = Baselines::recorded();
        assert!(recorded.0.len() > 10, "{} baselines", recorded.0.len());
        let text = serde_json::to_string(&recorded).unwrap();
        assert_eq!(serde_json::from_str::<Baselines>(&text).unwrap().0, recorded.0);
    }

    #[test]
    fn the_unit_is_the_election_time_out() {
        let election = TimerSettings::default().election.as_millis();
        assert_eq!(u64::try_from(election), Ok(ELECTION_TIMEOUT_MS));
    }
}
