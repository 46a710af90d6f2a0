//! A watch over gRPC. When its stream breaks it goes on at the same or another node behind what it has told; only if
//! the changes since are not known there any more it ends, and the watcher reads the state again.

use async_trait::async_trait;
use tonic::Streaming;

use super::RemoteMetadata;
use crate::metadata::wire::event_from_wire;
use crate::metadata::{Revision, WatchEvent, WatchStream};
use crate::reached;
use crate::rpc::generated::metadata::{WatchAnswer, WatchRequest};

pub(super) struct RemoteWatch {
    metadata: RemoteMetadata,
    prefix: String,
    answers: Option<Streaming<WatchAnswer>>,
    /// Everything up to here was told, once the state was.
    told: Option<Revision>,
    /// The end was told: there is no more.
    is_over: bool,
}

impl RemoteWatch {
    pub(super) fn new(
        metadata: RemoteMetadata,
        prefix: &str,
        answers: Streaming<WatchAnswer>,
    ) -> Self {
        let (prefix, answers) = (prefix.to_owned(), Some(answers));
        Self { metadata, prefix, answers, told: None, is_over: false }
    }

    /// Opens the stream again behind what was told; false if that cannot be done.
    async fn resume(&mut self) -> bool {
        let Some(told) = self.told else { return false };
        let request = WatchRequest { prefix: self.prefix.clone(), after: Some(told.0) };
        let opened = self.metadata.read(|mut client| {
            let request = request.clone();
            Box::pin(async move {
                let mut answers = client.watch(request).await?.into_inner();
                let first = answers.message().await?;
                Ok(first.is_some_and(|first| first.resumed).then_some(answers))
            })
        });
        match opened.await {
            Ok(Some(answers)) => self.answers = Some(answers),
            Ok(None) => reached!("metadata: a watcher must read the state again"),
            Err(error) => tracing::debug!(%error, "a metadata watch could not be resumed"),
        }
        self.answers.is_some()
    }

    /// `None` for events of a kind this version does not know.
    fn take(&mut self, answer: WatchAnswer) -> Option<Vec<WatchEvent>> {
        if answer.events.is_empty() {
            // The state's end.
            self.told = self.told.max(Some(Revision(answer.began_at)));
        }
        let events: Option<Vec<WatchEvent>> =
            answer.events.into_iter().map(event_from_wire).collect();
        if let (Some(told), Some(last)) =
            (&mut self.told, events.as_ref().and_then(|all| all.last()))
        {
            *told = (*told).max(last.revision());
        }
        events
    }
}

#[async_trait]
impl WatchStream for RemoteWatch {
    async fn next(&mut self) -> Option<Vec<WatchEvent>> {
        while !self.is_over {
            let Some(answers) = &mut self.answers else {
                self.is_over = !self.resume().await;
                continue;
            };
            match answers.message().await {
                Ok(Some(answer)) => {
                    let events = self.take(answer);
                    self.is_over = events.is_none();
                    return events;
                }
                Ok(None) => {}
                Err(status) => {
                    reached!("metadata: a watch broke off");
                    tracing::debug!(%status, "a metadata watch broke off");
                }
            }
            self.answers = None;
        }
        None
    }
}
