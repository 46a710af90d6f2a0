//! What is left out of a run: the smaller a failed run, the plainer its story.

use std::collections::BTreeSet;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::plan::{FaultKind, Plan};
use super::steps::Steps;
use super::workloads::Workload;

/// What is left out of a run; nothing, by default. On a command line it is one JSON object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Cuts {
    /// The only strikes of the nemesis that happen, by number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strikes: Option<BTreeSet<u64>>,
    /// Kinds of fault that do not happen, though the profile and the seed would have them.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub without: BTreeSet<FaultKind>,
    /// Workloads that do not run.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub idle: BTreeSet<Workload>,
    /// The storm ends after so many virtual milliseconds at the latest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storm_ms: Option<u64>,
    /// Latencies, and the moments of faults between two ticks, are drawn anew, and nothing else: another number, others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timing: Option<u64>,
    /// Everything must have come back so many virtual milliseconds after the heal; sooner than otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patience_ms: Option<u64>,
    /// Most nodes that keep metadata; one at least.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<u32>,
    /// Most bookies; as many as the ensemble at least.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bookies: Option<u32>,
    /// Most brokers; one at least.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub brokers: Option<u32>,
    /// Most topics; one at least.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topics: Option<u32>,
    /// Most producers of a topic; one at least.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub producers: Option<u32>,
    /// Most consumers of a topic's Shared subscription; one at least.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consumers: Option<u32>,
    /// Most messages a consumer lets come before it takes them; one at least.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receiver_queue: Option<u32>,
    /// Most entries of a ledger, a topic's or a cursor's; one at least.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ledger_entries: Option<u32>,
    /// Nobody consumes in the storm.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub consumes_late: bool,
    /// Most clients of metadata itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub register_clients: Option<u32>,
    /// Most messages each producer sends in the storm.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages: Option<u64>,
    /// The only messages that producers send in the storm, by the number of the producer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sends: Option<Steps>,
    /// Most calls each client of metadata makes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub register_calls: Option<u64>,
    /// The only calls that clients of metadata make, by the number of the client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls: Option<Steps>,
}

impl Cuts {
    /// True if nothing is left out.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    pub(super) fn apply(&self, plan: &mut Plan) {
        let few = |count: &mut u32, most: Option<u32>, least: u32| {
            *count = (*count).min(most.unwrap_or(u32::MAX).max(least));
        };
        let nodes = |count: &mut usize, most: Option<u32>, least: usize| {
            *count = (*count).min(most.map_or(usize::MAX, |most| most as usize).max(least));
        };
        // A standalone node has none of them (0), and stays so.
        nodes(&mut plan.shape.metadata, self.metadata, 1);
        nodes(&mut plan.shape.bookies, self.bookies, plan.shape.quorum.ensemble.max(1) as usize);
        nodes(&mut plan.shape.brokers, self.brokers, 1);
        if plan.shape.shares_nodes {
            // The other roles are on the first bookies' nodes.
            plan.shape.metadata = plan.shape.metadata.min(plan.shape.bookies);
        }
        let shape = plan.shape;
        plan.faults.retain(|kind| kind.fits(shape));
        plan.strikes.clone_from(&self.strikes);
        plan.faults.retain(|kind| !self.without.contains(kind));
        plan.workloads.retain(|workload| !self.idle.contains(workload));
        if !plan.workloads.contains(&Workload::Registers) {
            plan.register_clients = 0;
        }
        plan.timing = self.timing.unwrap_or_default();
        if let Some(patience_ms) = self.patience_ms {
            plan.liveness_limit = plan.liveness_limit.min(Duration::from_millis(patience_ms));
        }
        if let Some(storm_ms) = self.storm_ms {
            plan.safety_phase = plan.safety_phase.min(Duration::from_millis(storm_ms));
        }
        few(&mut plan.topics, self.topics, 1);
        few(&mut plan.producers, self.producers, 1);
        few(&mut plan.shared_consumers, self.consumers, 1);
        few(&mut plan.receiver_queue, self.receiver_queue, 1);
        let entries = self.ledger_entries.map_or(u64::MAX, |most| most.max(1).into());
        plan.ledger_entries_max = plan.ledger_entries_max.min(entries);
        plan.cursor_ledger_entries_max = plan.cursor_ledger_entries_max.min(entries);
        plan.consumes_late = self.consumes_late;
        few(&mut plan.register_clients, self.register_clients, 0);
        plan.messages_max = self.messages.unwrap_or(u64::MAX);
        plan.register_calls_max = self.register_calls.unwrap_or(u64::MAX);
        plan.sends.clone_from(&self.sends);
        plan.register_calls.clone_from(&self.calls);
    }
}

impl FromStr for Cuts {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulator::plan::Topology;
    use crate::simulator::shape::Shape;
    use crate::simulator::trial::Trial;

    #[test]
    fn what_is_cut_is_written_and_read() {
        let cuts = Cuts { strikes: Some([3, 7].into()), messages: Some(2), ..Cuts::default() };
        let text = serde_json::to_string(&cuts).unwrap();
        assert_eq!(text, r#"{"strikes":[3,7],"messages":2}"#);
        assert_eq!(text.parse(), Ok(cuts));
        assert!("{\"storms\":1}".parse::<Cuts>().is_err());
        assert!(Cuts::default().is_none());
    }

    #[test]
    fn a_plan_is_cut_and_never_to_nothing() {
        let trial = Trial::new(1, Topology::Swarm);
        let cuts = Cuts {
            storm_ms: Some(500),
            metadata: Some(0),
            bookies: Some(0),
            brokers: Some(0),
            topics: Some(0),
            producers: Some(0),
            consumers: Some(0),
            receiver_queue: Some(0),
            ledger_entries: Some(0),
            register_clients: Some(0),
            ..Cuts::default()
        };
        let plan = Plan::of(&Trial { cuts, ..trial.clone() });
        assert_eq!(plan.safety_phase, Duration::from_millis(500));
        assert_eq!((plan.topics, plan.producers, plan.shared_consumers), (1, 1, 1));
        assert_eq!((plan.receiver_queue, plan.ledger_entries_max), (1, 1));
        assert_eq!(plan.register_clients, 0);
        let Shape { metadata, bookies, brokers, quorum, .. } = plan.shape;
        assert_eq!((metadata, bookies, brokers), (1, quorum.ensemble as usize, 1));
        assert!(plan.faults.iter().all(|kind| *kind != FaultKind::MetadataLeader));
        let more = Cuts { topics: Some(100), ..Cuts::default() };
        assert_eq!(
            Plan::of(&Trial { cuts: more, ..trial.clone() }).topics,
            Plan::of(&trial).topics
        );
    }
}
