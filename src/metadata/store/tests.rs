//! What each command does, and that a snapshot is the state.

use bytes::Bytes;

use super::{CLIENTS_MAX, Command, Done, RequestId, Store, Watches};
use crate::metadata::{Expect, MetadataError, Revision, SessionId, WatchEvent};

fn put(key: &str, value: &'static str, expect: Expect, session: Option<SessionId>) -> Command {
    let value = Bytes::from_static(value.as_bytes());
    Command::Put { key: key.to_owned(), value, expect, session }
}

#[test]
fn compare_and_set_holds_by_version() {
    let mut store = Store::new();
    assert_eq!(
        store.apply(&put("/a", "1", Expect::Absent, None)).result,
        Ok(Done::Written(Revision(1)))
    );
    let refused = store.apply(&put("/a", "2", Expect::Absent, None));
    assert!(matches!(refused.result, Err(MetadataError::VersionMismatch { .. })));
    assert!(refused.events.is_empty());
    assert_eq!(
        store.apply(&put("/a", "2", Expect::Version(Revision(1)), None)).result,
        Ok(Done::Written(Revision(2)))
    );
    let stale = store.apply(&put("/a", "3", Expect::Version(Revision(1)), None));
    assert_eq!(
        stale.result,
        Err(MetadataError::VersionMismatch {
            key: "/a".to_owned(),
            expected: Expect::Version(Revision(1)),
            found: Some(Revision(2)),
        })
    );
    assert_eq!(store.get("/a").unwrap().value, "2");
}

#[test]
fn a_session_takes_its_keys_with_it() {
    let mut store = Store::new();
    let opened = store.apply(&Command::OpenSession { time_to_live_ms: 100 }).result;
    assert_eq!(opened, Ok(Done::Opened(SessionId(1))));
    let session = Some(SessionId(1));
    store.apply(&put("/b/1", "x", Expect::Absent, session)).result.unwrap();
    store.apply(&put("/b/2", "x", Expect::Absent, session)).result.unwrap();
    store.apply(&put("/b/2", "kept", Expect::Any, None)).result.unwrap();
    store.apply(&Command::AdvanceTime { to_ms: 99 }).result.unwrap();
    store.apply(&Command::KeepAlive { session: SessionId(1) }).result.unwrap();
    assert!(store.apply(&Command::AdvanceTime { to_ms: 198 }).events.is_empty());
    assert_eq!(store.next_expiry_ms(), Some(199));
    let events = store.apply(&Command::AdvanceTime { to_ms: 199 }).events;
    assert_eq!(events, vec![WatchEvent::Deleted { key: "/b/1".to_owned(), revision: Revision(4) }]);
    assert!(store.get("/b/2").is_some());
    let late = store.apply(&put("/b/1", "x", Expect::Any, session)).result;
    assert_eq!(late, Err(MetadataError::SessionExpired));
    assert_eq!(
        store.apply(&Command::KeepAlive { session: SessionId(1) }).result,
        Err(MetadataError::SessionExpired)
    );
}

#[test]
fn a_snapshot_is_the_state() {
    let mut store = Store::new();
    store.apply(&Command::OpenSession { time_to_live_ms: 100 });
    store.apply(&put("/a", "1", Expect::Any, Some(SessionId(1))));
    store.apply(&put("/b", "", Expect::Any, None));
    store.apply(&Command::NextNumber { key: "/n".to_owned() });
    store.apply(&Command::AdvanceTime { to_ms: 7 });
    let copy = Store::from_snapshot(store.to_snapshot()).unwrap();
    assert_eq!(copy, store);
    let mut bytes = store.to_snapshot().to_vec();
    bytes.truncate(bytes.len() - 1);
    assert!(Store::from_snapshot(Bytes::from(bytes)).is_err());
}

#[test]
fn lists_by_prefix_in_order() {
    let mut store = Store::new();
    for key in ["/a", "/b/1", "/b/2", "/b/3", "/c"] {
        store.apply(&put(key, "x", Expect::Any, None)).result.unwrap();
    }
    let keys = |after: Option<&str>, limit| -> Vec<String> {
        store.list("/b/", after, limit).into_iter().map(|(key, _)| key).collect()
    };
    assert_eq!(keys(None, 10), ["/b/1", "/b/2", "/b/3"]);
    assert_eq!(keys(Some("/b/1"), 1), ["/b/2"]);
    assert_eq!(keys(Some("/a"), 1), ["/b/1"]);
    assert!(keys(Some("/c"), 10).is_empty());
}

#[test]
fn limits_are_refusals() {
    let mut store = Store::new();
    let long = format!("/{}", "k".repeat(super::KEY_BYTES_MAX));
    for key in ["", "/", "a", "/a\n", long.as_str()] {
        let result = store.apply(&put(key, "x", Expect::Any, None)).result;
        assert!(matches!(result, Err(MetadataError::Refused(_))), "{key:?}: {result:?}");
    }
    let value = Bytes::from(vec![0; super::VALUE_BYTES_MAX + 1]);
    let big = Command::Put { key: "/a".to_owned(), value, expect: Expect::Any, session: None };
    assert!(matches!(store.apply(&big).result, Err(MetadataError::Refused(_))));
    let endless = Command::OpenSession { time_to_live_ms: u64::MAX };
    assert!(matches!(store.apply(&endless).result, Err(MetadataError::Refused(_))));
    assert_eq!(store.revision(), Revision(0));
    assert_eq!(store.applied(), 7);
}

#[tokio::test]
async fn a_watch_begins_with_the_state_and_misses_nothing() {
    let mut store = Store::new();
    let mut watches = Watches::new();
    store.apply(&put("/b/1", "x", Expect::Any, None)).result.unwrap();
    let mut watch = watches.open("/b/", &store).unwrap();
    let events = store.apply(&put("/b/2", "y", Expect::Any, None)).events;
    watches.dispatch(&events);
    let other = store.apply(&put("/c", "z", Expect::Any, None)).events;
    watches.dispatch(&other);
    assert_eq!(watch.next().await.unwrap().len(), 1);
    assert!(watch.next().await.unwrap().is_empty());
    assert_eq!(watch.next().await.unwrap(), events);
    watches.end();
    assert!(watch.next().await.is_none());
}

#[tokio::test]
async fn a_slow_watcher_is_ended_not_shortened() {
    let mut store = Store::new();
    let mut watches = Watches::new();
    let mut watch = watches.open("/", &store).unwrap();
    for _ in 0..=super::WATCH_PENDING_EVENTS_MAX {
        watches.dispatch(&store.apply(&put("/a", "x", Expect::Any, None)).events);
    }
    assert!(watch.next().await.unwrap().is_empty());
    assert!(watch.next().await.is_none());
    assert!(watches.is_empty());
}

/// What came with another member's snapshot was never among the newest changes here.
#[test]
fn a_watch_is_not_resumed_over_a_snapshot() {
    let mut store = Store::new();
    let mut watches = Watches::new();
    watches.dispatch(&store.apply(&put("/a", "1", Expect::Any, None)).events);
    let seen = store.revision();
    assert!(watches.resume("/", seen, &store).unwrap().is_some());
    store.apply(&put("/a", "2", Expect::Any, None)).result.unwrap();
    watches.begin_anew(store.revision());
    watches.dispatch(&store.apply(&put("/b", "3", Expect::Any, None)).events);
    assert!(watches.resume("/", seen, &store).unwrap().is_none());
}

/// Members that apply the same have the same state and tell their watchers the same, in the same order.
#[test]
fn the_same_commands_do_the_same_everywhere() {
    const SESSIONS: u64 = 20;
    let open = (0..SESSIONS).map(|_| Command::OpenSession { time_to_live_ms: 100 });
    let tie = |session| {
        let (key, value) = (format!("/s/{session}"), Bytes::from_static(b"x"));
        Command::Put { key, value, expect: Expect::Absent, session: Some(SessionId(session)) }
    };
    let end = [Command::AdvanceTime { to_ms: 100 }];
    let commands: Vec<Command> = open.chain((1..=SESSIONS).map(tie)).chain(end).collect();
    let applied = || {
        let mut store = Store::new();
        let applied: Vec<_> = commands.iter().map(|command| store.apply(command)).collect();
        (applied, store.to_snapshot())
    };
    let first = applied();
    assert_eq!(first.0.last().unwrap().events.len() as u64, SESSIONS);
    assert_eq!(first, applied());
}

/// At the bound that client is forgotten that has asked for nothing for the longest.
#[test]
fn a_client_that_goes_on_asking_is_not_forgotten() {
    let mut store = Store::new();
    assert_eq!(store.apply(&Command::OpenClient).result, Ok(Done::Opened(SessionId(1))));
    for sequence in 1..=2 * CLIENTS_MAX as u64 {
        store.apply(&Command::OpenClient).result.unwrap();
        let id = RequestId { client: 1, sequence, answered_below: sequence };
        let command = Box::new(put("/a", "x", Expect::Any, None));
        store.apply(&Command::Once { id, command }).result.unwrap();
    }
    let id = RequestId { client: 2, sequence: 1, answered_below: 1 };
    let command = Box::new(put("/a", "x", Expect::Any, None));
    let idle = store.apply(&Command::Once { id, command }).result;
    assert_eq!(idle, Err(MetadataError::ClientForgotten));
}
