//! Servers as child processes of their own, so that their CPU can be told from the generator's.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

use super::BenchError;
use super::measurement::Side;
use super::wire::Target;

/// A server not ready after this is taken for hung.
const READY_LIMIT: Duration = Duration::from_secs(120);
/// Nodes that have not ended this long after the process that started them are left to themselves.
const NODES_LIMIT: Duration = Duration::from_secs(10);
/// What is published to.
pub(super) const TOPIC: &str = "persistent://public/default/bench";
/// Lines kept while waiting for `ready`.
const LINES_MAX: usize = 64;

/// A running server; killed when dropped.
pub(super) struct Server {
    child: Child,
    /// The nodes' processes, where the child only started them.
    nodes: Vec<u32>,
    /// How it is spoken to.
    pub(super) target: Target,
    /// From its start until it said `ready`.
    pub(super) start_time: Duration,
}

impl Server {
    /// Starts the floor or Seawall on a data folder and waits until it is ready.
    pub(super) fn start(side: Side, data: &Path) -> Result<Self, BenchError> {
        let mut command = this_binary()?;
        match side {
            Side::Floor => command.arg("bench-floor-server"),
            Side::Seawall => command.args([
                "standalone",
                "--listen",
                "127.0.0.1",
                "--pulsar-port",
                "0",
                "--http-port",
                "0",
                "--grpc-port",
                "0",
            ]),
        };
        let began = Instant::now();
        let mut child = command
            .arg("--data")
            .arg(data)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(BenchError::io("start the server"))?;
        let address = wait_until_ready(&mut child);
        let start_time = began.elapsed();
        // From here on the child is killed whatever happens.
        let mut server = Self::new(child, Target::Floor { address: String::new() }, start_time);
        let address = address?;
        server.target = match side {
            Side::Floor => Target::Floor { address },
            Side::Seawall => Target::pulsar(&address, TOPIC),
        };
        Ok(server)
    }

    pub(super) const fn new(child: Child, target: Target, start_time: Duration) -> Self {
        Self { child, nodes: Vec::new(), target, start_time }
    }

    /// Tells which processes do the work.
    pub(super) fn set_nodes(&mut self, nodes: Vec<u32>) {
        self.nodes = nodes;
    }

    /// The processes that do the work.
    pub(super) fn processes(&self) -> Vec<u32> {
        match self.nodes.is_empty() {
            true => vec![self.child.id()],
            false => self.nodes.clone(),
        }
    }

    /// kill -9, and waits until it is gone.
    pub(super) fn kill(&mut self) {
        // Already dead is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
        // Nodes end with the process that started them, a moment later; until then they use their folders.
        let deadline = Instant::now() + NODES_LIMIT;
        let is_there = |node: &u32| std::path::Path::new(&format!("/proc/{node}")).exists();
        while self.nodes.iter().any(is_there) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A command that is this program again.
pub(super) fn this_binary() -> Result<Command, BenchError> {
    let binary = std::env::current_exe().map_err(BenchError::io("find this binary"))?;
    Ok(Command::new(binary))
}

/// Reads `<what> <address>` lines until `ready`; the address is the one to speak to.
fn wait_until_ready(child: &mut Child) -> Result<String, BenchError> {
    let mut address = None;
    for line in lines_until_ready(child)? {
        let mut words = line.split_whitespace();
        if let (Some("floor" | "pulsar"), Some(found)) = (words.next(), words.next()) {
            address = Some(found.to_owned());
        }
    }
    address.ok_or_else(|| BenchError::Server("was ready without an address".to_owned()))
}

/// What a server says before the word `ready`, at most so many lines.
pub(super) fn lines_until_ready(child: &mut Child) -> Result<Vec<String>, BenchError> {
    let Some(stdout) = child.stdout.take() else {
        return Err(BenchError::Server("has no standard output".to_owned()));
    };
    let (sender, lines) = sync_channel::<String>(LINES_MAX);
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            // After `ready` nobody listens, and the pipe must still be emptied.
            let _ = sender.try_send(line);
        }
    });
    let deadline = Instant::now() + READY_LIMIT;
    let mut said = Vec::new();
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let Ok(line) = lines.recv_timeout(left) else {
            return Err(BenchError::Server("ended or hung before it was ready".to_owned()));
        };
        if line.trim() == "ready" || line.starts_with("ready ") {
            return Ok(said);
        }
        if said.len() < LINES_MAX {
            said.push(line);
        }
    }
}
