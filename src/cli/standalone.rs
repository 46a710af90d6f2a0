//! `seawall standalone`: a whole node in one process.

use std::path::PathBuf;

use clap::Args;

use super::output::{complain, say};
use super::running_node::RunningNode;
use super::settings::{self, Settings, SettingsError};
use super::{FAILED, GOOD, USAGE};
use crate::runtime::real::{self, ProcessSignals};

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
    fn settings(&self) -> Result<Settings, SettingsError> {
        let mut settings = settings::load(self.config.as_deref())?;
        if let Some(data) = &self.data {
            settings.data.clone_from(data);
        }
        if let Some(host) = &self.listen {
            settings.pulsar.host.clone_from(host);
            settings.http.host.clone_from(host);
            settings.grpc.host.clone_from(host);
        }
        settings.pulsar.port = self.pulsar_port.unwrap_or(settings.pulsar.port);
        settings.http.port = self.http_port.unwrap_or(settings.http.port);
        settings.grpc.port = self.grpc_port.unwrap_or(settings.grpc.port);
        if let Some(advertised) = &self.advertised {
            settings.pulsar.advertised.clone_from(advertised);
        }
        settings::check(&settings)?;
        Ok(settings)
    }
}

/// Runs until told to stop.
pub(super) fn standalone(command: StandaloneCommand) -> u8 {
    let settings = match command.settings() {
        Ok(settings) => settings,
        Err(error) => {
            complain(&error);
            return USAGE;
        }
    };
    match real::run(|| serve(settings)) {
        Ok(code) => code,
        Err(error) => {
            complain(&error);
            FAILED
        }
    }
}

async fn serve(settings: Settings) -> u8 {
    // Taken before anything is started: a signal during the start stops it cleanly too.
    let mut signals = match ProcessSignals::take() {
        Ok(signals) => signals,
        Err(error) => {
            complain(&error);
            return FAILED;
        }
    };
    let started = tokio::select! {
        biased;
        () = signals.stop_asked() => return GOOD,
        started = RunningNode::start(real::runtime(), &settings) => started,
    };
    let node = match started {
        Ok(node) => node,
        Err(reason) => {
            complain(&reason);
            return FAILED;
        }
    };
    // Scripts and the bench read these lines: a word, an address; then the word `ready`.
    say(&format!("data     {}", settings.data.display()));
    say(&format!("pulsar   pulsar://{}", node.pulsar_address));
    say(&format!("http     http://{}", node.http_address));
    say(&format!("grpc     {}", node.grpc_address));
    say(&"ready");
    let code = tokio::select! {
        biased;
        () = signals.stop_asked() => GOOD,
        reason = node.failed() => {
            complain(&reason);
            FAILED
        }
    };
    node.stop().await;
    code
}
