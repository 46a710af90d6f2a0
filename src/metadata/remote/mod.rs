//! The store as seen from another node. Calls are made again, to the same or another address, until their time is
//! over: reads because nothing comes of them, changes under a name by which the store knows them again, so that
//! one whose answer was lost is told its true outcome. Only if that cannot be learned in time it is unknown. A
//! node that does not lead names the one that does, which is asked next.

mod answers;
mod calls;
mod change_numbers;
mod membership;
mod watch;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tonic::{Code, Status};

use answers::{Answer, is_forgotten, is_unknown};
use change_numbers::ChangeNumbers;

pub use membership::{GroupMember, MembershipAdmin, MetadataGroup};

use super::MetadataError;
use super::wire::check_failure;
use crate::domain::Instant;
use crate::reached;
use crate::rpc::generated::metadata as wire;
use crate::rpc::generated::metadata::metadata_client::MetadataClient as Generated;
use crate::rpc::{Channel, ChannelConfig, MESSAGE_BYTES_MAX};
use crate::runtime::Runtime;

/// Most nodes learned of from answers that name a leader, beside those told at first.
const LEARNED_MAX: usize = 16;
/// Longest address learned, bytes.
const ADDRESS_BYTES_MAX: usize = 255;

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
    /// Those told at first, and after them leaders that others named.
    channels: Mutex<Vec<Channel>>,
    channels_max: usize,
    preferred: AtomicUsize,
    numbers: Mutex<Option<ChangeNumbers>>,
}

type Client = Generated<Channel>;

fn client(channel: Channel) -> Client {
    Generated::new(channel).max_decoding_message_size(MESSAGE_BYTES_MAX)
}

type Attempt<T> = BoxFuture<'static, Result<T, Status>>;

impl RemoteMetadata {
    /// A client of the nodes at these addresses (`host:port`). Without addresses every call is
    /// `Unavailable`.
    pub fn new(runtime: Runtime, addresses: &[String], config: RemoteMetadataConfig) -> Self {
        let channels: Vec<Channel> = addresses
            .iter()
            .map(|address| Channel::new(runtime.clone(), address, config.channel.clone()))
            .collect();
        let channels_max = channels.len() + LEARNED_MAX;
        let channels = Mutex::new(channels);
        let preferred = AtomicUsize::new(0);
        let numbers = Mutex::new(None);
        Self(Arc::new(Inner { runtime, config, channels, channels_max, preferred, numbers }))
    }

    /// A call that changes nothing, or the same however often it is made.
    async fn read<T: Answer>(
        &self,
        call: impl Fn(Client) -> Attempt<T>,
    ) -> Result<T, MetadataError> {
        self.ask_again(|channel| call(client(channel))).await
    }

    async fn ask_again<T: Answer>(
        &self,
        call: impl Fn(Channel) -> Attempt<T>,
    ) -> Result<T, MetadataError> {
        let give_up = self.0.give_up_at();
        self.ask_until(give_up, &call).await
    }

    async fn ask_until<T: Answer>(
        &self,
        give_up: Instant,
        call: &impl Fn(Channel) -> Attempt<T>,
    ) -> Result<T, MetadataError> {
        loop {
            let error = match self.attempt(call).await {
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

    /// A call that changes something, under a name of its own, so that it can be asked for again when its answer
    /// was lost and the true outcome is told. Unknown only if that cannot be learned in time.
    async fn change(
        &self,
        call: impl Fn(Client, wire::RequestId) -> Attempt<wire::ChangeAnswer>,
    ) -> Result<wire::ChangeAnswer, MetadataError> {
        let give_up = self.0.give_up_at();
        let mut asked_before = false;
        let mut numbers = self.numbers(give_up).await?;
        let mut name = numbers.begin().await;
        loop {
            let detail = match self.attempt(&|channel| call(client(channel), name.id())).await {
                Ok(answer) if is_forgotten(&answer) => {
                    numbers.forget(&self.0.numbers);
                    if asked_before {
                        let reason = "the store has forgotten this client meanwhile";
                        return Err(MetadataError::OutcomeUnknown(reason.to_owned()));
                    }
                    numbers = self.numbers(give_up).await?;
                    name = numbers.begin().await;
                    continue;
                }
                Ok(answer) if is_unknown(&answer) => {
                    asked_before = true;
                    "the member asked did not learn what came of it".to_owned()
                }
                Ok(answer) => return Ok(answer),
                Err(Failed::NotSent(detail) | Failed::NotLeader(detail)) => detail,
                Err(Failed::Sent(status)) => {
                    reached!("metadata: the answer to a change was lost");
                    asked_before = true;
                    status.to_string()
                }
            };
            match self.pause(give_up, detail).await {
                Err(MetadataError::Unavailable(reason)) if asked_before => {
                    return Err(MetadataError::OutcomeUnknown(reason));
                }
                paused => paused?,
            }
        }
    }

    /// The numbers of this client's changes. The store gives it one for itself first; to get two does no harm.
    async fn numbers(&self, give_up: Instant) -> Result<ChangeNumbers, MetadataError> {
        if let Some(numbers) = ChangeNumbers::current(&self.0.numbers) {
            return Ok(numbers);
        }
        let call = |channel| -> Attempt<wire::ChangeAnswer> {
            let mut client = client(channel);
            let request = wire::OpenClientRequest {};
            Box::pin(async move { Ok(client.open_client(request).await?.into_inner()) })
        };
        loop {
            let detail = match self.ask_until(give_up, &call).await? {
                answer if is_unknown(&answer) => "the leader changed".to_owned(),
                answer => {
                    check_failure(answer.failure)?;
                    return Ok(ChangeNumbers::begin_with(&self.0.numbers, answer.number));
                }
            };
            self.pause(give_up, detail).await?;
        }
    }

    async fn attempt<T: Answer>(&self, call: &impl Fn(Channel) -> Attempt<T>) -> Result<T, Failed> {
        let inner = &self.0;
        let position = inner.preferred.load(Ordering::Relaxed);
        let Some(channel) = inner.channel_at(position) else {
            return Err(Failed::NotSent("no metadata node is configured".to_owned()));
        };
        let result = match channel.ready().await {
            Ok(()) => {
                let answer = call(channel.clone());
                channel.bounded(inner.config.call_timeout, answer).await.map_err(Failed::Sent)
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
    fn channels(&self) -> MutexGuard<'_, Vec<Channel>> {
        self.channels.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn channel_at(&self, position: usize) -> Option<Channel> {
        let channels = self.channels();
        channels.get(position % channels.len().max(1)).cloned()
    }

    /// The node to ask after one that does not lead: the one it named, which may have joined since this
    /// client was made, or the next.
    fn position_of(&self, hint: &str, position: usize) -> usize {
        let mut channels = self.channels();
        if let Some(named) = channels.iter().position(|channel| channel.address() == hint) {
            return named;
        }
        let is_address = hint.contains(':') && hint.len() <= ADDRESS_BYTES_MAX;
        if !is_address || channels.len() >= self.channels_max {
            return position.wrapping_add(1);
        }
        reached!("metadata: a leader that nobody told of was learned");
        channels.push(Channel::new(self.runtime.clone(), hint, self.config.channel.clone()));
        channels.len() - 1
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
