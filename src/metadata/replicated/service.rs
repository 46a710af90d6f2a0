//! The consensus service: messages of other members enter the driver's queue, in order, waiting for room.

use tonic::{Request as Call, Response, Status, Streaming};

use super::codec::message_from_wire;
use super::driver::Request;
use crate::metadata::consensus::MemberId;
use crate::rpc::MESSAGE_BYTES_MAX;
use crate::rpc::generated::consensus::consensus_server::{Consensus, ConsensusServer};
use crate::rpc::generated::consensus::{Delivered, Envelope};
use crate::runtime::MailboxSender;

/// Takes messages meant for one member.
pub struct ConsensusService {
    id: MemberId,
    driver: MailboxSender<Request>,
}

/// The generated service around [`ConsensusService`].
pub type MemberServer = ConsensusServer<ConsensusService>;

impl ConsensusService {
    pub(super) fn server(id: MemberId, driver: MailboxSender<Request>) -> MemberServer {
        ConsensusServer::new(Self { id, driver }).max_decoding_message_size(MESSAGE_BYTES_MAX)
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
            let message = message_from_wire(envelope)
                .map_err(|unknown| Status::invalid_argument(unknown.to_string()))?;
            if self.driver.send(Request::Message { from, message }).await.is_err() {
                return Err(Status::unavailable("this member has stopped"));
            }
        }
        Ok(Response::new(Delivered {}))
    }
}
