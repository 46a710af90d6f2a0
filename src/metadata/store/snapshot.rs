//! The whole state as bytes and back (`proto/seawall/metadata_files.proto`).

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use prost::Message;

use super::Store;
use super::clients::Clients;
use super::state::{Record, Session};
use crate::metadata::{Revision, SessionId};
use crate::rpc::generated::metadata_files as wire;

/// Bytes that are not a state that commands could have made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotDamage {
    /// Not the protobuf message expected.
    #[error("not a snapshot: {0}")]
    Malformed(String),
    /// Parts contradict each other.
    #[error("the snapshot contradicts itself: {0}")]
    Contradiction(String),
}

impl Store {
    /// Bytes of the whole state; equal states give equal bytes.
    pub fn to_snapshot(&self) -> Bytes {
        let keys = self.keys.iter().map(|(key, record)| wire::SnapshotKey {
            key: key.clone(),
            value: record.value.clone(),
            version: record.version.0,
            session: record.session.map_or(0, |session| session.0),
        });
        let sessions = self.sessions.iter().map(|(id, session)| wire::SnapshotSession {
            session: id.0,
            time_to_live_ms: session.time_to_live_ms,
            expires_at_ms: session.expires_at_ms,
        });
        let counters = self
            .counters
            .iter()
            .map(|(key, value)| wire::SnapshotCounter { key: key.clone(), value: *value });
        let snapshot = wire::Snapshot {
            applied: self.applied,
            revision: self.revision.0,
            last_session: self.last_session,
            now_ms: self.now_ms,
            keys: keys.collect(),
            sessions: sessions.collect(),
            counters: counters.collect(),
            last_client: self.clients.last(),
            clients: self.clients.to_wire(),
        };
        Bytes::from(snapshot.encode_to_vec())
    }

    /// The state from its bytes.
    pub fn from_snapshot(bytes: Bytes) -> Result<Self, SnapshotDamage> {
        let snapshot = wire::Snapshot::decode(bytes)
            .map_err(|error| SnapshotDamage::Malformed(error.to_string()))?;
        let mut store = Self {
            applied: snapshot.applied,
            revision: Revision(snapshot.revision),
            last_session: snapshot.last_session,
            now_ms: snapshot.now_ms,
            bytes: 0,
            keys: BTreeMap::new(),
            sessions: BTreeMap::new(),
            counters: snapshot
                .counters
                .into_iter()
                .map(|counter| (counter.key, counter.value))
                .collect(),
            clients: Clients::from_wire(snapshot.last_client, snapshot.clients)
                .map_err(contradiction)?,
        };
        for session in snapshot.sessions {
            let entry = Session {
                time_to_live_ms: session.time_to_live_ms,
                expires_at_ms: session.expires_at_ms,
                keys: BTreeSet::new(),
            };
            if session.session == 0 || session.session > store.last_session {
                return Err(contradiction(format!("session {} never opened", session.session)));
            }
            store.sessions.insert(SessionId(session.session), entry);
        }
        for key in snapshot.keys {
            store.restore_key(key)?;
        }
        Ok(store)
    }

    fn restore_key(&mut self, key: wire::SnapshotKey) -> Result<(), SnapshotDamage> {
        if key.version == 0 || key.version > self.revision.0 {
            return Err(contradiction(format!("{} has version {}", key.key, key.version)));
        }
        let session = (key.session != 0).then_some(SessionId(key.session));
        if let Some(session) = session {
            let Some(session) = self.sessions.get_mut(&session) else {
                return Err(contradiction(format!("{} names session {}", key.key, key.session)));
            };
            session.keys.insert(key.key.clone());
        }
        // A copy of its own: a slice would keep the whole snapshot's buffer.
        let value = Bytes::copy_from_slice(&key.value);
        let record = Record { value, version: Revision(key.version), session };
        self.bytes += record.cost(&key.key);
        self.keys.insert(key.key, record);
        Ok(())
    }
}

fn contradiction(detail: String) -> SnapshotDamage {
    SnapshotDamage::Contradiction(detail)
}
