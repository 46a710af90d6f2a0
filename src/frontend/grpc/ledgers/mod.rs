//! The ledger API over the node's ledger client.

mod read;
mod write;

use tonic::{Code, Request, Response, Status, Streaming};

use super::GrpcConfig;
use super::refusal::Refusal;
use super::sessions::Sessions;
use crate::domain::LedgerId;
use crate::ledger::{LedgerClient, LedgerRecord, LedgerState};
use crate::rpc::generated::public::{self as wire, Reason, ledgers_server};
use crate::runtime::Runtime;

use futures_util::stream::BoxStream;

/// How the purpose of a ledger made by this API begins. Others are not for clients: recovering the ledger of a
/// topic would depose its broker.
const PURPOSE: &str = "api";
/// Longest purpose a client may give, bytes.
const PURPOSE_BYTES_MAX: usize = 256;

/// See the module.
pub(super) struct LedgersService {
    runtime: Runtime,
    ledgers: LedgerClient,
    sessions: Sessions,
    config: GrpcConfig,
}

/// The generated service around [`LedgersService`].
pub(super) type LedgersServer = ledgers_server::LedgersServer<LedgersService>;

fn is_of_api(record: &LedgerRecord) -> bool {
    record
        .purpose
        .strip_prefix(PURPOSE)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
}

fn facts(record: &LedgerRecord) -> wire::LedgerFacts {
    let (state, last_entry, length) = match record.state {
        LedgerState::Open => (wire::LedgerState::Open, -1, 0),
        LedgerState::InRecovery => (wire::LedgerState::InRecovery, -1, 0),
        LedgerState::Closed { last_entry, length } => {
            (wire::LedgerState::Closed, last_entry.0, length)
        }
    };
    wire::LedgerFacts { ledger: record.ledger.0, state: state.into(), last_entry, length }
}

impl LedgersService {
    pub(super) fn server(
        runtime: Runtime,
        ledgers: LedgerClient,
        sessions: Sessions,
        config: GrpcConfig,
    ) -> LedgersServer {
        let bytes_max = config.request_bytes_max();
        ledgers_server::LedgersServer::new(Self { runtime, ledgers, sessions, config })
            .max_decoding_message_size(bytes_max)
    }

    /// The record of a ledger that clients may name; `None` if there is none.
    async fn find(&self, ledger: u64) -> Result<Option<LedgerRecord>, Refusal> {
        let record = self.ledgers.record(LedgerId(ledger)).await?;
        match record {
            Some(record) if !is_of_api(&record) => {
                let message = format!("ledger {ledger} was not made by this API");
                Err(Refusal::new(Code::PermissionDenied, Reason::NotYours, message))
            }
            other => Ok(other),
        }
    }

    async fn record(&self, ledger: u64) -> Result<LedgerRecord, Refusal> {
        let missing = || Refusal::not_found(format!("ledger {ledger} does not exist"));
        self.find(ledger).await?.ok_or_else(missing)
    }

    async fn describe(&self, ledger: u64) -> Result<wire::LedgerFacts, Refusal> {
        let record = self.record(ledger).await?;
        let mut facts = facts(&record);
        if !matches!(record.state, LedgerState::Closed { .. }) {
            let reader = self.ledgers.open(record.ledger).await?;
            facts.last_entry = reader.last_add_confirmed().await?.0;
        }
        Ok(facts)
    }
}

#[tonic::async_trait]
impl ledgers_server::Ledgers for LedgersService {
    type WriteStream = BoxStream<'static, Result<wire::WriteAnswer, Status>>;
    type ReadLedgerStream = BoxStream<'static, Result<wire::ReadLedgerAnswer, Status>>;

    async fn write(
        &self,
        request: Request<Streaming<wire::WriteRequest>>,
    ) -> Result<Response<Self::WriteStream>, Status> {
        let permit = self.sessions.enter()?;
        Ok(Response::new(write::session(
            self.ledgers.clone(),
            self.config.clone(),
            request.into_inner(),
            permit,
        )))
    }

    async fn read_ledger(
        &self,
        request: Request<wire::ReadLedgerRequest>,
    ) -> Result<Response<Self::ReadLedgerStream>, Status> {
        let permit = self.sessions.enter()?;
        let request = request.into_inner();
        let record = self.record(request.ledger).await?;
        let reader = self.ledgers.open(record.ledger).await.map_err(Refusal::from)?;
        let session =
            read::ReadSession::new(self.ledgers.clone(), reader, &request, &self.config, permit)?;
        Ok(Response::new(session.answers()))
    }

    async fn describe_ledger(
        &self,
        request: Request<wire::DescribeLedgerRequest>,
    ) -> Result<Response<wire::LedgerFacts>, Status> {
        self.config.limited(&self.runtime.clock, self.describe(request.into_inner().ledger)).await
    }

    async fn recover(
        &self,
        request: Request<wire::RecoverRequest>,
    ) -> Result<Response<wire::LedgerFacts>, Status> {
        let recovering = async {
            let record = self.record(request.into_inner().ledger).await?;
            let closed = self.ledgers.recover(record.ledger).await?;
            Ok(wire::LedgerFacts {
                ledger: closed.ledger.0,
                state: wire::LedgerState::Closed.into(),
                last_entry: closed.last_entry.0,
                length: closed.length,
            })
        };
        self.config.limited(&self.runtime.clock, recovering).await
    }

    async fn delete_ledger(
        &self,
        request: Request<wire::DeleteLedgerRequest>,
    ) -> Result<Response<wire::DeleteLedgerAnswer>, Status> {
        let deleting = async {
            if let Some(record) = self.find(request.into_inner().ledger).await? {
                self.ledgers.delete(record.ledger).await?;
            }
            Ok(wire::DeleteLedgerAnswer {})
        };
        self.config.limited(&self.runtime.clock, deleting).await
    }
}
