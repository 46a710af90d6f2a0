//! A producer or consumer that is being opened at a broker. Unless the broker has refused it, it is closed there
//! when it comes to nothing: nobody answered in time, or whoever wanted it does not wait any more.

use super::connection::Connection;
use super::error::ClientError;
use crate::frontend::pulsar::codec::{Command, proto};
use crate::{mutant, reached};

/// The request id of what nobody waits for.
const UNANSWERED: u64 = u64::MAX - 1;

/// What is being opened, by the id the client gave it.
#[derive(Clone, Copy)]
pub(super) enum Handle {
    Producer(u64),
    Consumer(u64),
}

impl Handle {
    /// Asks the broker to close it, without waiting for that.
    pub(super) fn close_unanswered(self, connection: &Connection) {
        let request_id = UNANSWERED;
        connection.push_command(&match self {
            Self::Producer(producer_id) => Command::CloseProducer(proto::CommandCloseProducer {
                producer_id,
                request_id,
                ..Default::default()
            }),
            Self::Consumer(consumer_id) => Command::CloseConsumer(proto::CommandCloseConsumer {
                consumer_id,
                request_id,
                ..Default::default()
            }),
        });
    }

    fn forget(self, connection: &Connection) {
        match self {
            Self::Producer(id) => connection.forget_producer(id),
            Self::Consumer(id) => connection.forget_consumer(id),
        }
    }
}

/// A handle whose events are routed here already and whose opening has no outcome yet.
pub(super) struct Opening<'a> {
    connection: &'a Connection,
    handle: Option<Handle>,
}

impl<'a> Opening<'a> {
    pub(super) const fn new(connection: &'a Connection, handle: Handle) -> Self {
        Self { connection, handle: Some(handle) }
    }

    /// What came of it. It is open, and whoever holds it closes it, if the answer is one that `is_open` takes; the broker
    /// knows of none if it has refused.
    pub(super) fn settle<T>(
        mut self,
        answer: Result<Command, ClientError>,
        is_open: impl FnOnce(Command) -> Result<T, ClientError>,
    ) -> Result<T, ClientError> {
        match answer {
            Ok(command) => {
                let found = is_open(command)?;
                self.handle = None;
                Ok(found)
            }
            Err(error) => {
                if matches!(error, ClientError::Refused { .. })
                    && let Some(handle) = self.handle.take()
                {
                    handle.forget(self.connection);
                }
                Err(error)
            }
        }
    }
}

impl Drop for Opening<'_> {
    fn drop(&mut self) {
        let Some(handle) = self.handle else { return };
        handle.forget(self.connection);
        if !mutant!("C-opening") {
            reached!("client: closed what may be opened yet");
            handle.close_unanswered(self.connection);
        }
    }
}
