//! A metadata store in memory that loses answers on demand.

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
    counter: u64,
    lose_answers: u32,
    disturb: u32,
}

/// See the module.
#[derive(Default)]
pub(in crate::ledger) struct FakeMetadata(Mutex<State>);

impl FakeMetadata {
    /// The next `count` puts are made, but their answers are lost.
    pub(in crate::ledger) fn lose_answers(&self, count: u32) {
        self.0.lock().unwrap().lose_answers = count;
    }

    /// Someone else rewrites a record, unchanged, just before each of the next `count` conditional puts.
    pub(in crate::ledger) fn disturb(&self, count: u32) {
        self.0.lock().unwrap().disturb = count;
    }
}

#[async_trait]
impl MetadataClient for FakeMetadata {
    async fn get(&self, key: &str) -> Result<Option<Versioned>, MetadataError> {
        Ok(self.0.lock().unwrap().pairs.get(key).cloned())
    }

    async fn list(
        &self,
        _prefix: &str,
        _after: Option<&str>,
        _limit: usize,
    ) -> Result<Vec<(String, Versioned)>, MetadataError> {
        Err(MetadataError::Refused("not faked".to_owned()))
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
        let found = state.pairs.get(key).map(|found| found.version);
        let holds = match expect {
            Expect::Any => true,
            Expect::Absent => found.is_none(),
            Expect::Version(version) => found == Some(version),
        };
        if !holds {
            return Err(MetadataError::VersionMismatch {
                key: key.to_owned(),
                expected: expect,
                found,
            });
        }
        state.revision += 1;
        let version = Revision(state.revision);
        state.pairs.insert(key.to_owned(), Versioned { value, version });
        if state.lose_answers > 0 {
            state.lose_answers -= 1;
            return Err(MetadataError::OutcomeUnknown("lost".to_owned()));
        }
        Ok(version)
    }

    async fn delete(&self, key: &str, _expect: Expect) -> Result<(), MetadataError> {
        self.0.lock().unwrap().pairs.remove(key);
        Ok(())
    }

    async fn next_number(&self, _key: &str) -> Result<u64, MetadataError> {
        let mut state = self.0.lock().unwrap();
        state.counter += 1;
        Ok(state.counter)
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
