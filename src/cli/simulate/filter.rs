//! Which seeds a campaign runs: those whose settings are as asked.

use std::fmt;
use std::str::FromStr;

use crate::simulator::plan::Plan;

/// One setting as it must be, `KEY=VALUE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    key: String,
    value: String,
}

impl FromStr for Wanted {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (key, value) = text.split_once('=').ok_or("say KEY=VALUE")?;
        if !Plan::FACTS.contains(&key) {
            return Err(format!("no setting is called {key:?}; known: {}", Plan::FACTS.join(" ")));
        }
        Ok(Self { key: key.to_owned(), value: value.to_owned() })
    }
}

impl fmt::Display for Wanted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}={}", self.key, self.value)
    }
}

/// Everything that must be as asked.
#[derive(Clone, Debug, Default)]
pub(super) struct Filter(Vec<Wanted>);

impl Filter {
    pub(super) const fn new(wanted: Vec<Wanted>) -> Self {
        Self(wanted)
    }

    pub(super) fn admits(&self, plan: &Plan) -> bool {
        if self.0.is_empty() {
            return true;
        }
        let facts = plan.facts();
        self.0.iter().all(|wanted| {
            facts.iter().any(|(key, value)| *key == wanted.key && *value == wanted.value)
        })
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulator::plan::Topology;

    #[test]
    fn a_filter_names_settings_that_there_are() {
        assert!("quorum".parse::<Wanted>().is_err());
        assert!("moon=full".parse::<Wanted>().unwrap_err().contains("quorum"));
        let filter =
            |words: &[&str]| Filter::new(words.iter().map(|word| word.parse().unwrap()).collect());
        let plans: Vec<Plan> = (0..200).map(|seed| Plan::draw(seed, Topology::Swarm)).collect();
        let admitted = |words: &[&str]| {
            let filter = filter(words);
            plans.iter().filter(|plan| filter.admits(plan)).count()
        };
        assert_eq!(admitted(&[]), 200);
        let (wide, crash) = (admitted(&["quorum=5/3/2"]), admitted(&["fault=crash"]));
        let both = admitted(&["quorum=5/3/2", "fault=crash"]);
        assert!(0 < both && both < wide && wide < 200 && both < crash, "{both} {wide} {crash}");
        assert_eq!(admitted(&["quorum=9/9/9"]), 0);
        for key in Plan::FACTS {
            let named = plans.iter().any(|plan| plan.facts().iter().any(|(name, _)| name == key));
            assert!(named, "{key}");
        }
    }
}
