//! The metadata store against a map with versions: same answers, same events, snapshots equal to states,
//! and a watch that replays to exactly what a listing shows.

use std::collections::BTreeMap;

use bytes::Bytes;
use proptest::prelude::*;
use seawall::metadata::store::{
    Command, Done, RequestId, Store, Watches, decode_group, encode_group,
};
use seawall::metadata::{Expect, MetadataError, Revision, SessionId, WatchEvent};

/// What a person would write down: for each key its value, version and session.
#[derive(Default)]
struct Model {
    keys: BTreeMap<String, (Bytes, u64, Option<u64>)>,
    sessions: BTreeMap<u64, (u64, u64)>,
    counters: BTreeMap<String, u64>,
    revision: u64,
    opened: u64,
    now: u64,
    clients: BTreeMap<u64, Client>,
}

/// What it waits for no longer, and what the changes since gave.
type Client = (u64, BTreeMap<u64, Result<Done, Refused>>);

#[derive(Clone, Copy, Debug)]
enum Refused {
    SessionEnded,
    Condition,
    /// The client was never given a number.
    Forgotten,
    /// Nobody waits for the answer.
    Late,
}

impl Model {
    fn condition_holds(&self, key: &str, expect: Expect) -> bool {
        let found = self.keys.get(key).map(|(_, version, _)| *version);
        match expect {
            Expect::Any => true,
            Expect::Absent => found.is_none(),
            Expect::Version(version) => found == Some(version.0),
        }
    }

    fn remove(&mut self, key: &str) {
        if self.keys.remove(key).is_some() {
            self.revision += 1;
        }
    }

    fn end_session(&mut self, session: u64) {
        self.sessions.remove(&session);
        let keys: Vec<String> = self
            .keys
            .iter()
            .filter(|(_, (_, _, tied))| *tied == Some(session))
            .map(|(key, _)| key.clone())
            .collect();
        for key in keys {
            self.remove(&key);
        }
    }

    /// The answer expected.
    fn apply(&mut self, command: &Command) -> Result<Done, Refused> {
        match command {
            Command::OpenClient => {
                let client = self.clients.len() as u64 + 1;
                self.clients.insert(client, (0, BTreeMap::new()));
                Ok(Done::Opened(SessionId(client)))
            }
            Command::Once { id, command } => {
                let Some((floor, answers)) = self.clients.get_mut(&id.client) else {
                    return Err(Refused::Forgotten);
                };
                *floor = (*floor).max(id.answered_below);
                let floor = *floor;
                answers.retain(|sequence, _| *sequence >= floor);
                if let Some(answer) = answers.get(&id.sequence) {
                    return *answer;
                }
                if id.sequence < floor {
                    return Err(Refused::Late);
                }
                let answer = self.apply(command);
                self.clients.get_mut(&id.client).unwrap().1.insert(id.sequence, answer);
                answer
            }
            Command::Put { key, value, expect, session } => {
                let session = session.map(|session| session.0);
                if session.is_some_and(|session| !self.sessions.contains_key(&session)) {
                    return Err(Refused::SessionEnded);
                }
                if !self.condition_holds(key, *expect) {
                    return Err(Refused::Condition);
                }
                self.revision += 1;
                self.keys.insert(key.clone(), (value.clone(), self.revision, session));
                Ok(Done::Written(Revision(self.revision)))
            }
            Command::Delete { key, expect } => {
                if !self.condition_holds(key, *expect) {
                    return Err(Refused::Condition);
                }
                self.remove(key);
                Ok(Done::Nothing)
            }
            Command::NextNumber { key } => {
                let number = self.counters.entry(key.clone()).or_default();
                *number += 1;
                Ok(Done::Number(*number))
            }
            Command::OpenSession { time_to_live_ms } => {
                self.opened += 1;
                self.sessions.insert(self.opened, (*time_to_live_ms, self.now + time_to_live_ms));
                Ok(Done::Opened(SessionId(self.opened)))
            }
            Command::KeepAlive { session } => match self.sessions.get_mut(&session.0) {
                Some((time_to_live, expires_at)) => {
                    *expires_at = self.now + *time_to_live;
                    Ok(Done::Nothing)
                }
                None => Err(Refused::SessionEnded),
            },
            Command::CloseSession { session } => {
                self.end_session(session.0);
                Ok(Done::Nothing)
            }
            Command::AdvanceTime { to_ms } => {
                self.now = self.now.max(*to_ms);
                let over: Vec<u64> = self
                    .sessions
                    .iter()
                    .filter(|(_, (_, expires_at))| *expires_at <= self.now)
                    .map(|(session, _)| *session)
                    .collect();
                for session in over {
                    self.end_session(session);
                }
                Ok(Done::Nothing)
            }
        }
    }
}

fn key() -> impl Strategy<Value = String> {
    prop_oneof!["/a/[a-c]", "/a/[a-c]/[xy]", "/b/[a-c]"]
}

fn expect() -> impl Strategy<Value = Expect> {
    prop_oneof![
        2 => Just(Expect::Any),
        2 => Just(Expect::Absent),
        3 => (1_u64..30).prop_map(|version| Expect::Version(Revision(version))),
    ]
}

fn session() -> impl Strategy<Value = SessionId> {
    (1_u64..6).prop_map(SessionId)
}

fn once() -> impl Strategy<Value = Command> {
    let command = prop_oneof![
        4 => (key(), "[a-z]{0,8}", expect()).prop_map(|(key, value, expect)| {
            Command::Put { key, value: Bytes::from(value), expect, session: None }
        }),
        1 => (key(), expect()).prop_map(|(key, expect)| Command::Delete { key, expect }),
        1 => key().prop_map(|key| Command::NextNumber { key }),
        1 => Just(Command::OpenSession { time_to_live_ms: 20 }),
    ];
    (1_u64..4, 1_u64..8, 0_u64..6, command).prop_map(|(client, sequence, below, command)| {
        let id = RequestId { client, sequence, answered_below: below.min(sequence) };
        Command::Once { id, command: Box::new(command) }
    })
}

fn command() -> impl Strategy<Value = Command> {
    prop_oneof![
        4 => once(),
        1 => Just(Command::OpenClient),
        6 => (key(), "[a-z]{0,8}", expect(), proptest::option::of(session())).prop_map(
            |(key, value, expect, session)| {
                Command::Put { key, value: Bytes::from(value), expect, session }
            }
        ),
        3 => (key(), expect()).prop_map(|(key, expect)| Command::Delete { key, expect }),
        1 => key().prop_map(|key| Command::NextNumber { key }),
        2 => (1_u64..50).prop_map(|time_to_live_ms| Command::OpenSession { time_to_live_ms }),
        1 => session().prop_map(|session| Command::KeepAlive { session }),
        1 => session().prop_map(|session| Command::CloseSession { session }),
        2 => (0_u64..120).prop_map(|to_ms| Command::AdvanceTime { to_ms }),
    ]
}

fn revision_of(event: &WatchEvent) -> u64 {
    match event {
        WatchEvent::Put { value, .. } => value.version.0,
        WatchEvent::Deleted { revision, .. } => revision.0,
    }
}

fn replay(seen: &mut BTreeMap<String, (Bytes, u64)>, events: Vec<WatchEvent>) {
    for event in events {
        match event {
            WatchEvent::Put { key, value } => {
                seen.insert(key, (value.value, value.version.0));
            }
            WatchEvent::Deleted { key, .. } => {
                seen.remove(&key);
            }
        }
    }
}

/// Everything a watch holds now. Its `next` is always ready here, or has nothing.
fn drain(watch: &mut seawall::metadata::store::WatchQueue) -> Vec<WatchEvent> {
    use futures_util::FutureExt;
    let mut all = Vec::new();
    while let Some(Some(events)) = watch.next().now_or_never() {
        all.extend(events);
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn the_store_is_a_map_with_versions(
        commands in proptest::collection::vec(command(), 1..60),
        watch_from in 0_usize..60,
    ) {
        let mut model = Model::default();
        let mut store = Store::new();
        let mut watches = Watches::new();
        let mut watch = None;
        let mut seen = BTreeMap::new();
        for (position, command) in commands.iter().enumerate() {
            if position == watch_from {
                watch = Some(watches.open("/a/", &store).unwrap());
            }
            let before = store.revision().0;
            let applied = store.apply(command);
            match (model.apply(command), &applied.result) {
                (Ok(expected), Ok(done)) => prop_assert_eq!(expected, *done),
                (Err(Refused::SessionEnded), Err(MetadataError::SessionExpired)) => {}
                (Err(Refused::Condition), Err(MetadataError::VersionMismatch { .. })) => {}
                (Err(Refused::Forgotten), Err(MetadataError::ClientForgotten)) => {}
                (Err(Refused::Late), Err(MetadataError::OutcomeUnknown(_))) => {}
                (expected, found) => prop_assert!(false, "expected {expected:?}, got {found:?}"),
            }
            // Each change has its own revision, none is skipped.
            let revisions: Vec<u64> = applied.events.iter().map(revision_of).collect();
            let expected: Vec<u64> = (before + 1..=store.revision().0).collect();
            prop_assert_eq!(revisions, expected);
            watches.dispatch(&applied.events);
            if let Some(watch) = &mut watch {
                replay(&mut seen, drain(watch));
                let listed: BTreeMap<String, (Bytes, u64)> = store
                    .list("/a/", None, 1000)
                    .into_iter()
                    .map(|(key, found)| (key, (found.value, found.version.0)))
                    .collect();
                prop_assert_eq!(&seen, &listed);
            }
            let listed: Vec<(String, Bytes, u64)> = store
                .list("/", None, 1000)
                .into_iter()
                .map(|(key, found)| (key, found.value, found.version.0))
                .collect();
            let expected: Vec<(String, Bytes, u64)> = model
                .keys
                .iter()
                .map(|(key, (value, version, _))| (key.clone(), value.clone(), *version))
                .collect();
            prop_assert_eq!(listed, expected);
        }
        // A snapshot at any point and the rest of the log give the same state.
        let half = commands.len() / 2;
        let mut first_half = Store::new();
        for command in &commands[..half] {
            let _ = first_half.apply(command);
        }
        let mut restored = Store::from_snapshot(first_half.to_snapshot()).unwrap();
        prop_assert_eq!(&restored, &first_half);
        let rest = decode_group(encode_group(&commands[half..])).unwrap();
        prop_assert_eq!(&rest[..], &commands[half..]);
        for command in &rest {
            let _ = restored.apply(command);
        }
        prop_assert_eq!(restored.to_snapshot(), store.to_snapshot());
    }

    #[test]
    fn damaged_bytes_are_errors_not_panics(
        commands in proptest::collection::vec(command(), 1..10),
        flip in any::<prop::sample::Index>(),
        bit in 0_u8..8,
        cut in any::<prop::sample::Index>(),
    ) {
        let mut store = Store::new();
        for command in &commands {
            let _ = store.apply(command);
        }
        for whole in [encode_group(&commands), store.to_snapshot()] {
            let mut bytes = whole.to_vec();
            let at = flip.index(bytes.len());
            bytes[at] ^= 1 << bit;
            bytes.truncate(cut.index(bytes.len()) + 1);
            let _ = decode_group(Bytes::from(bytes.clone()));
            let _ = Store::from_snapshot(Bytes::from(bytes));
        }
    }
}
