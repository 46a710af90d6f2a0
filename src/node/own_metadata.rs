//! The metadata a node keeps itself: alone, or as a member of a group.

use std::sync::Arc;

use super::{NodeConfig, NodeError};
use crate::metadata::consensus::{MemberId, Membership};
use crate::metadata::{
    MembersService, Metadata, MetadataService, RemoteMetadata, RemoteMetadataConfig,
    ReplicatedConfig, ReplicatedMetadata, SingleNodeConfig, SingleNodeMetadata,
};
use crate::rpc::Routes;
use crate::runtime::Runtime;

/// The metadata a node keeps itself.
#[derive(Clone)]
pub(super) enum OwnMetadata {
    /// All of it.
    Alone(SingleNodeMetadata),
    /// A copy.
    Member(ReplicatedMetadata),
}

impl OwnMetadata {
    /// Starts it, and answers with the handle that the rest of the node uses.
    pub(super) async fn start(
        runtime: &Runtime,
        config: &NodeConfig,
    ) -> Result<(Metadata, Self), NodeError> {
        let group = config.data.join("metadata-group");
        let alone = config.data.join("metadata");
        let Some(member) = &config.metadata_member else {
            refuse_folder(runtime, &group, "belongs to a member of a metadata group").await?;
            let store =
                SingleNodeMetadata::start(runtime.clone(), SingleNodeConfig::below(&config.data))
                    .await?;
            return Ok((Arc::new(store.clone()), Self::Alone(store)));
        };
        if config.rpc_listen.is_none() {
            let reason = "a member of a metadata group needs a node-to-node port";
            return Err(NodeError::Config(reason.to_owned()));
        }
        refuse_folder(runtime, &alone, "belongs to metadata of one node").await?;
        let founders = Membership::of_voters(
            member.founders.iter().map(|(id, address)| (MemberId(*id), address.clone())),
        );
        let mut addresses: Vec<String> = founders.addresses.values().cloned().collect();
        if addresses.is_empty() {
            addresses.clone_from(&config.metadata_addresses);
        }
        let own = ReplicatedConfig {
            limits: member.limits,
            observer: member.observer.clone(),
            contacts: config.metadata_addresses.clone(),
            ..ReplicatedConfig::below(&config.data, MemberId(member.id), founders)
        };
        let store = ReplicatedMetadata::start(runtime.clone(), own).await?;
        let remote =
            RemoteMetadata::new(runtime.clone(), &addresses, RemoteMetadataConfig::default());
        Ok((Arc::new(remote), Self::Member(store)))
    }

    /// The services by which others reach it.
    pub(super) fn serve(&self, routes: Routes) -> Routes {
        match self {
            Self::Alone(store) => routes
                .with(MembersService::server(None))
                .with(MetadataService::server(Arc::new(store.clone()))),
            Self::Member(store) => routes
                .with(store.service())
                .with(MembersService::server(Some(store.clone())))
                .with(MetadataService::server(Arc::new(store.clone()))),
        }
    }

    /// The member of a group, if it is one.
    pub(super) fn member(&self) -> Option<&ReplicatedMetadata> {
        match self {
            Self::Alone(_) => None,
            Self::Member(store) => Some(store),
        }
    }

    /// Before the node stops: leadership goes to another member.
    pub(super) async fn hand_over(&self) {
        if let Self::Member(store) = self {
            store.hand_over().await;
        }
    }

    /// Completes when the disk failed; gives the reason.
    pub(super) async fn poisoned(&self) -> String {
        match self {
            Self::Alone(store) => store.poisoned().await,
            Self::Member(store) => store.poisoned().await,
        }
    }

    /// Stops it.
    pub(super) async fn stop(&self) {
        match self {
            Self::Alone(store) => store.stop().await,
            Self::Member(store) => store.stop().await,
        }
    }
}

/// Metadata of one kind is never begun beside metadata of the other: it would look as if all was lost.
async fn refuse_folder(
    runtime: &Runtime,
    folder: &std::path::Path,
    why: &str,
) -> Result<(), NodeError> {
    if runtime.disk.list(folder).await.is_ok_and(|entries| !entries.is_empty()) {
        return Err(NodeError::Config(format!("the folder {} {why}", folder.display())));
    }
    Ok(())
}
