//! Who is meant: machines by name, by role, or by the place in a ledger's ensemble.

use seawall::domain::TopicName;
use seawall::runtime::sim::SimNode;

use super::Play;
use crate::support::TOPIC;

/// One or several machines, as a story names them:
///
/// - a machine: `bookie-0`, `broker-1`, `metadata-0`, `client-0`, and the machine of each writer, reader or
///   recoverer, which has its name;
/// - a place in the first ensemble of a writer's ledger: `first of w`, `second of w`, `third of w`;
/// - the bookies that are not in it: `spares of w`;
/// - `owner`: the broker that serves the topic; `other broker`: the first one that does not;
/// - `leader`: the leader of the metadata group; `followers`, `first follower`, `second follower`: its other members;
/// - `auditor`: the node that looks for missing copies;
/// - `bookies`, `brokers`, `metadata`, `everything`: all of a kind;
/// - whatever the story has named with `call`.
#[derive(Clone, Debug)]
pub struct Who(Vec<String>);

impl From<&str> for Who {
    fn from(name: &str) -> Self {
        Self(vec![name.to_owned()])
    }
}

impl<const N: usize> From<[&str; N]> for Who {
    fn from(names: [&str; N]) -> Self {
        Self(names.map(str::to_owned).to_vec())
    }
}

impl std::fmt::Display for Who {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0.join(" and "))
    }
}

const PLACES: &[(&str, usize)] = &[("first", 0), ("second", 1), ("third", 2)];

impl Play {
    /// The machines meant, by name.
    pub fn names(&self, who: &Who) -> Result<Vec<String>, String> {
        let mut names = Vec::new();
        for name in &who.0 {
            names.extend(self.named(name)?);
        }
        Ok(names)
    }

    /// The machines meant.
    pub fn machines(&self, who: &Who) -> Result<Vec<SimNode>, String> {
        self.names(who)?.iter().map(|name| self.machine(name)).collect()
    }

    /// The one machine meant, by name.
    pub fn one(&self, name: &str) -> Result<String, String> {
        match &self.named(name)?[..] {
            [one] => Ok(one.clone()),
            several => Err(format!("{name:?} is not one machine but {several:?}")),
        }
    }

    /// The machine with this very name.
    pub fn machine(&self, name: &str) -> Result<SimNode, String> {
        let found = self.stage.world.nodes().into_iter().find(|node| node.name() == name);
        found.ok_or_else(|| format!("there is no machine {name:?}"))
    }

    fn named(&self, name: &str) -> Result<Vec<String>, String> {
        if let Some(called) = self.called.get(name) {
            return Ok(called.clone());
        }
        let nodes = || self.stage.cluster.nodes.iter();
        let all = |is_meant: fn(&seawall::node::Roles) -> bool| {
            let meant = nodes().filter(move |node| is_meant(&node.roles));
            meant.map(|node| node.machine.name().to_owned()).collect::<Vec<_>>()
        };
        match name {
            "everything" => return Ok(all(|_| true)),
            "bookies" => return Ok(all(|roles| roles.bookie)),
            "brokers" => return Ok(all(|roles| roles.broker)),
            "metadata" => return Ok(all(|roles| roles.metadata)),
            "owner" => return self.owner().map(|owner| vec![owner]).ok_or_else(nobody(name)),
            "other broker" => {
                let owner = self.owner().ok_or_else(nobody(name))?;
                let other = all(|roles| roles.broker).into_iter().find(|broker| *broker != owner);
                return other.map(|other| vec![other]).ok_or_else(nobody(name));
            }
            "leader" => return self.leader().map(|leader| vec![leader]).ok_or_else(nobody(name)),
            "auditor" => {
                let audits = |node: &&seawall::simulator::cluster::ClusterNode| {
                    let repair = node.serving().and_then(|node| node.repair());
                    repair.is_some_and(|repair| repair.is_auditor())
                };
                let auditor = nodes().find(audits).ok_or_else(nobody(name))?;
                return Ok(vec![auditor.machine.name().to_owned()]);
            }
            "first follower" | "second follower" => {
                let place = usize::from(name == "second follower");
                let follower = self.named("followers")?.into_iter().nth(place);
                return follower.map(|follower| vec![follower]).ok_or_else(nobody(name));
            }
            "followers" => {
                let leader = self.leader().ok_or_else(nobody(name))?;
                let members = all(|roles| roles.metadata).into_iter();
                return Ok(members.filter(|member| *member != leader).collect());
            }
            _ => {}
        }
        if let Some((place, writer)) = name.split_once(" of ") {
            let ensemble = &self.writing(writer)?.ensemble;
            if place == "spares" {
                let bookies = all(|roles| roles.bookie).into_iter();
                return Ok(bookies.filter(|bookie| !ensemble.contains(bookie)).collect());
            }
            let index = PLACES.iter().find(|(word, _)| *word == place).map(|(_, index)| *index);
            let bookie = index.and_then(|index| ensemble.get(index));
            return bookie.map(|bookie| vec![bookie.clone()]).ok_or_else(nobody(name));
        }
        self.machine(name).map(|_| vec![name.to_owned()])
    }

    /// The machine that serves the topic.
    pub fn owner(&self) -> Option<String> {
        let name = TopicName::parse(TOPIC).ok()?;
        let serves = |node: &&seawall::simulator::cluster::ClusterNode| {
            let serving = node.serving();
            let broker = serving.as_ref().and_then(|node| node.broker());
            broker.is_some_and(|b| b.loaded_topics().iter().any(|topic| *topic.name() == name))
        };
        let found = self.stage.cluster.nodes.iter().find(serves);
        found.map(|node| node.machine.name().to_owned())
    }

    fn leader(&self) -> Option<String> {
        let place = self.stage.cluster.metadata_leader()?;
        Some(self.stage.cluster.nodes[place].machine.name().to_owned())
    }
}

fn nobody(name: &str) -> impl FnOnce() -> String + use<'_> {
    move || format!("nobody is {name:?} now")
}
