//! What can be asked of the store, and what it answers when it was done.

use bytes::Bytes;

use super::limits::{check_key, check_time_to_live, check_value};
use crate::metadata::{Expect, MetadataError, Revision, SessionId};

/// Names a change of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestId {
    /// From `OpenClient`.
    pub client: u64,
    /// Rises with each change of the client.
    pub sequence: u64,
    /// The client has the answers of all changes before this one, or waits for them no longer.
    pub answered_below: u64,
}

/// One change asked for; a line of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Sets a key.
    Put {
        /// The key.
        key: String,
        /// Its new value.
        value: Bytes,
        /// The condition.
        expect: Expect,
        /// The key vanishes with this session.
        session: Option<SessionId>,
    },
    /// Removes a key; a key that is not there counts as removed.
    Delete {
        /// The key.
        key: String,
        /// The condition.
        expect: Expect,
    },
    /// Adds one to a counter. Counters have a name space of their own.
    NextNumber {
        /// The counter.
        key: String,
    },
    /// Opens a session.
    OpenSession {
        /// It ends when not kept alive for this long, in milliseconds of logical time.
        time_to_live_ms: u64,
    },
    /// Keeps a session alive.
    KeepAlive {
        /// The session.
        session: SessionId,
    },
    /// Ends a session; one that has ended already counts as ended.
    CloseSession {
        /// The session.
        session: SessionId,
    },
    /// Gives a client a number for changes that may be asked for again.
    OpenClient,
    /// A change that is made the first time it is asked for and answered as it was then every other time.
    Once {
        /// Which change.
        id: RequestId,
        /// `Put`, `Delete`, `NextNumber` or `OpenSession`.
        command: Box<Command>,
    },
    /// Moves logical time forward and ends the sessions whose time is over. A time in the past does
    /// nothing.
    AdvanceTime {
        /// Milliseconds.
        to_ms: u64,
    },
}

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    /// The key has this version now.
    Written(Revision),
    /// The number drawn.
    Number(u64),
    /// The session opened.
    Opened(SessionId),
    /// Done, with nothing to tell.
    Nothing,
}

impl Command {
    /// True if what it does counts from logical time.
    pub fn counts_time(&self) -> bool {
        match self {
            Self::OpenSession { .. } | Self::KeepAlive { .. } => true,
            Self::Once { command, .. } => command.counts_time(),
            _ => false,
        }
    }

    /// Checks the limits that need no state, so that a request breaking them never reaches the log.
    pub fn check(&self) -> Result<(), MetadataError> {
        match self {
            Self::Put { key, value, .. } => {
                check_key(key)?;
                check_value(value)
            }
            Self::Delete { key, .. } | Self::NextNumber { key } => check_key(key),
            Self::OpenSession { time_to_live_ms } => check_time_to_live(*time_to_live_ms),
            Self::Once { command, .. } => match **command {
                Self::Put { .. }
                | Self::Delete { .. }
                | Self::NextNumber { .. }
                | Self::OpenSession { .. } => command.check(),
                _ => Err(MetadataError::Refused("not a change that is made once".to_owned())),
            },
            Self::KeepAlive { .. }
            | Self::CloseSession { .. }
            | Self::AdvanceTime { .. }
            | Self::OpenClient => Ok(()),
        }
    }

    /// Bytes it takes in a queue or in the log, roughly.
    pub fn cost(&self) -> usize {
        64 + match self {
            Self::Put { key, value, .. } => key.len() + value.len(),
            Self::Delete { key, .. } | Self::NextNumber { key } => key.len(),
            Self::Once { command, .. } => command.cost(),
            _ => 0,
        }
    }
}
