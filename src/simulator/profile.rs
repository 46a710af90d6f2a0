//! Which faults runs may have. The rest of a seed's world is the same on every profile: a run that fails on one can
//! be looked at on another.

use clap::ValueEnum;
use clap::builder::PossibleValue;
use serde::{Deserialize, Serialize};

use super::plan::{FaultKind, Topology};

/// Which faults a run may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "&'static str", try_from = "String")]
pub enum Profile {
    /// None at all: what fails here fails its users every day.
    Calm,
    /// Every kind, close together.
    Storm,
    /// Drawn from the seed: each kind is off in half of the runs, one run in ten is calm.
    #[default]
    Swarm,
    /// Cut, reset and slow links.
    Network,
    /// Slow, full and failing disks, and bits that rot.
    Disk,
    /// This kind alone.
    Only(FaultKind),
}

impl Profile {
    /// Every profile, those of one kind last.
    pub const ALL: [Self; 5 + FaultKind::ALL.len()] = {
        let mut all = [Self::Calm; 5 + FaultKind::ALL.len()];
        all[1] = Self::Storm;
        all[2] = Self::Swarm;
        all[3] = Self::Network;
        all[4] = Self::Disk;
        let mut number = 0;
        while number < FaultKind::ALL.len() {
            all[5 + number] = Self::Only(FaultKind::ALL[number]);
            number += 1;
        }
        all
    };

    /// The word on the command line and in reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Calm => "calm",
            Self::Storm => "storm",
            Self::Swarm => "swarm",
            Self::Network => "network",
            Self::Disk => "disk",
            Self::Only(kind) => kind.as_str(),
        }
    }

    const fn what(self) -> &'static str {
        match self {
            Self::Calm => "no faults",
            Self::Storm => "every kind of fault, close together",
            Self::Swarm => "kinds drawn from the seed",
            Self::Network => "links only",
            Self::Disk => "disks only",
            Self::Only(_) => "this kind only",
        }
    }

    /// Whether a kind may happen; a swarm asks its seed.
    pub(super) fn allows(self, kind: FaultKind, is_drawn: impl FnOnce() -> bool) -> bool {
        match self {
            Self::Calm => false,
            Self::Storm => true,
            Self::Swarm => is_drawn(),
            Self::Network => {
                matches!(kind, FaultKind::Partition | FaultKind::Reset | FaultKind::SlowLink)
            }
            Self::Disk => matches!(
                kind,
                FaultKind::SlowDisk
                    | FaultKind::SyncError
                    | FaultKind::ReadError
                    | FaultKind::BitRot
                    | FaultKind::DiskFull
            ),
            Self::Only(only) => kind == only,
        }
    }

    /// Whether anything of this profile can happen on a topology; a campaign in which nothing can is a mistake.
    pub const fn makes_sense_on(self, topology: Topology) -> bool {
        match self {
            Self::Only(kind) => kind.can_hit(topology),
            Self::Calm | Self::Storm | Self::Swarm | Self::Network | Self::Disk => true,
        }
    }
}

impl From<Profile> for &'static str {
    fn from(profile: Profile) -> Self {
        profile.as_str()
    }
}

impl TryFrom<String> for Profile {
    type Error = String;

    fn try_from(word: String) -> Result<Self, Self::Error> {
        let found = Self::ALL.into_iter().find(|profile| profile.as_str() == word);
        found.ok_or_else(|| format!("no profile is called {word:?}"))
    }
}

impl ValueEnum for Profile {
    fn value_variants<'a>() -> &'a [Self] {
        &Self::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.as_str()).help(self.what()))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::simulator::plan::Plan;
    use crate::simulator::trial::Trial;

    fn plan(seed: u64, topology: Topology, profile: Profile) -> Plan {
        Plan::of(&Trial { profile, ..Trial::new(seed, topology) })
    }

    #[test]
    fn each_word_names_one_profile() {
        let words: BTreeSet<&str> = Profile::ALL.iter().map(|profile| profile.as_str()).collect();
        assert_eq!(words.len(), Profile::ALL.len());
        for profile in Profile::ALL {
            assert_eq!(Profile::from_str(profile.as_str(), false), Ok(profile));
            let text = serde_json::to_string(&profile).unwrap();
            assert_eq!(serde_json::from_str::<Profile>(&text).unwrap(), profile);
        }
        assert!(serde_json::from_str::<Profile>("\"hail\"").is_err());
    }

    #[test]
    fn a_profile_changes_the_faults_and_nothing_else() {
        for seed in 0..50 {
            let swarm = plan(seed, Topology::Swarm, Profile::Swarm);
            for profile in Profile::ALL {
                let plan = plan(seed, Topology::Swarm, profile);
                assert_eq!(
                    format!("{swarm:?}"),
                    format!(
                        "{:?}",
                        Plan {
                            faults: swarm.faults.clone(),
                            fault_interval: swarm.fault_interval,
                            ..plan
                        }
                    )
                );
            }
        }
    }

    #[test]
    fn each_profile_has_the_faults_it_says() {
        for seed in 0..50 {
            let faults = |profile| plan(seed, Topology::Swarm, profile).faults;
            assert!(faults(Profile::Calm).is_empty());
            assert_eq!(faults(Profile::Only(FaultKind::Clock)), [FaultKind::Clock]);
            assert_eq!(
                faults(Profile::Network),
                [FaultKind::Partition, FaultKind::Reset, FaultKind::SlowLink]
            );
            assert_eq!(faults(Profile::Disk).len(), 5);
            let swarm = faults(Profile::Swarm);
            assert!(swarm.iter().all(|kind| faults(Profile::Storm).contains(kind)));
        }
        let storm = plan(0, Topology::Cluster, Profile::Storm);
        assert_eq!(storm.faults.len(), FaultKind::ALL.len() - 2, "all but those of a group");
    }

    #[test]
    fn what_nothing_can_hit_makes_no_sense() {
        let leader = Profile::Only(FaultKind::MetadataLeader);
        assert!(leader.makes_sense_on(Topology::Swarm));
        assert!(!leader.makes_sense_on(Topology::Cluster));
        assert!(!Profile::Only(FaultKind::BitRot).makes_sense_on(Topology::Standalone));
        assert!(Profile::Only(FaultKind::BitRot).makes_sense_on(Topology::Cluster));
    }
}
