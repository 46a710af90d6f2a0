//! What every store that answers by itself is to its users in the same process: their questions as commands, and
//! reads of its own state.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use super::store::{Command, Done, check_key, check_list};
use super::{
    Expect, MetadataClient, MetadataError, MetadataStore, Revision, SessionId, Versioned,
    WatchStream,
};

#[async_trait]
impl<S: MetadataStore> MetadataClient for S {
    async fn get(&self, key: &str) -> Result<Option<Versioned>, MetadataError> {
        check_key(key)?;
        self.catch_up().await?;
        Ok(self.look(|store| store.get(key)))
    }

    async fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<(String, Versioned)>, MetadataError> {
        check_list(prefix, limit)?;
        self.catch_up().await?;
        Ok(self.look(|store| store.list(prefix, after, limit)))
    }

    async fn put(
        &self,
        key: &str,
        value: Bytes,
        expect: Expect,
        session: Option<SessionId>,
    ) -> Result<Revision, MetadataError> {
        match self.change(Command::Put { key: key.to_owned(), value, expect, session }).await? {
            Done::Written(version) => Ok(version),
            other => Err(unexpected(other)),
        }
    }

    async fn delete(&self, key: &str, expect: Expect) -> Result<(), MetadataError> {
        self.change(Command::Delete { key: key.to_owned(), expect }).await.map(|_| ())
    }

    async fn next_number(&self, key: &str) -> Result<u64, MetadataError> {
        match self.change(Command::NextNumber { key: key.to_owned() }).await? {
            Done::Number(number) => Ok(number),
            other => Err(unexpected(other)),
        }
    }

    async fn watch(&self, prefix: &str) -> Result<Box<dyn WatchStream>, MetadataError> {
        Ok(self.watch_after(prefix, None).await?.stream)
    }

    async fn open_session(&self, time_to_live: Duration) -> Result<SessionId, MetadataError> {
        let time_to_live_ms = u64::try_from(time_to_live.as_millis()).unwrap_or(u64::MAX);
        match self.change(Command::OpenSession { time_to_live_ms }).await? {
            Done::Opened(session) => Ok(session),
            other => Err(unexpected(other)),
        }
    }

    async fn keep_alive(&self, session: SessionId) -> Result<(), MetadataError> {
        self.change(Command::KeepAlive { session }).await.map(|_| ())
    }

    async fn close_session(&self, session: SessionId) -> Result<(), MetadataError> {
        self.change(Command::CloseSession { session }).await.map(|_| ())
    }
}

fn unexpected(done: Done) -> MetadataError {
    MetadataError::OutcomeUnknown(format!("the store answered {done:?} to another question"))
}
