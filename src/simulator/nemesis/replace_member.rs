//! An operator replaces a member of the metadata group: removes it, empties its disk, and adds the node as a new
//! member. One at a time, so that a quorum keeps what it promised.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::Nemesis;
use crate::invariant::states::{fault_begins, fault_ends};
use crate::metadata::{MembershipAdmin, RemoteMetadataConfig};
use crate::reached;
use crate::runtime::sim::SimNode;
use crate::simulator::cluster::Cluster;
use crate::simulator::plan::FaultKind;

/// Ids of members that join begin behind this.
const JOINED_FROM: u64 = 100;
/// Between two attempts of the operator.
const PAUSE: Duration = Duration::from_millis(500);

/// A replacement under way.
pub(super) struct Replacement {
    node: usize,
    /// Who joins.
    id: u64,
    step: Step,
    /// Set when the step's command has succeeded.
    is_done: Arc<Mutex<bool>>,
}

enum Step {
    Removing,
    Adding,
}

impl Replacement {
    fn is_done(&self) -> bool {
        *self.is_done.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Nemesis {
    /// Begins to replace a member, unless another replacement is under way.
    pub(super) fn replace_member(&mut self, cluster: &Cluster) {
        let members: Vec<usize> =
            (0..cluster.nodes.len()).filter(|node| cluster.nodes[*node].roles.metadata).collect();
        let chosen = self.below(members.len() as u64) as usize;
        let Some(node) = members.get(chosen).copied() else { return };
        let Some(old) = cluster.nodes[node].member_id() else { return };
        if self.replacement.is_some() || !cluster.nodes[node].machine.admit_operation(old) {
            return;
        }
        self.joined += 1;
        fault_begins(FaultKind::MetadataMember as usize);
        let id = JOINED_FROM + self.joined;
        let is_done = self.command(cluster, old, None);
        self.replacement = Some(Replacement { node, id, step: Step::Removing, is_done });
    }

    /// True while a replacement is under way.
    pub fn is_operating(&self) -> bool {
        self.replacement.is_some()
    }

    /// Goes on with a replacement whose step is done.
    pub fn operate(&mut self, cluster: &mut Cluster) {
        let Some(mut replacement) = self.replacement.take() else { return };
        if !replacement.is_done() {
            self.replacement = Some(replacement);
            return;
        }
        let node = replacement.node;
        if matches!(replacement.step, Step::Adding) {
            reached!("nemesis: a metadata member was replaced");
            fault_ends(FaultKind::MetadataMember as usize);
            return;
        }
        let machine = cluster.nodes[node].machine.clone();
        machine.crash();
        machine.wipe_disk();
        cluster.nodes[node].become_member(replacement.id);
        let address = cluster.nodes[node].rpc_address();
        replacement.is_done = self.command(cluster, replacement.id, Some(address));
        replacement.step = Step::Adding;
        self.replacement = Some(replacement);
    }

    /// Removes a member, or adds one at an address, however often it takes.
    fn command(&self, cluster: &Cluster, id: u64, add: Option<String>) -> Arc<Mutex<bool>> {
        let is_done = Arc::new(Mutex::new(false));
        let Some(machine) = self.clients.last().cloned() else { return is_done };
        let addresses = cluster.metadata_addresses();
        let done = Arc::clone(&is_done);
        machine.clone().spawn("operator", async move {
            insist(&machine, &addresses, id, add).await;
            *done.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = true;
        });
        is_done
    }
}

async fn insist(machine: &SimNode, addresses: &[String], id: u64, add: Option<String>) {
    let runtime = machine.runtime();
    let admin = MembershipAdmin::new(runtime.clone(), addresses, RemoteMetadataConfig::default());
    loop {
        let done = match &add {
            Some(address) => admin.add_member(id, address).await,
            None => admin.remove_member(id).await,
        };
        match done {
            Ok(()) => return,
            Err(error) => tracing::info!(id, %error, "the operator tries again"),
        }
        runtime.clock.sleep(PAUSE).await;
    }
}
