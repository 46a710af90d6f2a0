//! `seawall cluster local`: a real cluster on this machine, for people and tests.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use toml::Table;

use super::local_cluster::{ClusterError, Layout, LocalCluster, NodeLayout, Reach, WorkFolder};
use super::output::{complain, say, table};
use super::{FAILED, GOOD};
use crate::runtime::real::{self, ProcessSignals};

/// Between two looks at the processes.
const LOOK: Duration = Duration::from_millis(200);

/// Clusters.
#[derive(Debug, Args)]
pub(super) struct ClusterCommand {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Run a cluster on this machine: a process, a folder and ports of its own for each node.
    ///
    /// Prints where everything is and the word `ready`; stops all nodes on SIGINT and SIGTERM. A node that ends
    /// is told of and not started again. Each entry is kept by three nodes (or as many as there are).
    ///
    /// Examples:
    ///   seawall cluster local
    ///   seawall cluster local --nodes 5 --data /tmp/five
    #[command(verbatim_doc_comment)]
    Local(LocalCommand),
}

#[derive(Debug, Args)]
struct LocalCommand {
    /// How many nodes.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=9))]
    nodes: u8,
    /// Folder of all nodes' folders; without it a temporary one, removed at the end.
    #[arg(long)]
    data: Option<PathBuf>,
}

/// Performs the command.
pub(super) fn cluster(command: &ClusterCommand) -> u8 {
    let Action::Local(options) = &command.action;
    match real::run(|| local(options)) {
        Ok(Ok(code)) => code,
        Ok(Err(error)) => {
            complain(&error);
            FAILED
        }
        Err(error) => {
            complain(&error);
            FAILED
        }
    }
}

/// Runs on the main thread, which lives as long as the process: with the thread that starts them the nodes die.
async fn local(options: &LocalCommand) -> Result<u8, ClusterError> {
    let mut signals = ProcessSignals::take().map_err(ClusterError::io("signals"))?;
    let runtime = real::runtime();
    let folder = WorkFolder::open(options.data.as_deref(), "cluster")?;
    let layout = Layout::of_folder(folder.path(), usize::from(options.nodes))?;
    let direct =
        |node: &NodeLayout| Reach { rpc: node.rpc_address(), pulsar: node.pulsar_address() };
    layout.write(direct, &Table::new())?;
    let mut cluster = LocalCluster::launch(&runtime, &layout)?;
    tokio::select! {
        biased;
        () = signals.stop_asked() => return Ok(GOOD),
        ready = cluster.ready() => ready?,
    }
    say(&addresses(&mut cluster));
    say(&format!("clients  {}", cluster.service_url()));
    say(&"ready");
    loop {
        tokio::select! {
            biased;
            () = signals.stop_asked() => break,
            () = runtime.clock.sleep(LOOK) => {}
        }
        for node in &mut cluster.nodes {
            if let Some(end) = node.take_end() {
                let (number, log) = (node.layout.number, node.layout.log());
                say(&format!("node {number} ended ({end}); its log is {}", log.display()));
            }
        }
    }
    let bad = cluster.stop().await;
    for words in &bad {
        complain(words);
    }
    Ok(if bad.is_empty() { GOOD } else { FAILED })
}

fn addresses(cluster: &mut LocalCluster) -> String {
    let rows: Vec<Vec<String>> = cluster
        .nodes
        .iter_mut()
        .map(|node| {
            let process = node.id().map(|id| id.to_string()).unwrap_or_default();
            let layout = &node.layout;
            vec![
                layout.number.to_string(),
                process,
                format!("pulsar://{}", layout.pulsar_address()),
                layout.http_url(),
                layout.rpc_address(),
                layout.folder.display().to_string(),
            ]
        })
        .collect();
    table(&["node", "process", "pulsar", "http", "rpc", "folder"], &rows)
}
