//! The way to one other member: a bounded queue and a long stream, opened anew when it breaks.

use std::collections::VecDeque;

use tokio::sync::mpsc;

use super::driver::Request;
use crate::metadata::consensus::MemberId;
use crate::reached;
use crate::rpc::generated::consensus::Envelope;
use crate::rpc::generated::consensus::consensus_client::ConsensusClient;
use crate::rpc::{Channel, ChannelConfig, MESSAGE_BYTES_MAX, ReceiverStream};
use crate::runtime::{Mailbox, MailboxSender, Runtime, mailbox};

/// Messages handed to the connection and not yet taken by it.
const OUTGOING_MESSAGES: usize = 4;

/// Sends to one member. The task behind it ends when this is dropped.
pub(super) struct Peer {
    address: String,
    queue: MailboxSender<Envelope>,
}

impl Peer {
    /// Begins to carry messages to `member`.
    pub(super) fn new(
        runtime: &Runtime,
        member: MemberId,
        address: &str,
        queue_length: usize,
        channel: ChannelConfig,
        driver: MailboxSender<Request>,
    ) -> Self {
        let (queue, inbox) = mailbox(queue_length);
        let channel = Channel::new(runtime.clone(), address, channel);
        let carrier = Carrier { member, channel, inbox, driver };
        runtime.tasks.spawn("metadata peer", carrier.run());
        Self { address: address.to_owned(), queue }
    }

    /// Where it leads.
    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// Queues a message; drops it if the queue is full, as if it was lost on the way.
    pub(super) fn send(&self, envelope: Envelope) {
        if self.queue.try_send(envelope).is_err() {
            reached!("metadata: a message to a member was dropped");
        }
    }
}

struct Carrier {
    member: MemberId,
    channel: Channel,
    inbox: Mailbox<Envelope>,
    driver: MailboxSender<Request>,
}

impl Carrier {
    async fn run(mut self) {
        while let Some(first) = self.inbox.take_all().await {
            if let Err(reason) = self.channel.ready().await {
                tracing::debug!(member = self.member.0, %reason, "a metadata member is away");
                // What was queued meanwhile is old by now.
                self.inbox.take_ready();
            } else if self.carry(first).await {
                return;
            }
            let _ = self.driver.try_send(Request::Unreachable { member: self.member });
        }
    }

    /// Carries messages until the stream breaks; true if nobody sends any more.
    async fn carry(&mut self, mut waiting: VecDeque<Envelope>) -> bool {
        let (outgoing, envelopes) = mpsc::channel(OUTGOING_MESSAGES);
        let mut client =
            ConsensusClient::new(self.channel.clone()).max_decoding_message_size(MESSAGE_BYTES_MAX);
        let delivery = client.deliver(ReceiverStream::new(envelopes));
        tokio::pin!(delivery);
        loop {
            tokio::select! {
                biased;
                _ended = &mut delivery => {
                    reached!("metadata: the stream to a member broke");
                    return false;
                }
                permit = outgoing.reserve(), if !waiting.is_empty() => match permit {
                    Ok(permit) => {
                        if let Some(envelope) = waiting.pop_front() {
                            permit.send(envelope);
                        }
                    }
                    Err(_) => return false,
                },
                more = self.inbox.take_all(), if waiting.is_empty() => match more {
                    Some(more) => waiting = more,
                    None => return true,
                },
            }
        }
    }
}
