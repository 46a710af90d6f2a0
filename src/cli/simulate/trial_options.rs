//! What every command that runs seeds is told about them.

use clap::Args;

use crate::simulator::cuts::Cuts;
use crate::simulator::mutant_list::MUTANTS;
use crate::simulator::plan::Topology;
use crate::simulator::profile::Profile;
use crate::simulator::trial::Trial;

/// All of a trial but its seed.
#[derive(Debug, Args)]
pub(super) struct TrialOptions {
    /// The shape of the cluster.
    #[arg(long, value_enum, default_value = "cluster")]
    pub(super) topology: Topology,
    /// Which faults there may be.
    #[arg(long, value_enum, default_value = "swarm", hide_possible_values = true, long_help = long_help())]
    pub(super) profile: Profile,
    /// Plant this bug (needs the feature `mutants`).
    #[arg(long)]
    pub(super) mutant: Option<String>,
    /// Leave something out, as `sim shrink` prints it: a JSON object.
    #[arg(long, default_value = "{}", hide_default_value = true, value_name = "JSON")]
    pub(super) cuts: Cuts,
}

fn long_help() -> String {
    let words: Vec<&str> = Profile::ALL.iter().map(|profile| profile.as_str()).collect();
    format!(
        "Which faults there may be: calm (none), storm (every kind, close together), swarm (drawn from the \
         seed), network, disk, or one kind alone. One of {}",
        words.join(" ")
    )
}

impl TrialOptions {
    /// Complains about what no run can be made of.
    pub(super) fn check(&self) -> Result<(), String> {
        let (topology, profile) = (self.topology, self.profile);
        if !profile.makes_sense_on(topology) {
            let (fault, place) = (profile.as_str(), topology.as_str());
            return Err(format!("on the topology {place} there is nothing that {fault} could hit"));
        }
        match &self.mutant {
            Some(_) if !cfg!(feature = "mutants") => {
                Err("this binary has no planted bugs: build it with --features mutants".to_owned())
            }
            Some(name) if MUTANTS.iter().all(|mutant| mutant.name != name) => {
                Err(format!("no planted bug is called {name:?}; `seawall sim mutants` lists them"))
            }
            _ => Ok(()),
        }
    }

    /// The trial of a seed.
    pub(super) fn trial(&self, seed: u64) -> Trial {
        Trial {
            seed,
            topology: self.topology,
            profile: self.profile,
            mutant: self.mutant.clone(),
            cuts: self.cuts.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_run_is_a_mistake() {
        let options = |topology, profile, mutant: Option<&str>| TrialOptions {
            topology,
            profile,
            mutant: mutant.map(str::to_owned),
            cuts: Cuts::default(),
        };
        assert!(options(Topology::Swarm, Profile::Swarm, None).check().is_ok());
        let kind = |word: &str| Profile::try_from(word.to_owned()).unwrap();
        let on_one_node = options(Topology::Standalone, kind("metadata_leader"), None).check();
        assert!(on_one_node.unwrap_err().contains("metadata_leader"));
        assert!(options(Topology::Swarm, Profile::Swarm, Some("no such bug")).check().is_err());
        let planted = options(Topology::Swarm, Profile::Swarm, Some("S8")).check();
        assert_eq!(planted.is_ok(), cfg!(feature = "mutants"));
    }
}
