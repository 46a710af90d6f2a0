//! The public gRPC services (`proto/seawall/v1`): ledgers and streams. Translates calls to the ledger client
//! and the broker, and their failures to statuses; decides nothing. What each call promises:
//! `docs/internals/grpc_api.md`.

mod call_limit;
mod config;
mod ledgers;
mod refusal;
mod sessions;
mod streams;

use std::io;

pub use config::GrpcConfig;

use crate::broker::Broker;
use crate::ledger::LedgerClient;
use crate::rpc::{Routes, serve};
use crate::runtime::{Runtime, Shutdown, Task};

use ledgers::LedgersService;
use sessions::Sessions;
use streams::StreamsService;

/// A running gRPC front end. Dropping it does not stop it.
pub struct GrpcFrontend {
    address: String,
    stop: Shutdown,
    serving: Task<()>,
}

impl GrpcFrontend {
    /// Listens and serves. Fails if the address cannot be bound.
    pub async fn start(
        runtime: Runtime,
        broker: Broker,
        ledgers: LedgerClient,
        config: GrpcConfig,
    ) -> io::Result<Self> {
        let listener = runtime.network.listen(&config.listen).await?;
        let address = listener.local_address();
        let sessions = Sessions::new(config.sessions_max);
        let room = sessions.clone();
        let routes = Routes::new()
            .with(LedgersService::server(runtime.clone(), ledgers, room, config.clone()))
            .with(StreamsService::server(runtime.clone(), broker, sessions, config.clone()));
        let stop = Shutdown::new();
        let serving = serve(runtime.clone(), listener, routes, config.server(), stop.signal());
        let serving = runtime.tasks.spawn("grpc listener", serving);
        Ok(Self { address, stop, serving })
    }

    /// The address bound, `host:port`.
    pub fn local_address(&self) -> &str {
        &self.address
    }

    /// Takes no more calls, gives those that run a moment, closes every connection.
    pub async fn stop(self) {
        self.stop.trigger();
        // Cancelled means stopped too.
        let _ = self.serving.await;
    }
}
