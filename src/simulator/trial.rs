//! What one run is asked for: together with the binary it decides everything that happens in the run.

use serde::{Deserialize, Serialize};

use super::clock_fault::ClockFault;
use super::cuts::Cuts;
use super::plan::Topology;
use super::profile::Profile;
use super::versions::Versions;

/// One run as it is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trial {
    /// What everything in it is drawn from.
    pub seed: u64,
    /// The seed that the settings (shape, kinds of fault, sizes) are drawn from, if it is another: what happens under them
    /// is still drawn from `seed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<u64>,
    /// The shape of the cluster.
    pub topology: Topology,
    /// Which faults it may have.
    #[serde(default)]
    pub profile: Profile,
    /// The one way in which clocks are wrong, if not all of them come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<ClockFault>,
    /// Which versions its nodes have.
    #[serde(default, skip_serializing_if = "Versions::are_newest")]
    pub versions: Versions,
    /// The bug planted in it, if any; needs the feature `mutants`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mutant: Option<String>,
    /// What is left out of it.
    #[serde(default, skip_serializing_if = "Cuts::is_none")]
    pub cuts: Cuts,
}

impl Trial {
    /// A seed as every campaign runs it that is not told otherwise.
    pub fn new(seed: u64, topology: Topology) -> Self {
        Self {
            seed,
            settings: None,
            topology,
            profile: Profile::Swarm,
            clock: None,
            versions: Versions::Newest,
            mutant: None,
            cuts: Cuts::default(),
        }
    }

    /// What follows `sim one` or `sim replay` on a command line.
    pub fn arguments(&self) -> Vec<String> {
        let mut words = vec![
            self.seed.to_string(),
            "--topology".to_owned(),
            self.topology.as_str().to_owned(),
            "--profile".to_owned(),
            self.profile.as_str().to_owned(),
        ];
        if let Some(settings) = self.settings {
            words.extend(["--settings-of".to_owned(), settings.to_string()]);
        }
        if let Some(clock) = self.clock {
            words.extend(["--clock".to_owned(), clock.into()]);
        }
        if !self.versions.are_newest() {
            words.extend(["--versions".to_owned(), self.versions.as_str().to_owned()]);
        }
        if let Some(mutant) = &self.mutant {
            words.extend(["--mutant".to_owned(), mutant.clone()]);
        }
        if !self.cuts.is_none() {
            let cuts = serde_json::to_string(&self.cuts).unwrap_or_default();
            words.extend(["--cuts".to_owned(), cuts]);
        }
        words
    }

    fn command(&self, verb: &str) -> String {
        let quoted = |word: String| if word.contains('{') { format!("'{word}'") } else { word };
        let words: Vec<String> = self.arguments().into_iter().map(quoted).collect();
        format!("seawall sim {verb} {}", words.join(" "))
    }

    /// The command that does it again, and shows its events.
    pub fn replay_command(&self) -> String {
        self.command("replay")
    }

    /// The command that leaves out what it does not need to fail.
    pub fn shrink_command(&self) -> String {
        self.command("shrink")
    }

    /// The command that does it again, and makes a page of it.
    pub fn page_command(&self) -> String {
        format!("{} --report seed-{}.html", self.replay_command(), self.seed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_replay_command_says_everything() {
        let mut trial = Trial::new(42, Topology::Cluster);
        assert_eq!(
            trial.replay_command(),
            "seawall sim replay 42 --topology cluster --profile swarm"
        );
        assert!(trial.page_command().ends_with(" --profile swarm --report seed-42.html"));
        trial.versions = Versions::Mixed;
        assert!(trial.replay_command().ends_with(" --versions mixed"));
        trial.mutant = Some("S8".to_owned());
        assert!(trial.replay_command().ends_with(" --mutant S8"));
        trial.cuts.messages = Some(3);
        assert!(trial.replay_command().ends_with(r#" --cuts '{"messages":3}'"#));
    }
}
