//! `seawall standalone`: a whole node in one process.

use std::path::PathBuf;

use clap::Args;

use super::USAGE;
use super::output::complain;
use super::running_node::run_node;
use super::settings::{Problem, Problems, Settings, Source};

/// Run a whole node in one process: metadata, storage and broker. Every message is on synced storage before
/// it is acknowledged.
///
/// Prints the addresses it listens on and the word `ready`; stops cleanly on SIGINT and SIGTERM.
///
/// Examples:
///   seawall standalone
///   seawall standalone --data /var/lib/seawall --listen 127.0.0.1
///   SEAWALL_BROKER_CLUSTER=test seawall standalone --config seawall.toml --pulsar-port 0
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(super) struct StandaloneCommand {
    /// TOML file with settings; flags and SEAWALL_… variables override it.
    #[arg(long)]
    config: Option<PathBuf>,
    /// Folder of everything stored; one process at a time.
    #[arg(long)]
    data: Option<PathBuf>,
    /// Host to listen on.
    #[arg(long)]
    listen: Option<String>,
    /// Port for Pulsar clients; 0 asks for any.
    #[arg(long)]
    pulsar_port: Option<u16>,
    /// Port for HTTP; 0 asks for any.
    #[arg(long)]
    http_port: Option<u16>,
    /// Port for gRPC clients; 0 asks for any.
    #[arg(long)]
    grpc_port: Option<u16>,
    /// host:port told to Pulsar clients, if not the address by which they are connected.
    #[arg(long)]
    advertised: Option<String>,
}

impl StandaloneCommand {
    /// File, environment, then these flags.
    fn settings(&self) -> Result<Settings, Problems> {
        let mut source = Source::read(self.config.as_deref());
        source
            .flag(
                "--data",
                "data",
                self.data.as_ref().map(|data| data.to_string_lossy().into_owned()),
            )
            .flag("--listen", "pulsar.host", self.listen.clone())
            .flag("--listen", "http.host", self.listen.clone())
            .flag("--listen", "grpc.host", self.listen.clone())
            .flag("--pulsar-port", "pulsar.port", self.pulsar_port.map(i64::from))
            .flag("--http-port", "http.port", self.http_port.map(i64::from))
            .flag("--grpc-port", "grpc.port", self.grpc_port.map(i64::from))
            .flag("--advertised", "pulsar.advertised", self.advertised.clone());
        let effective = source.finish()?;
        if effective.settings.is_standalone() {
            return Ok(effective.settings);
        }
        Err(Problems(vec![Problem::BadValue {
            origin: effective.origin("roles"),
            key: "roles".to_owned(),
            value: "named".to_owned(),
            reason: "a standalone node has all roles".to_owned(),
            allowed: "none here; `seawall server` runs a node with roles".to_owned(),
        }]))
    }
}

/// Runs until told to stop.
pub(super) fn standalone(command: &StandaloneCommand) -> u8 {
    match command.settings() {
        Ok(settings) => run_node(settings),
        Err(problems) => {
            complain(&problems);
            USAGE
        }
    }
}
