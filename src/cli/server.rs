//! `seawall server`: a node of a cluster, with the roles it is given.

use std::path::PathBuf;

use clap::Args;
use toml::Value;

use super::output::complain;
use super::running_node::run_node;
use super::settings::{Problem, Problems, RoleName, Settings, Source};
use super::{FAILED, USAGE};
use crate::runtime::real::end_with_parent;

/// Run a node of a cluster: metadata, bookie, broker, in any mix.
///
/// Waits for metadata and for enough bookies as long as it takes (health and metrics answer meanwhile), prints
/// the addresses it listens on and the word `ready`; stops cleanly on SIGINT and SIGTERM.
///
/// Examples:
///   seawall server --config /etc/seawall.toml
///   seawall server --roles bookie --data /var/lib/seawall --rpc-advertised b1:7000 --metadata m1:7000
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(super) struct ServerCommand {
    /// TOML file with settings; flags and SEAWALL_… variables override it.
    #[arg(long)]
    config: Option<PathBuf>,
    /// What this node does.
    #[arg(long, value_enum, value_delimiter = ',')]
    roles: Vec<RoleName>,
    /// Folder of everything stored; one process at a time.
    #[arg(long)]
    data: Option<PathBuf>,
    /// Host to listen on, for all ports.
    #[arg(long)]
    listen: Option<String>,
    /// Port for other nodes; 0 asks for any.
    #[arg(long)]
    rpc_port: Option<u16>,
    /// host:port by which other nodes reach this one.
    #[arg(long)]
    rpc_advertised: Option<String>,
    /// host:port of the metadata nodes.
    #[arg(long, value_delimiter = ',')]
    metadata: Vec<String>,
    /// Port for Pulsar clients; 0 asks for any.
    #[arg(long)]
    pulsar_port: Option<u16>,
    /// host:port told to Pulsar clients, if not the address by which they are connected.
    #[arg(long)]
    advertised: Option<String>,
    /// Port for HTTP; 0 asks for any.
    #[arg(long)]
    http_port: Option<u16>,
    /// Port for gRPC clients; 0 asks for any.
    #[arg(long)]
    grpc_port: Option<u16>,
    /// Die with this process, which started us.
    #[arg(long, hide = true)]
    ends_with: Option<u32>,
}

impl ServerCommand {
    /// File, environment, then these flags.
    fn settings(&self) -> Result<Settings, Problems> {
        let list = |words: Vec<String>| {
            let words = words.into_iter().map(Value::String).collect();
            Some(Value::Array(words)).filter(|list| list != &Value::Array(Vec::new()))
        };
        let roles = self.roles.iter().map(|role| format!("{role:?}").to_lowercase()).collect();
        let mut source = Source::read(self.config.as_deref());
        source
            .flag("--roles", "roles", list(roles))
            .flag(
                "--data",
                "data",
                self.data.as_ref().map(|data| data.to_string_lossy().into_owned()),
            )
            .flag("--listen", "rpc.host", self.listen.clone())
            .flag("--listen", "pulsar.host", self.listen.clone())
            .flag("--listen", "http.host", self.listen.clone())
            .flag("--listen", "grpc.host", self.listen.clone())
            .flag("--rpc-port", "rpc.port", self.rpc_port.map(i64::from))
            .flag("--rpc-advertised", "rpc.advertised", self.rpc_advertised.clone())
            .flag("--metadata", "metadata.addresses", list(self.metadata.clone()))
            .flag("--pulsar-port", "pulsar.port", self.pulsar_port.map(i64::from))
            .flag("--advertised", "pulsar.advertised", self.advertised.clone())
            .flag("--http-port", "http.port", self.http_port.map(i64::from))
            .flag("--grpc-port", "grpc.port", self.grpc_port.map(i64::from));
        let effective = source.finish()?;
        if !effective.settings.is_standalone() {
            return Ok(effective.settings);
        }
        Err(Problems(vec![Problem::BadValue {
            origin: effective.origin("roles"),
            key: "roles".to_owned(),
            value: "[]".to_owned(),
            reason: "a node of a cluster must be told what it does".to_owned(),
            allowed: "any of metadata, bookie, broker".to_owned(),
        }]))
    }
}

/// Runs until told to stop.
pub(super) fn server(command: &ServerCommand) -> u8 {
    if let Some(parent) = command.ends_with {
        match end_with_parent(parent) {
            Ok(true) => {}
            Ok(false) => return FAILED,
            Err(error) => {
                complain(&error);
                return FAILED;
            }
        }
    }
    match command.settings() {
        Ok(settings) => run_node(settings),
        Err(problems) => {
            complain(&problems);
            USAGE
        }
    }
}
