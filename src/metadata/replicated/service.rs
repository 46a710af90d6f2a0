//! The consensus service: messages of other members enter the driver's queue, in order, waiting for room;
//! greetings are answered beside it.

use tonic::{Request as Call, Response, Status, Streaming};

use super::codec::message_from_wire;
use super::driver::Request;
use super::introduction::Introduction;
use crate::metadata::consensus::MemberId;
use crate::rpc::MESSAGE_BYTES_MAX;
use crate::rpc::generated::consensus::consensus_server::{Consensus, ConsensusServer};
use crate::rpc::generated::consensus::{Delivered, Envelope, Greeted, Greeting};
use crate::runtime::MailboxSender;

/// Takes messages meant for one member.
pub struct ConsensusService {
    id: MemberId,
    driver: MailboxSender<Request>,
    introduction: Introduction,
}

/// Longest address of a sender, bytes.
const ADDRESS_BYTES_MAX: usize = 255;

/// The generated service around [`ConsensusService`].
pub type MemberServer = ConsensusServer<ConsensusService>;

impl ConsensusService {
    pub(super) fn server(
        id: MemberId,
        driver: MailboxSender<Request>,
        introduction: Introduction,
    ) -> MemberServer {
        ConsensusServer::new(Self { id, driver, introduction })
            .max_decoding_message_size(MESSAGE_BYTES_MAX)
    }
}

#[tonic::async_trait]
impl Consensus for ConsensusService {
    async fn deliver(
        &self,
        call: Call<Streaming<Envelope>>,
    ) -> Result<Response<Delivered>, Status> {
        let mut envelopes = call.into_inner();
        while let Some(envelope) = envelopes.message().await? {
            if envelope.to != self.id.0 {
                return Err(Status::failed_precondition(format!(
                    "a message for member {}, this is {}",
                    envelope.to, self.id
                )));
            }
            let from = MemberId(envelope.from);
            let address = envelope.from_address.clone();
            if address.len() > ADDRESS_BYTES_MAX {
                return Err(Status::invalid_argument("the sender's address is too long"));
            }
            let message = message_from_wire(envelope)
                .map_err(|unknown| Status::invalid_argument(unknown.to_string()))?;
            if self.driver.send(Request::Message { from, address, message }).await.is_err() {
                return Err(Status::unavailable("this member has stopped"));
            }
        }
        Ok(Response::new(Delivered {}))
    }

    async fn greet(&self, call: Call<Greeting>) -> Result<Response<Greeted>, Status> {
        let Greeting { from, to, incarnation } = call.into_inner();
        if from == self.id.0 {
            return Err(Status::already_exists("a member greets itself"));
        }
        if to != 0 && to != self.id.0 {
            let reason = format!("a greeting for member {to}, this is {}", self.id);
            return Err(Status::failed_precondition(reason));
        }
        let known = self.introduction.get_to_know(MemberId(from), incarnation).await;
        known.map(|other| Response::new(Greeted { other })).map_err(Status::unavailable)
    }
}
