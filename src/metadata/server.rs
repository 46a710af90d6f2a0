//! The metadata service: a local store answered over gRPC.

use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use tonic::{Request, Response, Status};

use super::wire::{error_to_wire, event_to_wire, expect_from_wire, pair_to_wire};
use super::{Metadata, MetadataError, SessionId, WatchEvent};
use crate::rpc::generated::metadata as wire;
use crate::rpc::generated::metadata::metadata_server;
use crate::rpc::{MESSAGE_BYTES, MESSAGE_BYTES_MAX};

/// Answers the metadata service from any store behind the contract.
pub struct MetadataService {
    metadata: Metadata,
}

/// The generated service around [`MetadataService`].
pub type MetadataServer = metadata_server::MetadataServer<MetadataService>;

impl MetadataService {
    /// The service for `rpc::Routes`.
    pub fn server(metadata: Metadata) -> MetadataServer {
        metadata_server::MetadataServer::new(Self { metadata })
            .max_decoding_message_size(MESSAGE_BYTES_MAX)
    }
}

fn answer(result: Result<u64, MetadataError>) -> Result<Response<wire::ChangeAnswer>, Status> {
    Ok(Response::new(match result {
        Ok(number) => wire::ChangeAnswer { number, failure: None },
        Err(error) => wire::ChangeAnswer { number: 0, failure: Some(error_to_wire(error)) },
    }))
}

/// Cuts a list into parts of about [`MESSAGE_BYTES`]; an empty list is one empty part.
fn parts<T>(items: Vec<T>, cost: impl Fn(&T) -> usize) -> Vec<Vec<T>> {
    let mut parts = vec![Vec::new()];
    let mut bytes = 0;
    for item in items {
        if bytes >= MESSAGE_BYTES {
            parts.push(Vec::new());
            bytes = 0;
        }
        bytes += 16 + cost(&item);
        if let Some(part) = parts.last_mut() {
            part.push(item);
        }
    }
    parts
}

fn event_cost(event: &WatchEvent) -> usize {
    match event {
        WatchEvent::Put { key, value } => key.len() + value.value.len(),
        WatchEvent::Deleted { key, .. } => key.len(),
    }
}

#[tonic::async_trait]
impl metadata_server::Metadata for MetadataService {
    type ListStream = BoxStream<'static, Result<wire::ListAnswer, Status>>;
    type WatchStream = BoxStream<'static, Result<wire::WatchAnswer, Status>>;

    async fn get(
        &self,
        request: Request<wire::GetRequest>,
    ) -> Result<Response<wire::GetAnswer>, Status> {
        let key = request.into_inner().key;
        Ok(Response::new(match self.metadata.get(&key).await {
            Ok(found) => {
                wire::GetAnswer { pair: found.map(|value| pair_to_wire(key, value)), failure: None }
            }
            Err(error) => wire::GetAnswer { pair: None, failure: Some(error_to_wire(error)) },
        }))
    }

    async fn list(
        &self,
        request: Request<wire::ListRequest>,
    ) -> Result<Response<Self::ListStream>, Status> {
        let request = request.into_inner();
        let limit = usize::try_from(request.limit).unwrap_or(usize::MAX);
        // One question to the store, so that all parts are of one moment.
        let answers = match self
            .metadata
            .list(&request.prefix, request.after.as_deref(), limit)
            .await
        {
            Ok(pairs) => parts(pairs, |(key, value)| key.len() + value.value.len())
                .into_iter()
                .map(|part| wire::ListAnswer {
                    pairs: part.into_iter().map(|(key, value)| pair_to_wire(key, value)).collect(),
                    failure: None,
                })
                .collect(),
            Err(error) => {
                vec![wire::ListAnswer { pairs: Vec::new(), failure: Some(error_to_wire(error)) }]
            }
        };
        Ok(Response::new(stream::iter(answers).map(Ok).boxed()))
    }

    async fn put(
        &self,
        request: Request<wire::PutRequest>,
    ) -> Result<Response<wire::ChangeAnswer>, Status> {
        let put = request.into_inner();
        let session = (put.session != 0).then_some(SessionId(put.session));
        let result = match expect_from_wire(put.expect) {
            Ok(expect) => self.metadata.put(&put.key, put.value, expect, session).await,
            Err(error) => Err(error),
        };
        answer(result.map(|version| version.0))
    }

    async fn delete(
        &self,
        request: Request<wire::DeleteRequest>,
    ) -> Result<Response<wire::ChangeAnswer>, Status> {
        let delete = request.into_inner();
        let result = match expect_from_wire(delete.expect) {
            Ok(expect) => self.metadata.delete(&delete.key, expect).await,
            Err(error) => Err(error),
        };
        answer(result.map(|()| 0))
    }

    async fn next_number(
        &self,
        request: Request<wire::NextNumberRequest>,
    ) -> Result<Response<wire::ChangeAnswer>, Status> {
        answer(self.metadata.next_number(&request.into_inner().key).await)
    }

    async fn watch(
        &self,
        request: Request<wire::WatchRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let watch =
            self.metadata.watch(&request.into_inner().prefix).await.map_err(
                |error| match error {
                    MetadataError::Unavailable(reason) => Status::unavailable(reason),
                    MetadataError::NotLeader { .. } => Status::unavailable(error.to_string()),
                    other => Status::invalid_argument(other.to_string()),
                },
            )?;
        let batches = stream::unfold(watch, |mut watch| async move {
            let events = watch.next().await?;
            Some((stream::iter(parts(events, event_cost)), watch))
        });
        let answers = batches.flatten().map(|part| {
            Ok(wire::WatchAnswer { events: part.into_iter().map(event_to_wire).collect() })
        });
        Ok(Response::new(answers.boxed()))
    }

    async fn open_session(
        &self,
        request: Request<wire::OpenSessionRequest>,
    ) -> Result<Response<wire::ChangeAnswer>, Status> {
        let time_to_live = Duration::from_millis(request.into_inner().time_to_live_ms);
        answer(self.metadata.open_session(time_to_live).await.map(|session| session.0))
    }

    async fn keep_alive(
        &self,
        request: Request<wire::SessionRequest>,
    ) -> Result<Response<wire::ChangeAnswer>, Status> {
        let session = SessionId(request.into_inner().session);
        answer(self.metadata.keep_alive(session).await.map(|()| 0))
    }

    async fn close_session(
        &self,
        request: Request<wire::SessionRequest>,
    ) -> Result<Response<wire::ChangeAnswer>, Status> {
        let session = SessionId(request.into_inner().session);
        answer(self.metadata.close_session(session).await.map(|()| 0))
    }
}
