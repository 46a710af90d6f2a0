//! A metadata store in memory that loses answers on demand; no sessions, no watches.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use crate::metadata::{
    Expect, MetadataClient, MetadataError, Revision, SessionId, Versioned, WatchStream,
};

#[derive(Default)]
struct State {
    pairs: BTreeMap<String, Versioned>,
    revision: u64,
    counters: BTreeMap<String, u64>,
    lose_answers: u32,
    disturb: u32,
    /// What someone else puts just before the next conditional put of that key.
    intrusion: Option<(String, Bytes)>,
    /// Puts below this prefix are lost with their answers.
    lost_below: Option<&'static str>,
}

impl State {
    /// Whether the key is as expected.
    fn check(&self, key: &str, expected: Expect) -> Result<(), MetadataError> {
        let found = self.pairs.get(key).map(|found| found.version);
        let holds = match expected {
            Expect::Any => true,
            Expect::Absent => found.is_none(),
            Expect::Version(version) => found == Some(version),
        };
        if holds {
            return Ok(());
        }
        Err(MetadataError::VersionMismatch { key: key.to_owned(), expected, found })
    }
}

/// See the module.
#[derive(Default)]
pub(crate) struct FakeMetadata(Mutex<State>);

impl FakeMetadata {
    /// The next `count` puts are made, but their answers are lost.
    pub(crate) fn lose_answers(&self, count: u32) {
        self.0.lock().unwrap().lose_answers = count;
    }

    /// Someone else rewrites a record, unchanged, just before each of the next `count` conditional puts.
    pub(crate) fn disturb(&self, count: u32) {
        self.0.lock().unwrap().disturb = count;
    }

    /// Someone else puts this just before the next conditional put of the key.
    pub(crate) fn intrude(&self, key: String, value: Bytes) {
        self.0.lock().unwrap().intrusion = Some((key, value));
    }

    /// From now on puts below this prefix are lost on their way, until `None` is given.
    pub(crate) fn lose_puts(&self, below: Option<&'static str>) {
        self.0.lock().unwrap().lost_below = below;
    }
}

#[async_trait]
impl MetadataClient for FakeMetadata {
    async fn get(&self, key: &str) -> Result<Option<Versioned>, MetadataError> {
        Ok(self.0.lock().unwrap().pairs.get(key).cloned())
    }

    async fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<(String, Versioned)>, MetadataError> {
        let state = self.0.lock().unwrap();
        let pairs = state.pairs.iter().filter(|(key, _)| {
            key.starts_with(prefix) && after.is_none_or(|after| key.as_str() > after)
        });
        Ok(pairs.take(limit).map(|(key, value)| (key.clone(), value.clone())).collect())
    }

    async fn put(
        &self,
        key: &str,
        value: Bytes,
        expect: Expect,
        _session: Option<SessionId>,
    ) -> Result<Revision, MetadataError> {
        let mut state = self.0.lock().unwrap();
        if state.disturb > 0 && matches!(expect, Expect::Version(_)) {
            state.disturb -= 1;
            state.revision += 1;
            let version = Revision(state.revision);
            state.pairs.get_mut(key).unwrap().version = version;
        }
        if matches!(expect, Expect::Version(_))
            && let Some((_, value)) = state.intrusion.take_if(|(intruded, _)| intruded == key)
        {
            state.revision += 1;
            let version = Revision(state.revision);
            state.pairs.insert(key.to_owned(), Versioned { value, version });
        }
        if state.lost_below.is_some_and(|prefix| key.starts_with(prefix)) {
            return Err(MetadataError::OutcomeUnknown("lost".to_owned()));
        }
        state.check(key, expect)?;
        state.revision += 1;
        let version = Revision(state.revision);
        state.pairs.insert(key.to_owned(), Versioned { value, version });
        if state.lose_answers > 0 {
            state.lose_answers -= 1;
            return Err(MetadataError::OutcomeUnknown("lost".to_owned()));
        }
        Ok(version)
    }

    async fn delete(&self, key: &str, expect: Expect) -> Result<(), MetadataError> {
        let mut state = self.0.lock().unwrap();
        state.check(key, expect)?;
        state.pairs.remove(key);
        Ok(())
    }

    async fn next_number(&self, key: &str) -> Result<u64, MetadataError> {
        let mut state = self.0.lock().unwrap();
        let number = state.counters.entry(key.to_owned()).or_insert(0);
        *number += 1;
        Ok(*number)
    }

    async fn watch(&self, _prefix: &str) -> Result<Box<dyn WatchStream>, MetadataError> {
        Err(MetadataError::Refused("not faked".to_owned()))
    }

    async fn open_session(&self, _time_to_live: Duration) -> Result<SessionId, MetadataError> {
        Err(MetadataError::Refused("not faked".to_owned()))
    }

    async fn keep_alive(&self, _session: SessionId) -> Result<(), MetadataError> {
        Err(MetadataError::Refused("not faked".to_owned()))
    }

    async fn close_session(&self, _session: SessionId) -> Result<(), MetadataError> {
        Err(MetadataError::Refused("not faked".to_owned()))
    }
}
