//! A watch over gRPC: it lives as long as its stream. A broken stream ends the watch, because what was
//! missed meanwhile cannot be told; the watcher opens a new one and is given the state again.

use async_trait::async_trait;
use tonic::Streaming;

use crate::metadata::wire::event_from_wire;
use crate::metadata::{WatchEvent, WatchStream};
use crate::reached;
use crate::rpc::generated::metadata::WatchAnswer;

pub(super) struct RemoteWatch {
    answers: Option<Streaming<WatchAnswer>>,
}

impl RemoteWatch {
    pub(super) fn new(answers: Streaming<WatchAnswer>) -> Self {
        Self { answers: Some(answers) }
    }
}

#[async_trait]
impl WatchStream for RemoteWatch {
    async fn next(&mut self) -> Option<Vec<WatchEvent>> {
        let answer = self.answers.as_mut()?.message().await;
        let events = match answer {
            Ok(Some(answer)) => answer.events.into_iter().map(event_from_wire).collect(),
            Ok(None) => None,
            Err(status) => {
                reached!("metadata: a watch broke off");
                tracing::debug!(%status, "a metadata watch broke off");
                None
            }
        };
        if events.is_none() {
            self.answers = None;
        }
        events
    }
}
