//! Each call of the contract as a gRPC call.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use tonic::Status;

use super::watch::RemoteWatch;
use super::{Client, RemoteMetadata};
use crate::metadata::wire::{check_failure, expect_to_wire, pair_from_wire};
use crate::metadata::{
    Expect, MetadataClient, MetadataError, Revision, SessionId, Versioned, WatchStream,
};
use crate::rpc::generated::metadata as wire;

/// Collects the parts of one listing. A part with a failure is the last.
async fn list(mut client: Client, request: wire::ListRequest) -> Result<wire::ListAnswer, Status> {
    let limit = usize::try_from(request.limit).unwrap_or(usize::MAX);
    let mut parts = client.list(request).await?.into_inner();
    let mut whole = wire::ListAnswer::default();
    while let Some(part) = parts.message().await? {
        whole.pairs.extend(part.pairs);
        whole.failure = part.failure;
        if whole.pairs.len() > limit {
            return Err(Status::out_of_range("more pairs than asked for"));
        }
    }
    Ok(whole)
}

fn number(answer: wire::ChangeAnswer) -> Result<u64, MetadataError> {
    check_failure(answer.failure)?;
    Ok(answer.number)
}

#[async_trait]
impl MetadataClient for RemoteMetadata {
    async fn get(&self, key: &str) -> Result<Option<Versioned>, MetadataError> {
        let answer = self
            .read(|mut client| {
                let request = wire::GetRequest { key: key.to_owned() };
                Box::pin(async move { Ok(client.get(request).await?.into_inner()) })
            })
            .await?;
        check_failure(answer.failure)?;
        Ok(answer.pair.map(|pair| pair_from_wire(pair).1))
    }

    async fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<(String, Versioned)>, MetadataError> {
        let request = wire::ListRequest {
            prefix: prefix.to_owned(),
            after: after.map(str::to_owned),
            limit: u32::try_from(limit).unwrap_or(u32::MAX),
        };
        let answer = self.read(|client| Box::pin(list(client, request.clone()))).await?;
        check_failure(answer.failure)?;
        Ok(answer.pairs.into_iter().map(pair_from_wire).collect())
    }

    async fn put(
        &self,
        key: &str,
        value: Bytes,
        expect: Expect,
        session: Option<SessionId>,
    ) -> Result<Revision, MetadataError> {
        let request = wire::PutRequest {
            key: key.to_owned(),
            value,
            expect: expect_to_wire(expect),
            session: session.map_or(0, |session| session.0),
            id: None,
        };
        let answer = self
            .change(|mut client, id| {
                let request = wire::PutRequest { id: Some(id), ..request.clone() };
                Box::pin(async move { Ok(client.put(request).await?.into_inner()) })
            })
            .await?;
        number(answer).map(Revision)
    }

    async fn delete(&self, key: &str, expect: Expect) -> Result<(), MetadataError> {
        let answer = self
            .change(|mut client, id| {
                let (key, expect) = (key.to_owned(), expect_to_wire(expect));
                let request = wire::DeleteRequest { key, expect, id: Some(id) };
                Box::pin(async move { Ok(client.delete(request).await?.into_inner()) })
            })
            .await?;
        number(answer).map(|_| ())
    }

    async fn next_number(&self, key: &str) -> Result<u64, MetadataError> {
        let answer = self
            .change(|mut client, id| {
                let request = wire::NextNumberRequest { key: key.to_owned(), id: Some(id) };
                Box::pin(async move { Ok(client.next_number(request).await?.into_inner()) })
            })
            .await?;
        number(answer)
    }

    async fn watch(&self, prefix: &str) -> Result<Box<dyn WatchStream>, MetadataError> {
        let answers = self
            .read(|mut client| {
                let request = wire::WatchRequest { prefix: prefix.to_owned(), after: None };
                Box::pin(async move { Ok(client.watch(request).await?.into_inner()) })
            })
            .await?;
        Ok(Box::new(RemoteWatch::new(self.clone(), prefix, answers)))
    }

    async fn open_session(&self, time_to_live: Duration) -> Result<SessionId, MetadataError> {
        let time_to_live_ms = u64::try_from(time_to_live.as_millis()).unwrap_or(u64::MAX);
        let answer = self
            .change(|mut client, id| {
                let request = wire::OpenSessionRequest { time_to_live_ms, id: Some(id) };
                Box::pin(async move { Ok(client.open_session(request).await?.into_inner()) })
            })
            .await?;
        number(answer).map(SessionId)
    }

    async fn keep_alive(&self, session: SessionId) -> Result<(), MetadataError> {
        // Twice alive is alive: asked again like a read.
        let answer = self
            .read(|mut client| {
                let request = wire::SessionRequest { session: session.0 };
                Box::pin(async move { Ok(client.keep_alive(request).await?.into_inner()) })
            })
            .await?;
        number(answer).map(|_| ())
    }

    async fn close_session(&self, session: SessionId) -> Result<(), MetadataError> {
        // Twice closed is closed: asked again like a read.
        let answer = self
            .read(|mut client| {
                let request = wire::SessionRequest { session: session.0 };
                Box::pin(async move { Ok(client.close_session(request).await?.into_inner()) })
            })
            .await?;
        number(answer).map(|_| ())
    }
}
