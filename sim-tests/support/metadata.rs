//! Words for scenarios about the metadata group.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use seawall::metadata::{
    Expect, Metadata, MetadataError, RemoteMetadata, RemoteMetadataConfig, Versioned,
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

/// The members of the group beside one of them, by place among all nodes.
pub fn others(stage: &Stage, member: usize) -> Vec<usize> {
    let nodes = stage.cluster.nodes.iter().enumerate();
    nodes
        .filter(|(place, node)| node.roles.metadata && *place != member)
        .map(|(place, _)| place)
        .collect()
}

/// A client that knows these members only and tries for so long.
fn client_of(stage: &Stage, members: &[usize], give_up: Duration) -> Metadata {
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

/// What consensus promises was kept so far.
pub fn consensus_held(stage: &Stage) {
    let history = stage.history.lock();
    for (name, check) in CONSENSUS_CHECKERS {
        let finding = check(&history);
        assert!(finding.violations.is_empty(), "{name}: {:?}", finding.violations);
    }
}
