//! A cluster of child processes of this binary on this machine, each with its own folder, ports and
//! configuration file: what `cluster local` shows to people and `chaos` hurts.
#![allow(
    clippy::disallowed_methods,
    reason = "starts nodes and writes their configuration; no part of a node runs here"
)]

mod layout;
mod node_process;

pub(super) use layout::{HOST, Layout, NodeLayout, Reach};
pub(super) use node_process::NodeProcess;

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::runtime::Runtime;

/// A node that is not ready after this is taken for hung.
const READY_LIMIT: Duration = Duration::from_secs(120);
/// A node told to stop that still runs after this is killed.
const STOP_LIMIT: Duration = Duration::from_secs(30);
/// Between two looks at a process.
const LOOK: Duration = Duration::from_millis(20);

/// The cluster cannot be started or kept.
#[derive(Debug, thiserror::Error)]
pub(super) enum ClusterError {
    /// The folder, a port or a process.
    #[error("{what}: {source}")]
    Io {
        /// What was tried.
        what: String,
        /// The operating system's words.
        source: std::io::Error,
    },
    /// The folder holds another cluster.
    #[error("{path} holds a cluster of {found} nodes, {asked} were asked for", path = path.display())]
    OtherSize {
        /// The folder.
        path: PathBuf,
        /// Its nodes.
        found: usize,
        /// Nodes asked for.
        asked: usize,
    },
    /// The folder was used before, and what is in it would be taken for what this run did.
    #[error("{path} has nodes already; name an empty folder", path = path.display())]
    Used {
        /// The folder.
        path: PathBuf,
    },
    /// A node did not come up.
    #[error("node {number} {what}; its last words, from {log}:\n{words}", log = log.display())]
    Node {
        /// Which, from 1.
        number: usize,
        /// What it did.
        what: String,
        /// Its log.
        log: PathBuf,
        /// The end of it.
        words: String,
    },
}

impl ClusterError {
    /// Adds what was tried.
    pub(super) fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }
}

/// A running cluster; killed when dropped.
pub(super) struct LocalCluster {
    /// The nodes, in order.
    pub(super) nodes: Vec<NodeProcess>,
    runtime: Runtime,
}

impl LocalCluster {
    /// Starts a process for each node of the layout. Call it on the thread that runs for as long as the cluster
    /// shall: with it the children die.
    pub(super) fn launch(runtime: &Runtime, layout: &Layout) -> Result<Self, ClusterError> {
        let mut cluster = Self { nodes: Vec::new(), runtime: runtime.clone() };
        for node in &layout.nodes {
            let mut process = NodeProcess::new(node.clone());
            process.start()?;
            cluster.nodes.push(process);
        }
        Ok(cluster)
    }

    /// Waits until all nodes are ready.
    pub(super) async fn ready(&mut self) -> Result<(), ClusterError> {
        for node in &mut self.nodes {
            node.ready(&self.runtime, READY_LIMIT).await?;
        }
        Ok(())
    }

    /// The service URL with all brokers.
    pub(super) fn service_url(&self) -> String {
        let hosts: Vec<String> =
            self.nodes.iter().map(|node| node.layout.pulsar_address()).collect();
        format!("pulsar://{}", hosts.join(","))
    }

    /// Asks every node to stop and waits; one that does not is killed and told.
    pub(super) async fn stop(&mut self) -> Vec<String> {
        for node in &mut self.nodes {
            node.resume();
            node.ask_to_stop();
        }
        let until = self.runtime.clock.now() + STOP_LIMIT;
        let mut bad = Vec::new();
        for node in &mut self.nodes {
            while node.is_running() && self.runtime.clock.now() < until {
                self.runtime.clock.sleep(LOOK).await;
            }
            if node.is_running() {
                node.kill();
                bad.push(format!("node {} did not stop and was killed", node.layout.number));
            }
        }
        bad
    }
}

/// A folder to work in, removed at the end unless somebody named it.
pub(super) struct WorkFolder {
    path: PathBuf,
    is_own: bool,
}

impl WorkFolder {
    /// The folder named, or a new one.
    pub(super) fn open(named: Option<&Path>, what: &str) -> Result<Self, ClusterError> {
        let path = match named {
            Some(path) => path.to_owned(),
            None => {
                let process = crate::runtime::real::own_process();
                std::env::temp_dir().join(format!("seawall-{what}-{process}"))
            }
        };
        let told = path.display().to_string();
        std::fs::create_dir_all(&path).map_err(ClusterError::io(told.clone()))?;
        let path = std::fs::canonicalize(&path).map_err(ClusterError::io(told))?;
        Ok(Self { path, is_own: named.is_none() })
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// It is somebody's from now on.
    pub(super) fn keep(&mut self) {
        self.is_own = false;
    }
}

impl Drop for WorkFolder {
    fn drop(&mut self) {
        if self.is_own {
            // What is left is in the folder of temporary files.
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}
