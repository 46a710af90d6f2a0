//! What the nodes of a run say of themselves, looked at now and then while a run is recorded: who serves, who leads
//! the metadata group, who serves which topics.

use std::collections::BTreeSet;

use super::cluster::ClusterNode;
use super::noted::Noted;
use crate::metadata::consensus::Role;
use crate::runtime::sim::{Note, Recorder};

/// What one node said the last time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct State {
    /// The start it is of.
    start: u64,
    serves: bool,
    leads: Option<u64>,
    topics: BTreeSet<String>,
}

impl State {
    fn of(node: &ClusterNode) -> Self {
        let start = node.machine.starts();
        let Some(serving) = node.serving() else { return Self { start, ..Self::default() } };
        let member = serving.metadata_member().map(|member| member.status());
        let leads = member.filter(|status| status.role == Role::Leader);
        let topics = serving.broker().map(|broker| broker.loaded_topics()).unwrap_or_default();
        Self {
            start,
            serves: true,
            leads: leads.map(|status| status.term),
            topics: topics.iter().map(|topic| topic.name().to_string()).collect(),
        }
    }

    fn note(&self, before: &Self, node: u32, recorder: &Recorder) {
        if self.serves && !before.serves {
            recorder.note(|| Note::from(Noted::Serves).on(node));
        }
        match self.leads {
            Some(term) if before.leads != self.leads => {
                recorder.note(|| Note::from(Noted::Leads).on(node).facts([term as i64, 0, 0]));
            }
            None if before.leads.is_some() => {
                recorder.note(|| Note::from(Noted::LeadsNoMore).on(node));
            }
            _ => {}
        }
        if self.topics != before.topics {
            recorder.note(|| {
                let count = self.topics.len() as i64;
                let names: Vec<&str> = self.topics.iter().map(String::as_str).collect();
                Note::from(Noted::Owns).on(node).facts([count, 0, 0]).text(names.join(", "))
            });
        }
    }
}

/// What every node said the last time.
#[derive(Debug, Default)]
pub(super) struct NodeStates(Vec<State>);

impl NodeStates {
    /// Looks, and notes what has changed. Does nothing unless the run is recorded.
    pub(super) fn look(&mut self, nodes: &[ClusterNode], recorder: &Recorder) {
        if !recorder.is_on() {
            return;
        }
        self.0.resize(nodes.len(), State::default());
        for (node, before) in nodes.iter().zip(&mut self.0) {
            let state = State::of(node);
            // A new start begins with nothing, whatever the one before said last.
            let fresh = State { start: state.start, ..State::default() };
            let compared = if before.start == state.start { &*before } else { &fresh };
            state.note(compared, node.machine.id(), recorder);
            *before = state;
        }
    }
}
