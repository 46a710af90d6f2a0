//! Which nodes there are, where each keeps its data and listens, and the configuration file that says so. A
//! folder that has one is a cluster: its ports stay what they were.

use std::path::{Path, PathBuf};

use toml::{Table, Value};

use super::ClusterError;
use crate::ledger::Quorum;
use crate::runtime::real;

/// Everything listens here and nowhere else.
pub(in crate::cli) const HOST: &str = "127.0.0.1";
/// The ports of the first node, if those of all nodes are free.
const USUAL_PORTS: Ports = [7000, 6650, 8080, 9090];
/// Node-to-node, Pulsar, HTTP, gRPC.
type Ports = [u16; 4];
/// Members of the metadata group.
const GROUP: usize = 3;
/// The configuration of a node, in its folder.
const FILE: &str = "seawall.toml";

/// One node.
#[derive(Clone, Debug)]
pub(in crate::cli) struct NodeLayout {
    /// From 1.
    pub(in crate::cli) number: usize,
    /// Its folder: configuration, log and data.
    pub(in crate::cli) folder: PathBuf,
    /// Its node-to-node port.
    pub(in crate::cli) rpc: u16,
    /// Its Pulsar port.
    pub(in crate::cli) pulsar: u16,
    /// Its HTTP port.
    pub(in crate::cli) http: u16,
    /// Its gRPC port.
    pub(in crate::cli) grpc: u16,
}

/// All nodes.
#[derive(Clone, Debug)]
pub(in crate::cli) struct Layout {
    /// In order.
    pub(in crate::cli) nodes: Vec<NodeLayout>,
}

/// How others reach a node, when that is not where it listens.
#[derive(Clone, Debug)]
pub(in crate::cli) struct Reach {
    /// Its node-to-node address as others are told.
    pub(in crate::cli) rpc: String,
    /// Its Pulsar address as clients are told.
    pub(in crate::cli) pulsar: String,
}

impl NodeLayout {
    /// `host:port` of its Pulsar port.
    pub(in crate::cli) fn pulsar_address(&self) -> String {
        format!("{HOST}:{}", self.pulsar)
    }

    /// `host:port` of its node-to-node port.
    pub(in crate::cli) fn rpc_address(&self) -> String {
        format!("{HOST}:{}", self.rpc)
    }

    /// `http://host:port` of its HTTP port.
    pub(in crate::cli) fn http_url(&self) -> String {
        format!("http://{HOST}:{}", self.http)
    }

    /// Its configuration file.
    pub(in crate::cli) fn file(&self) -> PathBuf {
        self.folder.join(FILE)
    }

    /// What it writes to standard error.
    pub(in crate::cli) fn log(&self) -> PathBuf {
        self.folder.join("log")
    }

    /// Everything it stores.
    pub(in crate::cli) fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    fn at(folder: &Path, number: usize, [rpc, pulsar, http, grpc]: Ports) -> Self {
        Self { number, folder: folder.join(format!("node-{number}")), rpc, pulsar, http, grpc }
    }
}

impl Layout {
    /// The cluster of a folder, or a new one in it. Nothing is written.
    pub(in crate::cli) fn of_folder(folder: &Path, nodes: usize) -> Result<Self, ClusterError> {
        let mut found = Vec::new();
        while let Some(ports) = ports_of(&NodeLayout::at(folder, found.len() + 1, [0; 4]).file()) {
            found.push(NodeLayout::at(folder, found.len() + 1, ports));
        }
        if found.is_empty() {
            return Self::new(folder, nodes);
        }
        if found.len() != nodes {
            let path = folder.to_owned();
            return Err(ClusterError::OtherSize { path, found: found.len(), asked: nodes });
        }
        Ok(Self { nodes: found })
    }

    fn new(folder: &Path, nodes: usize) -> Result<Self, ClusterError> {
        let free = |wanted| real::free_port(HOST, wanted);
        let usual = |number: usize| {
            let offset = u16::try_from(number - 1).unwrap_or(u16::MAX);
            USUAL_PORTS.map(|port| port.saturating_add(offset))
        };
        let all_free = (1..=nodes).flat_map(usual).all(|port| free(Some(port)).is_ok());
        let mut layout = Self { nodes: Vec::new() };
        for number in 1..=nodes {
            let ports = if all_free {
                usual(number)
            } else {
                let port = || free(None).map_err(ClusterError::io("a free port"));
                [port()?, port()?, port()?, port()?]
            };
            layout.nodes.push(NodeLayout::at(folder, number, ports));
        }
        Ok(layout)
    }

    /// The quorum of as many bookies, 3/3/2 if there are three.
    pub(in crate::cli) fn quorum(&self) -> Quorum {
        let copies = u32::try_from(self.nodes.len()).unwrap_or(3).min(3);
        Quorum { ensemble: copies, write: copies, ack: copies.min(2) }
    }

    /// Nodes with the metadata role: a group of three, or one alone where there are too few for a group.
    pub(in crate::cli) fn metadata_nodes(&self) -> impl Iterator<Item = &NodeLayout> {
        let members = if self.nodes.len() < GROUP { 1 } else { GROUP };
        self.nodes.iter().take(members)
    }

    /// Writes every node's configuration. `reach` says how others get to it, `more` what else its settings are.
    pub(in crate::cli) fn write(
        &self,
        reach: impl Fn(&NodeLayout) -> Reach,
        more: &Table,
    ) -> Result<(), ClusterError> {
        for node in &self.nodes {
            let mut table = self.table(node, &reach);
            for (section, keys) in more {
                match (table.get_mut(section), keys) {
                    (Some(Value::Table(known)), Value::Table(keys)) => known.extend(keys.clone()),
                    _ => drop(table.insert(section.clone(), keys.clone())),
                }
            }
            let what = node.file().display().to_string();
            std::fs::create_dir_all(&node.folder).map_err(ClusterError::io(what.clone()))?;
            let text = format!("# Written by seawall; the ports are kept.\n{table}");
            std::fs::write(node.file(), text).map_err(ClusterError::io(what))?;
        }
        Ok(())
    }

    fn table(&self, node: &NodeLayout, reach: &impl Fn(&NodeLayout) -> Reach) -> Table {
        let text = |text: &str| Value::String(text.to_owned());
        let section = |keys: Vec<(&str, Value)>| {
            let keys = keys.into_iter().map(|(key, value)| (key.to_owned(), value));
            Value::Table(keys.collect())
        };
        let number = |number: u32| Value::Integer(i64::from(number));
        let port = |port: u16| number(u32::from(port));
        let Reach { rpc, pulsar } = reach(node);
        let quorum = self.quorum();
        let has_metadata = self.metadata_nodes().any(|one| one.number == node.number);
        let roles = ["metadata", "bookie", "broker"].into_iter();
        let roles = roles.filter(|role| has_metadata || *role != "metadata").map(text).collect();
        let addresses = self.metadata_nodes().map(|one| Value::String(reach(one).rpc)).collect();
        let mut metadata = vec![("addresses", Value::Array(addresses))];
        if has_metadata && self.nodes.len() >= GROUP {
            let founder =
                |one: &NodeLayout| Value::String(format!("{}@{}", one.number, reach(one).rpc));
            let founders = self.metadata_nodes().map(founder).collect();
            metadata.push(("member", Value::Integer(node.number as i64)));
            metadata.push(("founders", Value::Array(founders)));
        }
        let mut table = Table::new();
        for (key, value) in [
            ("data", Value::String(node.data().display().to_string())),
            ("roles", Value::Array(roles)),
            (
                "rpc",
                section(vec![
                    ("host", text(HOST)),
                    ("port", port(node.rpc)),
                    ("advertised", Value::String(rpc)),
                ]),
            ),
            (
                "pulsar",
                section(vec![
                    ("host", text(HOST)),
                    ("port", port(node.pulsar)),
                    ("advertised", Value::String(pulsar)),
                ]),
            ),
            (
                "http",
                section(vec![
                    ("host", text(HOST)),
                    ("port", port(node.http)),
                    ("advertised", Value::String(format!("{HOST}:{}", node.http))),
                ]),
            ),
            ("grpc", section(vec![("host", text(HOST)), ("port", port(node.grpc))])),
            ("metadata", section(metadata)),
            (
                "replication",
                section(vec![
                    ("ensemble", number(quorum.ensemble)),
                    ("write_quorum", number(quorum.write)),
                    ("ack_quorum", number(quorum.ack)),
                ]),
            ),
        ] {
            table.insert(key.to_owned(), value);
        }
        table
    }
}

/// The ports in a node's configuration; `None` if there is none.
fn ports_of(file: &Path) -> Option<Ports> {
    let table: Table = std::fs::read_to_string(file).ok()?.parse().ok()?;
    let port = |section: &str| -> Option<u16> {
        let port = table.get(section)?.get("port")?.as_integer()?;
        u16::try_from(port).ok()
    };
    Some([port("rpc")?, port("pulsar")?, port("http")?, port("grpc")?])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn direct(node: &NodeLayout) -> Reach {
        Reach { rpc: node.rpc_address(), pulsar: node.pulsar_address() }
    }

    #[test]
    fn a_cluster_keeps_its_ports_and_its_size() {
        let name = format!("seawall-layout-{}", real::own_process());
        let folder = std::env::temp_dir().join(name);
        let layout = Layout::of_folder(&folder, 3).unwrap();
        layout.write(direct, &Table::new()).unwrap();
        let again = Layout::of_folder(&folder, 3).unwrap();
        let ports = |layout: &Layout| -> Vec<Ports> {
            layout.nodes.iter().map(|node| [node.rpc, node.pulsar, node.http, node.grpc]).collect()
        };
        assert_eq!(ports(&layout), ports(&again));
        let other = Layout::of_folder(&folder, 2).unwrap_err();
        assert!(matches!(other, ClusterError::OtherSize { found: 3, asked: 2, .. }));
        for node in &layout.nodes {
            let source = crate::cli::settings::Source::read(Some(&node.file()));
            let settings = source.finish().expect("its configuration is good").settings;
            assert_eq!(settings.replication.quorum(), layout.quorum());
            assert_eq!(settings.pulsar.port, node.pulsar);
        }
        std::fs::remove_dir_all(folder).unwrap();
    }
}
