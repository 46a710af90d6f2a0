//! The contract's nouns as wire messages of `proto/seawall/metadata.proto`, and back.

use super::{Expect, MetadataError, Revision, Versioned, WatchEvent};
use crate::rpc::generated::metadata as wire;

pub(super) fn expect_to_wire(expect: Expect) -> Option<wire::Expect> {
    use wire::expect::Condition;
    let condition = match expect {
        Expect::Any => return None,
        Expect::Absent => Condition::Absent(true),
        Expect::Version(version) => Condition::Version(version.0),
    };
    Some(wire::Expect { condition: Some(condition) })
}

/// An `Expect` message without a condition is one this version does not know: never "no condition".
pub(super) fn expect_from_wire(expect: Option<wire::Expect>) -> Result<Expect, MetadataError> {
    use wire::expect::Condition;
    match expect.map(|expect| expect.condition) {
        None => Ok(Expect::Any),
        Some(Some(Condition::Absent(_))) => Ok(Expect::Absent),
        Some(Some(Condition::Version(version))) => Ok(Expect::Version(Revision(version))),
        Some(None) => Err(MetadataError::Refused("a condition of an unknown kind".to_owned())),
    }
}

pub(super) fn pair_to_wire(key: String, value: Versioned) -> wire::Pair {
    wire::Pair { key, value: value.value, version: value.version.0 }
}

pub(super) fn pair_from_wire(pair: wire::Pair) -> (String, Versioned) {
    (pair.key, Versioned { value: pair.value, version: Revision(pair.version) })
}

pub(super) fn event_to_wire(event: WatchEvent) -> wire::WatchEvent {
    use wire::watch_event::Kind;
    let kind = match event {
        WatchEvent::Put { key, value } => Kind::Put(pair_to_wire(key, value)),
        WatchEvent::Deleted { key, revision } => {
            Kind::Deleted(wire::Pair { key, value: bytes::Bytes::new(), version: revision.0 })
        }
    };
    wire::WatchEvent { kind: Some(kind) }
}

/// `None` for an event of a kind this version does not know: the watch must end there.
pub(super) fn event_from_wire(event: wire::WatchEvent) -> Option<WatchEvent> {
    use wire::watch_event::Kind;
    Some(match event.kind? {
        Kind::Put(pair) => {
            let (key, value) = pair_from_wire(pair);
            WatchEvent::Put { key, value }
        }
        Kind::Deleted(pair) => {
            WatchEvent::Deleted { key: pair.key, revision: Revision(pair.version) }
        }
    })
}

pub(super) fn error_to_wire(error: MetadataError) -> wire::Failure {
    use wire::failure::Kind;
    let kind = match error {
        MetadataError::VersionMismatch { key, expected, found } => {
            Kind::VersionMismatch(wire::VersionMismatch {
                key,
                expected: expect_to_wire(expected),
                found: found.map(|version| version.0),
            })
        }
        MetadataError::SessionExpired => Kind::SessionExpired(true),
        MetadataError::Refused(reason) => Kind::Refused(reason),
        MetadataError::Unavailable(reason) => Kind::Unavailable(reason),
        MetadataError::OutcomeUnknown(reason) => Kind::OutcomeUnknown(reason),
        MetadataError::ClientForgotten => Kind::ClientForgotten(true),
        MetadataError::NotLeader { leader } => Kind::NotLeader(leader.unwrap_or_default()),
    };
    wire::Failure { kind: Some(kind) }
}

/// A failure of a kind this version does not know leaves the outcome unknown.
pub(super) fn check_failure(failure: Option<wire::Failure>) -> Result<(), MetadataError> {
    use wire::failure::Kind;
    let Some(failure) = failure else { return Ok(()) };
    Err(match failure.kind {
        Some(Kind::VersionMismatch(mismatch)) => MetadataError::VersionMismatch {
            key: mismatch.key,
            expected: expect_from_wire(mismatch.expected).unwrap_or(Expect::Any),
            found: mismatch.found.map(Revision),
        },
        Some(Kind::SessionExpired(_)) => MetadataError::SessionExpired,
        Some(Kind::Refused(reason)) => MetadataError::Refused(reason),
        Some(Kind::Unavailable(reason)) => MetadataError::Unavailable(reason),
        Some(Kind::OutcomeUnknown(reason)) => MetadataError::OutcomeUnknown(reason),
        Some(Kind::ClientForgotten(_)) => MetadataError::ClientForgotten,
        Some(Kind::NotLeader(leader)) => {
            MetadataError::NotLeader { leader: (!leader.is_empty()).then_some(leader) }
        }
        None => MetadataError::OutcomeUnknown("a failure of an unknown kind".to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_failure_survives_the_wire() {
        for error in [
            MetadataError::VersionMismatch {
                key: "/a".to_owned(),
                expected: Expect::Version(Revision(3)),
                found: None,
            },
            MetadataError::SessionExpired,
            MetadataError::Refused("r".to_owned()),
            MetadataError::Unavailable("u".to_owned()),
            MetadataError::OutcomeUnknown("o".to_owned()),
            MetadataError::NotLeader { leader: Some("a:1".to_owned()) },
            MetadataError::NotLeader { leader: None },
            MetadataError::ClientForgotten,
        ] {
            assert_eq!(check_failure(Some(error_to_wire(error.clone()))), Err(error));
        }
        for expect in [Expect::Any, Expect::Absent, Expect::Version(Revision(9))] {
            assert_eq!(expect_from_wire(expect_to_wire(expect)), Ok(expect));
        }
        assert!(expect_from_wire(Some(wire::Expect { condition: None })).is_err());
    }
}
