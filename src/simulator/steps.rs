//! Which of the steps of clients are done: the others are passed over, and the time they would have taken is not.

use std::collections::{BTreeMap, BTreeSet};
use std::num::ParseIntError;
use std::ops::Range;

use serde::{Deserialize, Serialize};

/// Steps that are done, by client: ranges from … to, the end left out, in order. A client that is not named does none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "OnPaper", into = "OnPaper")]
pub struct Steps(BTreeMap<u64, Vec<(u64, u64)>>);

/// As in JSON, whose keys are texts: serde reads them as numbers only where nothing is flattened around them.
type OnPaper = BTreeMap<String, Vec<(u64, u64)>>;

impl TryFrom<OnPaper> for Steps {
    type Error = ParseIntError;

    fn try_from(paper: OnPaper) -> Result<Self, Self::Error> {
        let client = |(client, ranges): (String, _)| Ok((client.parse()?, ranges));
        paper.into_iter().map(client).collect::<Result<_, _>>().map(Self)
    }
}

impl From<Steps> for OnPaper {
    fn from(steps: Steps) -> Self {
        steps.0.into_iter().map(|(client, ranges)| (client.to_string(), ranges)).collect()
    }
}

impl Steps {
    /// The first `count` steps of these clients.
    pub fn first(clients: Range<u64>, count: u64) -> Self {
        let all = (count > 0).then(|| vec![(0, count)]);
        Self(clients.filter_map(|client| Some((client, all.clone()?))).collect())
    }

    /// Whether a client does this step.
    pub fn has(&self, client: u64, step: u64) -> bool {
        let ranges = self.0.get(&client).map(Vec::as_slice).unwrap_or_default();
        ranges.iter().any(|(from, until)| (*from..*until).contains(&step))
    }

    /// Each of them: client and step.
    pub fn each(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let steps = |ranges: &[(u64, u64)]| {
            ranges.iter().flat_map(|(from, until)| *from..*until).collect::<Vec<u64>>()
        };
        self.0.iter().flat_map(move |(client, ranges)| {
            steps(ranges).into_iter().map(move |step| (*client, step))
        })
    }
}

impl FromIterator<(u64, u64)> for Steps {
    fn from_iter<T: IntoIterator<Item = (u64, u64)>>(steps: T) -> Self {
        let mut ranges: BTreeMap<u64, Vec<(u64, u64)>> = BTreeMap::new();
        for (client, step) in steps.into_iter().collect::<BTreeSet<_>>() {
            let ranges = ranges.entry(client).or_default();
            match ranges.last_mut() {
                Some((_, until)) if *until == step => *until += 1,
                _ => ranges.push((step, step + 1)),
            }
        }
        Self(ranges)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_ranges_on_paper() {
        let steps: Steps = [(0, 3), (0, 1), (0, 2), (0, 7), (2, 0)].into_iter().collect();
        let text = serde_json::to_string(&steps).unwrap();
        assert_eq!(text, r#"{"0":[[1,4],[7,8]],"2":[[0,1]]}"#);
        assert_eq!(serde_json::from_str::<Steps>(&text).unwrap(), steps);
        assert!(steps.has(0, 3) && steps.has(0, 7) && steps.has(2, 0));
        assert!(!steps.has(0, 0) && !steps.has(0, 4) && !steps.has(1, 0) && !steps.has(2, 1));
        assert_eq!(steps.each().collect::<Steps>(), steps);
        assert_eq!(
            Steps::first(1..3, 2).each().collect::<Vec<_>>(),
            [(1, 0), (1, 1), (2, 0), (2, 1)]
        );
        assert_eq!(Steps::first(1..3, 0), Steps::default());
    }
}
