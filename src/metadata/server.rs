//! The metadata service: a local store answered over gRPC.

use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use tonic::{Request, Response, Status};

use super::store::{Command, Done, RequestId};
use super::wire::{error_to_wire, event_to_wire, expect_from_wire, pair_to_wire};
use super::{MetadataError, MetadataStore, Revision, SessionId, StoreWatch, WatchEvent};
use crate::rpc::generated::metadata as wire;
use crate::rpc::generated::metadata::metadata_server;
use crate::rpc::{MESSAGE_BYTES, MESSAGE_BYTES_MAX};

/// Answers the metadata service from any store behind the contract.
pub struct MetadataService {
    metadata: Arc<dyn MetadataStore>,
}

/// The generated service around [`MetadataService`].
pub type MetadataServer = metadata_server::MetadataServer<MetadataService>;

impl MetadataService {
    /// The service for `rpc::Routes`.
    pub fn server(metadata: Arc<dyn MetadataStore>) -> MetadataServer {
        metadata_server::MetadataServer::new(Self { metadata })
            .max_decoding_message_size(MESSAGE_BYTES_MAX)
    }
}

impl MetadataService {
    /// Makes a change, once if it has a name.
    async fn change(
        &self,
        id: Option<wire::RequestId>,
        command: Command,
    ) -> Result<Response<wire::ChangeAnswer>, Status> {
        let command = match id {
            Some(id) => {
                let wire::RequestId { client, sequence, answered_below } = id;
                let id = RequestId { client, sequence, answered_below };
                Command::Once { id, command: Box::new(command) }
            }
            None => command,
        };
        answer(self.metadata.change(command).await.map(|done| match done {
            Done::Written(version) => version.0,
            Done::Number(number) => number,
            Done::Opened(session) => session.0,
            Done::Nothing => 0,
        }))
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
        let expect = match expect_from_wire(put.expect) {
            Ok(expect) => expect,
            Err(error) => return answer(Err(error)),
        };
        self.change(put.id, Command::Put { key: put.key, value: put.value, expect, session }).await
    }

    async fn delete(
        &self,
        request: Request<wire::DeleteRequest>,
    ) -> Result<Response<wire::ChangeAnswer>, Status> {
        let delete = request.into_inner();
        let expect = match expect_from_wire(delete.expect) {
            Ok(expect) => expect,
            Err(error) => return answer(Err(error)),
        };
        self.change(delete.id, Command::Delete { key: delete.key, expect }).await
    }

    async fn next_number(
        &self,
        request: Request<wire::NextNumberRequest>,
    ) -> Result<Response<wire::ChangeAnswer>, Status> {
        let next = request.into_inner();
        self.change(next.id, Command::NextNumber { key: next.key }).await
    }

    async fn open_client(
        &self,
        _request: Request<wire::OpenClientRequest>,
    ) -> Result<Response<wire::ChangeAnswer>, Status> {
        self.change(None, Command::OpenClient).await
    }

    async fn watch(
        &self,
        request: Request<wire::WatchRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let wire::WatchRequest { prefix, after } = request.into_inner();
        let watch = self.metadata.watch_after(&prefix, after.map(Revision)).await;
        let StoreWatch { stream, is_resumed, began_at } = watch.map_err(|error| match error {
            MetadataError::Unavailable(reason) => Status::unavailable(reason),
            MetadataError::NotLeader { .. } => Status::unavailable(error.to_string()),
            other => Status::invalid_argument(other.to_string()),
        })?;
        let batches = stream::unfold(stream, |mut watch| async move {
            let events = watch.next().await?;
            Some((stream::iter(parts(events, event_cost)), watch))
        });
        let answers = batches.flatten().map(move |part: Vec<WatchEvent>| {
            let began_at = if part.is_empty() { began_at.0 } else { 0 };
            let events = part.into_iter().map(event_to_wire).collect();
            Ok(wire::WatchAnswer { events, resumed: false, began_at })
        });
        let first = wire::WatchAnswer { resumed: true, ..Default::default() };
        let first = stream::iter(is_resumed.then_some(Ok(first)));
        Ok(Response::new(first.chain(answers).boxed()))
    }

    async fn open_session(
        &self,
        request: Request<wire::OpenSessionRequest>,
    ) -> Result<Response<wire::ChangeAnswer>, Status> {
        let open = request.into_inner();
        let time_to_live_ms = open.time_to_live_ms;
        self.change(open.id, Command::OpenSession { time_to_live_ms }).await
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
