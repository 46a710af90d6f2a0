//! Three nodes of this binary on this machine, `seawall cluster local`, as the server that is measured.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::BenchError;
use super::child::{Server, TOPIC, lines_until_ready, this_binary};
use super::wire::Target;

/// A topic nobody owns by then is given up.
const OWNER_LIMIT: Duration = Duration::from_secs(30);

/// A node as `cluster local` lists it: number, process, Pulsar address, HTTP address, and more.
struct Node {
    process: u32,
    http: String,
}

/// Starts the cluster on a data folder, waits until it is ready and the topic has an owner.
pub(super) fn start(data: &Path) -> Result<Server, BenchError> {
    let began = Instant::now();
    let mut child = this_binary()?
        .args(["cluster", "local", "--nodes", "3", "--data"])
        .arg(data)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(BenchError::io("start the cluster"))?;
    let said = lines_until_ready(&mut child);
    let nothing = Target::pulsar("", TOPIC);
    // From here on the children are killed whatever happens.
    let mut server = Server::new(child, nothing, began.elapsed());
    let nodes: Vec<Node> = said?.iter().filter_map(|line| node(line)).collect();
    let Some(first) = nodes.first() else {
        return Err(BenchError::Server("the cluster named no nodes".to_owned()));
    };
    let owner = owner(&first.http);
    server.set_nodes(nodes.iter().map(|node| node.process).collect());
    server.target = Target::pulsar(&owner?, TOPIC);
    Ok(server)
}

fn node(line: &str) -> Option<Node> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [_, process, _, http, ..] = words.as_slice() else { return None };
    let process = process.parse().ok()?;
    http.starts_with("http://").then(|| Node { process, http: (*http).to_owned() })
}

/// The address of the broker that owns the topic; asking makes one the owner.
fn owner(http: &str) -> Result<String, BenchError> {
    let began = Instant::now();
    loop {
        let output = this_binary()?
            .args(["admin", "--admin-url", http, "-o", "json", "topics", "lookup", TOPIC])
            .stdin(Stdio::null())
            .output()
            .map_err(BenchError::io("look the topic up"))?;
        let answer: Option<Value> = serde_json::from_slice(&output.stdout).ok();
        if let Some(address) = answer.as_ref().and_then(|answer| answer.get("brokerUrl")?.as_str())
        {
            return Ok(address.to_owned());
        }
        if began.elapsed() > OWNER_LIMIT {
            let words = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(BenchError::Server(format!("the topic has no owner: {words}")));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}
