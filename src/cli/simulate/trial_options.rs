//! What every command that runs seeds is told about them.

use clap::Args;

use super::mutants::check_planted;
use crate::invariant::mutants::VARIABLE;
use crate::simulator::clock_fault::ClockFault;
use crate::simulator::cuts::Cuts;
use crate::simulator::plan::{FaultKind, Topology};
use crate::simulator::profile::Profile;
use crate::simulator::trial::Trial;
use crate::simulator::versions::Versions;
use crate::simulator::workloads::Workload;

/// All of a trial but its seed.
#[derive(Debug, Args)]
pub(super) struct TrialOptions {
    /// The shape of the cluster.
    #[arg(long, value_enum, default_value = "cluster")]
    pub(super) topology: Topology,
    /// Which faults there may be.
    #[arg(long, value_enum, default_value = "swarm", hide_possible_values = true, long_help = long_help())]
    pub(super) profile: Profile,
    /// Draw the settings (shape, kinds of fault, sizes) from this seed instead.
    #[arg(long, value_name = "SEED")]
    pub(super) settings_of: Option<u64>,
    /// Only these workloads; messages are always published and consumed.
    #[arg(long = "workload", value_enum, value_delimiter = ',', value_name = "WORKLOADS")]
    pub(super) workloads: Vec<Workload>,
    /// Clocks are wrong in this way only, for example monotonic:drift:200000 (parts per million), wall:step:-3600000 or
    /// wall:freeze:5000 (milliseconds); with the profile clock.
    #[arg(long, value_name = "FACE:HOW:SIZE")]
    pub(super) clock: Option<ClockFault>,
    /// Which versions the nodes have: the newest, or mixed (former ones, and both format levels, with an operator who
    /// changes one after the other).
    #[arg(long, value_enum, default_value = "newest")]
    pub(super) versions: Versions,
    /// Plant this bug (needs the feature `mutants`).
    #[arg(long, env = VARIABLE, value_name = "NAME")]
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
    /// What every campaign runs that is not told otherwise.
    pub(super) fn on(topology: Topology) -> Self {
        Self {
            topology,
            profile: Profile::Swarm,
            settings_of: None,
            workloads: Vec::new(),
            clock: None,
            versions: Versions::Newest,
            mutant: None,
            cuts: Cuts::default(),
        }
    }

    /// Complains about what no run can be made of.
    pub(super) fn check(&self) -> Result<(), String> {
        let (topology, profile) = (self.topology, self.profile);
        if !profile.makes_sense_on(topology) {
            let (fault, place) = (profile.as_str(), topology.as_str());
            return Err(format!("on the topology {place} there is nothing that {fault} could hit"));
        }
        if self.clock.is_some() && profile != Profile::Only(FaultKind::Clock) {
            return Err(
                "--clock says how clocks are wrong: it goes with --profile clock".to_owned()
            );
        }
        check_planted(self.mutant.as_deref())
    }

    /// What is left out, workloads included.
    pub(super) fn all_cuts(&self) -> Cuts {
        let mut cuts = self.cuts.clone();
        if !self.workloads.is_empty() {
            let idle = Workload::ALL.into_iter().filter(|workload| {
                *workload != Workload::Messages && !self.workloads.contains(workload)
            });
            cuts.idle.extend(idle);
        }
        cuts
    }

    /// The trial of a seed.
    pub(super) fn trial(&self, seed: u64) -> Trial {
        Trial {
            seed,
            settings: self.settings_of,
            topology: self.topology,
            profile: self.profile,
            clock: self.clock,
            versions: self.versions,
            mutant: self.mutant.clone(),
            cuts: self.all_cuts(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_run_is_a_mistake() {
        let options = |topology, profile, mutant: Option<&str>| TrialOptions {
            profile,
            mutant: mutant.map(str::to_owned),
            ..TrialOptions::on(topology)
        };
        assert!(options(Topology::Swarm, Profile::Swarm, None).check().is_ok());
        let kind = |word: &str| Profile::try_from(word.to_owned()).unwrap();
        let on_one_node = options(Topology::Standalone, kind("metadata_leader"), None).check();
        assert!(on_one_node.unwrap_err().contains("metadata_leader"));
        assert!(options(Topology::Swarm, Profile::Swarm, Some("no such bug")).check().is_err());
        let planted = options(Topology::Swarm, Profile::Swarm, Some("S8")).check();
        assert_eq!(planted.is_ok(), cfg!(feature = "mutants"));
    }

    #[test]
    fn workloads_that_are_not_named_are_left_out() {
        let options = |workloads: &[Workload]| TrialOptions {
            workloads: workloads.to_vec(),
            ..TrialOptions::on(Topology::Swarm)
        };
        assert!(options(&[]).trial(1).cuts.is_none());
        assert!(options(&Workload::ALL).trial(1).cuts.is_none());
        let idle = options(&[Workload::Registers]).trial(1).cuts.idle;
        assert_eq!(idle, [Workload::Rewind, Workload::Damage].into());
    }
}
