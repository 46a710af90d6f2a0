//! Commands as bytes of the log (`proto/seawall/metadata_files.proto`).

use bytes::Bytes;
use prost::Message;

use super::{Command, RequestId};
use crate::metadata::{Expect, Revision, SessionId};
use crate::rpc::generated::metadata_files as wire;

/// Bytes that are not commands. A log that holds them must not be replayed past them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandDamage {
    /// Not the protobuf message expected.
    #[error("not a command group: {0}")]
    Malformed(String),
    /// A command without a kind, or of a kind this version does not know.
    #[error("a command of an unknown kind")]
    UnknownKind,
}

/// Bytes of a group of commands.
pub fn encode_group(commands: &[Command]) -> Bytes {
    let group = wire::CommandGroup { commands: commands.iter().map(to_wire).collect() };
    Bytes::from(group.encode_to_vec())
}

/// The commands of a group.
pub fn decode_group(bytes: Bytes) -> Result<Vec<Command>, CommandDamage> {
    let group = wire::CommandGroup::decode(bytes)
        .map_err(|error| CommandDamage::Malformed(error.to_string()))?;
    group.commands.into_iter().map(from_wire).collect()
}

fn expect_to_wire(expect: Expect) -> Option<wire::Expect> {
    use wire::expect::Condition;
    let condition = match expect {
        Expect::Any => return None,
        Expect::Absent => Condition::Absent(true),
        Expect::Version(version) => Condition::Version(version.0),
    };
    Some(wire::Expect { condition: Some(condition) })
}

fn expect_from_wire(expect: Option<wire::Expect>) -> Expect {
    use wire::expect::Condition;
    match expect.and_then(|expect| expect.condition) {
        None => Expect::Any,
        Some(Condition::Absent(_)) => Expect::Absent,
        Some(Condition::Version(version)) => Expect::Version(Revision(version)),
    }
}

fn to_wire(command: &Command) -> wire::Command {
    use wire::command::Kind;
    let kind = match command.clone() {
        Command::Put { key, value, expect, session } => Kind::Put(wire::Put {
            key,
            value,
            expect: expect_to_wire(expect),
            session: session.map_or(0, |session| session.0),
        }),
        Command::Delete { key, expect } => {
            Kind::Delete(wire::Delete { key, expect: expect_to_wire(expect) })
        }
        Command::NextNumber { key } => Kind::NextNumber(wire::NextNumber { key }),
        Command::OpenSession { time_to_live_ms } => {
            Kind::OpenSession(wire::OpenSession { time_to_live_ms })
        }
        Command::KeepAlive { session } => Kind::KeepAlive(wire::KeepAlive { session: session.0 }),
        Command::CloseSession { session } => {
            Kind::CloseSession(wire::CloseSession { session: session.0 })
        }
        Command::AdvanceTime { to_ms } => Kind::AdvanceTime(wire::AdvanceTime { to_ms }),
        Command::OpenClient => Kind::OpenClient(wire::OpenClient {}),
        Command::Once { id, command } => Kind::Once(Box::new(wire::Once {
            client: id.client,
            sequence: id.sequence,
            answered_below: id.answered_below,
            command: Some(Box::new(to_wire(&command))),
        })),
    };
    wire::Command { kind: Some(kind) }
}

fn from_wire(command: wire::Command) -> Result<Command, CommandDamage> {
    use wire::command::Kind;
    Ok(match command.kind.ok_or(CommandDamage::UnknownKind)? {
        Kind::Put(put) => Command::Put {
            key: put.key,
            value: put.value,
            expect: expect_from_wire(put.expect),
            session: (put.session != 0).then_some(SessionId(put.session)),
        },
        Kind::Delete(delete) => {
            Command::Delete { key: delete.key, expect: expect_from_wire(delete.expect) }
        }
        Kind::NextNumber(next) => Command::NextNumber { key: next.key },
        Kind::OpenSession(open) => Command::OpenSession { time_to_live_ms: open.time_to_live_ms },
        Kind::KeepAlive(keep) => Command::KeepAlive { session: SessionId(keep.session) },
        Kind::CloseSession(close) => Command::CloseSession { session: SessionId(close.session) },
        Kind::AdvanceTime(time) => Command::AdvanceTime { to_ms: time.to_ms },
        Kind::OpenClient(_) => Command::OpenClient,
        Kind::Once(once) => Command::Once {
            id: RequestId {
                client: once.client,
                sequence: once.sequence,
                answered_below: once.answered_below,
            },
            command: Box::new(from_wire(*once.command.ok_or(CommandDamage::UnknownKind)?)?),
        },
    })
}
