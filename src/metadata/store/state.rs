//! The state and the one function that changes it.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, RandomState};
use std::ops::Bound;

use bytes::Bytes;

use super::clients::Clients;
use super::limits::{COUNTERS_MAX, KEY_OVERHEAD_BYTES, SESSIONS_MAX, STORE_BYTES_MAX};
use super::{Command, Done};
use crate::metadata::{Expect, MetadataError, Revision, SessionId, Versioned, WatchEvent};
use crate::{invariant, mutant, reached};

/// One key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) value: Bytes,
    pub(super) version: Revision,
    pub(super) session: Option<SessionId>,
}

/// One session. `keys` are exactly the keys whose record names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Session {
    pub(super) time_to_live_ms: u64,
    pub(super) expires_at_ms: u64,
    pub(super) keys: BTreeSet<String>,
}

/// The whole state. Everything in it came from the commands applied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Store {
    pub(super) applied: u64,
    pub(super) revision: Revision,
    pub(super) last_session: u64,
    pub(super) now_ms: u64,
    pub(super) bytes: u64,
    pub(super) keys: BTreeMap<String, Record>,
    pub(super) sessions: BTreeMap<SessionId, Session>,
    pub(super) counters: BTreeMap<String, u64>,
    pub(super) clients: Clients,
}

/// What applying a command gave: the answer for who asked, the events for who watches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// The answer. A refused command changed nothing.
    pub result: Result<Done, MetadataError>,
    /// The changes, in revision order, each with a revision of its own.
    pub events: Vec<WatchEvent>,
}

impl Store {
    /// The state before any command.
    pub fn new() -> Self {
        Self::default()
    }

    /// Number of commands applied, refused ones included: the place in the log.
    pub fn applied(&self) -> u64 {
        self.applied
    }

    /// The revision of the last change.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// Logical time, in milliseconds.
    pub fn now_ms(&self) -> u64 {
        self.now_ms
    }

    /// When the next session ends if nothing keeps it alive.
    pub fn next_expiry_ms(&self) -> Option<u64> {
        self.sessions.values().map(|session| session.expires_at_ms).min()
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<Versioned> {
        self.keys.get(key).map(Record::versioned)
    }

    /// Up to `limit` pairs under `prefix` with keys greater than `after`, in key order.
    pub fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Vec<(String, Versioned)> {
        let start = match after {
            Some(after) if after >= prefix => Bound::Excluded(after),
            _ => Bound::Included(prefix),
        };
        self.keys
            .range::<str, _>((start, Bound::Unbounded))
            .take_while(|(key, _)| key.starts_with(prefix))
            .take(limit)
            .map(|(key, record)| (key.clone(), record.versioned()))
            .collect()
    }

    /// Applies the next command of the log.
    pub fn apply(&mut self, command: &Command) -> Applied {
        self.applied += 1;
        let mut events = Vec::new();
        let result = command.check().and_then(|()| self.change(command, &mut events));
        invariant!(result.is_ok() || events.is_empty(), "a refused command changed something");
        Applied { result, events }
    }

    fn change(
        &mut self,
        command: &Command,
        events: &mut Vec<WatchEvent>,
    ) -> Result<Done, MetadataError> {
        match command {
            Command::OpenClient => Ok(Done::Opened(SessionId(self.clients.open(self.applied)))),
            Command::Once { id, command } => {
                if let Some(answer) = self.clients.answered(*id, command, self.applied)? {
                    return answer;
                }
                let answer = self.change(command, events);
                self.clients.keep(*id, &answer);
                answer
            }
            Command::Put { key, value, expect, session } => {
                self.put(key, value, *expect, *session, events)
            }
            Command::Delete { key, expect } => {
                self.check_condition(key, *expect)?;
                self.remove(key, events);
                Ok(Done::Nothing)
            }
            Command::NextNumber { key } => self.next_number(key),
            Command::OpenSession { time_to_live_ms } => self.open_session(*time_to_live_ms),
            Command::KeepAlive { session } => {
                let now_ms = self.now_ms;
                let session =
                    self.sessions.get_mut(session).ok_or(MetadataError::SessionExpired)?;
                session.expires_at_ms = now_ms.saturating_add(session.time_to_live_ms);
                Ok(Done::Nothing)
            }
            Command::CloseSession { session } => {
                self.end_session(*session, events);
                Ok(Done::Nothing)
            }
            Command::AdvanceTime { to_ms } => {
                self.advance_time(*to_ms, events);
                Ok(Done::Nothing)
            }
        }
    }

    fn check_condition(&self, key: &str, expect: Expect) -> Result<(), MetadataError> {
        let found = self.keys.get(key).map(|record| record.version);
        let holds = match expect {
            Expect::Any => true,
            Expect::Absent => found.is_none(),
            Expect::Version(_) if mutant!("M-cas") => found.is_some(),
            Expect::Version(version) => found == Some(version),
        };
        if holds {
            Ok(())
        } else {
            Err(MetadataError::VersionMismatch { key: key.to_owned(), expected: expect, found })
        }
    }

    fn put(
        &mut self,
        key: &str,
        value: &Bytes,
        expect: Expect,
        session: Option<SessionId>,
        events: &mut Vec<WatchEvent>,
    ) -> Result<Done, MetadataError> {
        if session.is_some_and(|session| !self.sessions.contains_key(&session)) {
            return Err(MetadataError::SessionExpired);
        }
        self.check_condition(key, expect)?;
        let before = self.keys.get(key).map_or(0, |record| record.cost(key));
        // A copy of its own: a slice would keep the whole network buffer it came in.
        let value = Bytes::copy_from_slice(value);
        let mut record = Record { value, version: self.revision, session };
        let bytes = self.bytes - before + record.cost(key);
        if bytes > STORE_BYTES_MAX {
            reached!("metadata: the store is full");
            return Err(MetadataError::Refused(format!(
                "the store would hold {bytes} bytes, allowed {STORE_BYTES_MAX}"
            )));
        }
        self.bytes = bytes;
        record.version = self.next_revision();
        let versioned = record.versioned();
        let previous = self.keys.insert(key.to_owned(), record);
        self.untie(key, previous.and_then(|previous| previous.session));
        if let Some(session) = session.and_then(|session| self.sessions.get_mut(&session)) {
            session.keys.insert(key.to_owned());
        }
        let version = versioned.version;
        events.push(WatchEvent::Put { key: key.to_owned(), value: versioned });
        Ok(Done::Written(version))
    }

    fn remove(&mut self, key: &str, events: &mut Vec<WatchEvent>) {
        let Some(record) = self.keys.remove(key) else { return };
        self.bytes -= record.cost(key);
        self.untie(key, record.session);
        let revision = self.next_revision();
        events.push(WatchEvent::Deleted { key: key.to_owned(), revision });
    }

    fn untie(&mut self, key: &str, session: Option<SessionId>) {
        if let Some(session) = session.and_then(|session| self.sessions.get_mut(&session)) {
            session.keys.remove(key);
        }
    }

    fn next_revision(&mut self) -> Revision {
        self.revision.0 += 1;
        self.revision
    }

    fn next_number(&mut self, key: &str) -> Result<Done, MetadataError> {
        if let Some(value) = self.counters.get_mut(key) {
            let next = value.checked_add(1).ok_or_else(|| {
                MetadataError::Refused(format!("the counter {key} is at its end"))
            })?;
            *value = next;
            return Ok(Done::Number(next));
        }
        if self.counters.len() >= COUNTERS_MAX {
            return Err(MetadataError::Refused(format!("allowed {COUNTERS_MAX} counters")));
        }
        self.counters.insert(key.to_owned(), 1);
        Ok(Done::Number(1))
    }

    fn open_session(&mut self, time_to_live_ms: u64) -> Result<Done, MetadataError> {
        if self.sessions.len() >= SESSIONS_MAX {
            return Err(MetadataError::Refused(format!("allowed {SESSIONS_MAX} sessions")));
        }
        self.last_session += 1;
        let id = SessionId(self.last_session);
        let expires_at_ms = self.now_ms.saturating_add(time_to_live_ms);
        self.sessions.insert(id, Session { time_to_live_ms, expires_at_ms, keys: BTreeSet::new() });
        Ok(Done::Opened(id))
    }

    fn end_session(&mut self, id: SessionId, events: &mut Vec<WatchEvent>) {
        let Some(session) = self.sessions.remove(&id) else { return };
        for key in session.keys {
            self.remove(&key, events);
        }
    }

    fn advance_time(&mut self, to_ms: u64, events: &mut Vec<WatchEvent>) {
        self.now_ms = self.now_ms.max(to_ms);
        let mut over: Vec<SessionId> = self
            .sessions
            .iter()
            .filter(|(_, session)| session.expires_at_ms <= self.now_ms)
            .map(|(id, _)| *id)
            .collect();
        if mutant!("M14") {
            over.sort_by_cached_key(|id| RandomState::new().hash_one(id));
        }
        for id in over {
            reached!("metadata: a session expired");
            self.end_session(id, events);
        }
    }
}

impl Record {
    pub(super) fn cost(&self, key: &str) -> u64 {
        key.len() as u64 + self.value.len() as u64 + KEY_OVERHEAD_BYTES
    }

    fn versioned(&self) -> Versioned {
        Versioned { value: self.value.clone(), version: self.version }
    }
}
