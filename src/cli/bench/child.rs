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
/// Lines kept while waiting for `ready`.
const LINES_MAX: usize = 64;

/// A running server; killed when dropped.
pub(super) struct Server {
    child: Child,
    /// How it is spoken to.
    pub(super) target: Target,
    /// From its start until it said `ready`.
    pub(super) start_time: Duration,
}

impl Server {
    /// Starts the floor or Seawall on a data folder and waits until it is ready.
    pub(super) fn start(side: Side, data: &Path) -> Result<Self, BenchError> {
        let binary = std::env::current_exe().map_err(BenchError::io("find this binary"))?;
        let mut command = Command::new(binary);
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
        let mut server =
            Self { child, target: Target::Floor { address: String::new() }, start_time };
        let address = address?;
        server.target = match side {
            Side::Floor => Target::Floor { address },
            Side::Seawall => {
                let address = address.trim_start_matches("pulsar://").to_owned();
                Target::Pulsar { address, topic: "persistent://public/default/bench".to_owned() }
            }
        };
        Ok(server)
    }

    /// Its process id.
    pub(super) fn process(&self) -> u32 {
        self.child.id()
    }

    /// kill -9, and waits until it is gone.
    pub(super) fn kill(&mut self) {
        // Already dead is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Reads `<what> <address>` lines until `ready`; the first address is the one to speak to.
fn wait_until_ready(child: &mut Child) -> Result<String, BenchError> {
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
    let mut address = None;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let Ok(line) = lines.recv_timeout(left) else {
            return Err(BenchError::Server("ended or hung before it was ready".to_owned()));
        };
        let mut words = line.split_whitespace();
        match (words.next(), words.next()) {
            (Some("ready"), _) => break,
            (Some("floor" | "pulsar"), Some(found)) => address = Some(found.to_owned()),
            _ => {}
        }
    }
    address.ok_or_else(|| BenchError::Server("was ready without an address".to_owned()))
}
