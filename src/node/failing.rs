//! What can end a node for good while its process lives: a disk that failed its own metadata or its bookie.

use std::future::Future;

use super::NodeError;
use super::own_metadata::OwnMetadata;
use crate::bookie::Bookie;
use crate::reached;

/// The parts of this node that a failed sync poisons. What waits for one of them, or for what only they can
/// give, waits through [`Failing::unless`]: a poisoned part answers no better until the process starts anew.
#[derive(Clone)]
pub(super) struct Failing {
    pub(super) metadata: Option<OwnMetadata>,
    pub(super) bookie: Option<Bookie>,
}

impl Failing {
    /// Completes with the reason once a part is poisoned; never otherwise.
    pub(super) async fn reason(&self) -> String {
        let bookie = async {
            match &self.bookie {
                Some(bookie) => bookie.poisoned().await,
                None => std::future::pending().await,
            }
        };
        let metadata = async {
            match &self.metadata {
                Some(metadata) => metadata.poisoned().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            reason = bookie => format!("the journal failed: {reason}"),
            reason = metadata => format!("metadata failed: {reason}"),
        }
    }

    /// What `step` of the start gives, or the reason why it cannot end.
    pub(super) async fn unless<T>(&self, step: impl Future<Output = T>) -> Result<T, NodeError> {
        tokio::select! {
            biased;
            done = step => Ok(done),
            reason = self.reason() => {
                reached!("node: a part failed during the start");
                Err(NodeError::Failed(reason))
            }
        }
    }
}
