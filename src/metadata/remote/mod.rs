//! The store as seen from another node. Reads are asked again, of the same or another address, until
//! their time is over. A change is sent again only while it is certain that it was not made: it never left
//! this node, or the node asked does not lead and said so. Once it was sent and no answer came, its outcome
//! is unknown. A node that does not lead names the one that does, which is asked next.

mod answers;
mod calls;
mod watch;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tonic::{Code, Status};

use answers::Answer;

use super::MetadataError;
use crate::domain::Instant;
use crate::reached;
use crate::rpc::generated::metadata::metadata_client::MetadataClient as Generated;
use crate::rpc::{Channel, ChannelConfig, MESSAGE_BYTES_MAX};
use crate::runtime::Runtime;

/// Times of a remote store.
#[derive(Clone, Debug)]
pub struct RemoteMetadataConfig {
    /// One attempt ends after this.
    pub call_timeout: Duration,
    /// After this much trying in vain a call is given up.
    pub give_up: Duration,
    /// Between two attempts.
    pub pause: Duration,
    /// The connections.
    pub channel: ChannelConfig,
}

impl Default for RemoteMetadataConfig {
    fn default() -> Self {
        Self {
            call_timeout: Duration::from_secs(5),
            give_up: Duration::from_secs(10),
            pause: Duration::from_millis(100),
            channel: ChannelConfig::default(),
        }
    }
}

/// A client of metadata nodes. Cheap to clone.
#[derive(Clone)]
pub struct RemoteMetadata(Arc<Inner>);

struct Inner {
    runtime: Runtime,
    config: RemoteMetadataConfig,
    channels: Vec<Channel>,
    preferred: AtomicUsize,
}

type Client = Generated<Channel>;
type Attempt<T> = BoxFuture<'static, Result<T, Status>>;

impl RemoteMetadata {
    /// A client of the nodes at these addresses (`host:port`). Without addresses every call is
    /// `Unavailable`.
    pub fn new(runtime: Runtime, addresses: &[String], config: RemoteMetadataConfig) -> Self {
        let channels = addresses
            .iter()
            .map(|address| Channel::new(runtime.clone(), address, config.channel.clone()))
            .collect();
        Self(Arc::new(Inner { runtime, config, channels, preferred: AtomicUsize::new(0) }))
    }

    /// A call that changes nothing, or the same however often it is made.
    async fn read<T: Answer>(
        &self,
        call: impl Fn(Client) -> Attempt<T>,
    ) -> Result<T, MetadataError> {
        let give_up = self.0.give_up_at();
        loop {
            let error = match self.attempt(&call).await {
                Ok(answer) => return Ok(answer),
                Err(Failed::NotSent(detail) | Failed::NotLeader(detail)) => detail,
                Err(Failed::Sent(status)) if is_final(status.code()) => {
                    return Err(MetadataError::Refused(status.message().to_owned()));
                }
                Err(Failed::Sent(status)) => {
                    reached!("metadata: a read was asked again");
                    status.to_string()
                }
            };
            self.pause(give_up, error).await?;
        }
    }

    /// A call that changes something.
    async fn change<T: Answer>(
        &self,
        call: impl Fn(Client) -> Attempt<T>,
    ) -> Result<T, MetadataError> {
        let give_up = self.0.give_up_at();
        loop {
            match self.attempt(&call).await {
                Ok(answer) => return Ok(answer),
                Err(Failed::NotSent(detail) | Failed::NotLeader(detail)) => {
                    self.pause(give_up, detail).await?;
                }
                Err(Failed::Sent(status)) => {
                    reached!("metadata: the answer to a change was lost");
                    return Err(MetadataError::OutcomeUnknown(status.to_string()));
                }
            }
        }
    }

    async fn attempt<T: Answer>(&self, call: &impl Fn(Client) -> Attempt<T>) -> Result<T, Failed> {
        let inner = &self.0;
        let position = inner.preferred.load(Ordering::Relaxed);
        let Some(channel) = inner.channels.get(position % inner.channels.len().max(1)) else {
            return Err(Failed::NotSent("no metadata node is configured".to_owned()));
        };
        let result = match channel.ready().await {
            Ok(()) => {
                let client =
                    Generated::new(channel.clone()).max_decoding_message_size(MESSAGE_BYTES_MAX);
                channel.bounded(inner.config.call_timeout, call(client)).await.map_err(Failed::Sent)
            }
            Err(error) => Err(Failed::NotSent(error.to_string())),
        };
        let next = match &result {
            Ok(answer) => match answer.not_leader() {
                Some(hint) => inner.position_of(hint, position),
                None => return result,
            },
            Err(_) => position.wrapping_add(1),
        };
        // Another task may have moved on already; then its choice stands.
        let order = Ordering::Relaxed;
        let _ = inner.preferred.compare_exchange(position, next, order, order);
        match result {
            Ok(answer) => {
                reached!("metadata: a member that does not lead was asked");
                let leader = answer.not_leader().unwrap_or_default();
                Err(Failed::NotLeader(format!(
                    "{} does not lead, {leader:?} may",
                    channel.address()
                )))
            }
            failed => failed,
        }
    }

    async fn pause(&self, give_up: Instant, reason: String) -> Result<(), MetadataError> {
        let clock = &self.0.runtime.clock;
        if clock.now() >= give_up {
            return Err(MetadataError::Unavailable(reason));
        }
        clock.sleep(self.0.config.pause).await;
        Ok(())
    }
}

impl Inner {
    /// The node to ask after one that does not lead: the one it named, or the next.
    fn position_of(&self, hint: &str, position: usize) -> usize {
        let named = self.channels.iter().position(|channel| channel.address() == hint);
        named.unwrap_or_else(|| position.wrapping_add(1))
    }

    fn give_up_at(&self) -> Instant {
        self.runtime.clock.now() + self.config.give_up
    }
}

enum Failed {
    NotSent(String),
    /// Asked one that does not lead: nothing was changed.
    NotLeader(String),
    Sent(Status),
}

/// Asking again would get the same answer.
fn is_final(code: Code) -> bool {
    matches!(code, Code::InvalidArgument | Code::Unimplemented | Code::OutOfRange)
}
