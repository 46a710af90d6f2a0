//! Words for scenarios about the metadata group.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use seawall::metadata::{
    Expect, MembershipAdmin, Metadata, MetadataError, RemoteMetadata, RemoteMetadataConfig,
    Versioned,
};
use seawall::simulator::checkers::CONSENSUS_CHECKERS;

use super::Stage;

/// Where the leader is.
pub async fn leader(stage: &mut Stage) -> usize {
    for _ in 0..600 {
        if let Some(leader) = stage.cluster.metadata_leader() {
            return leader;
        }
        stage.pass(Duration::from_millis(100)).await;
    }
    panic!("nobody leads");
}

/// A client that knows these members only and tries for so long.
pub fn client_of(stage: &Stage, members: &[usize], give_up: Duration) -> Metadata {
    let addresses: Vec<String> =
        members.iter().map(|place| stage.cluster.nodes[*place].rpc_address()).collect();
    let config = RemoteMetadataConfig { give_up, ..RemoteMetadataConfig::default() };
    Arc::new(RemoteMetadata::new(stage.client_runtime(), &addresses, config))
}

/// Reads a key from these members, trying for so long.
pub async fn get(
    stage: &mut Stage,
    members: &[usize],
    give_up: Duration,
    key: &'static str,
) -> Result<Option<Versioned>, MetadataError> {
    let metadata = client_of(stage, members, give_up);
    stage.client(async move { metadata.get(key).await }).await
}

/// Writes keys through these members, one after the other, trying for so long with each.
pub async fn put(
    stage: &mut Stage,
    members: &[usize],
    give_up: Duration,
    pairs: Vec<(String, Bytes)>,
) -> Result<(), MetadataError> {
    let metadata = client_of(stage, members, give_up);
    let work = async move {
        for (key, value) in pairs {
            metadata.put(&key, value, Expect::Any, None).await?;
        }
        Ok(())
    };
    stage.client(work).await
}

/// As long as an operator tries to change the membership.
const OPERATOR_PATIENCE: Duration = Duration::from_secs(120);

/// An operator takes the member at a place out of the group, empties its disk and adds its node as member `id`.
pub async fn replace(stage: &mut Stage, place: usize, id: u64) {
    let old = stage.cluster.nodes[place].member_id().expect("a member");
    change(stage, old, None).await;
    let node = &mut stage.cluster.nodes[place];
    node.machine.crash();
    assert!(node.machine.wipe_disk());
    node.become_member(id);
    let address = node.rpc_address();
    change(stage, id, Some(address)).await;
}

/// Removes a member, or adds one at an address, however often it takes.
async fn change(stage: &mut Stage, id: u64, add: Option<String>) {
    let runtime = stage.client_runtime();
    let addresses = stage.cluster.metadata_addresses();
    let config = RemoteMetadataConfig::default();
    let admin = MembershipAdmin::new(runtime.clone(), &addresses, config);
    let work = async move {
        let until = runtime.clock.now() + OPERATOR_PATIENCE;
        loop {
            let done = match &add {
                Some(address) => admin.add_member(id, address).await,
                None => admin.remove_member(id).await,
            };
            let Err(error) = done else { return };
            assert!(runtime.clock.now() < until, "member {id}: {error}");
            runtime.clock.sleep(Duration::from_millis(500)).await;
        }
    };
    stage.client(work).await;
}

/// What consensus promises was kept so far.
pub fn consensus_held(stage: &Stage) {
    let history = stage.history.lock();
    for (name, check) in CONSENSUS_CHECKERS {
        let finding = check(&history);
        assert!(finding.violations.is_empty(), "{name}: {:?}", finding.violations);
    }
}
