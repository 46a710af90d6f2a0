//! One node's process: started, hurt, healed, stopped.

use std::time::Duration;

use super::{ClusterError, NodeLayout};
use crate::runtime::Runtime;
use crate::runtime::real::{ChildProcess, ChildSignal, own_process};

/// Bytes of a log's end that are shown.
const LAST_WORDS_BYTES: usize = 2000;

/// See the module.
pub(in crate::cli) struct NodeProcess {
    /// Where it lives.
    pub(in crate::cli) layout: NodeLayout,
    /// What the node logs.
    pub(in crate::cli) log_filter: String,
    process: Option<ChildProcess>,
}

impl NodeProcess {
    /// Not started yet.
    pub(in crate::cli) fn new(layout: NodeLayout) -> Self {
        Self { layout, log_filter: "info".to_owned(), process: None }
    }

    /// Starts it; whatever ran before is killed.
    pub(in crate::cli) fn start(&mut self) -> Result<(), ClusterError> {
        self.kill();
        let file = self.layout.file().display().to_string();
        let arguments = [
            "--log",
            &self.log_filter,
            "server",
            "--ends-with",
            &own_process().to_string(),
            "--config",
            &file,
        ];
        let arguments: Vec<String> = arguments.iter().map(|word| (*word).to_owned()).collect();
        let what = format!("start node {}", self.layout.number);
        let process = ChildProcess::start(&arguments, &self.layout.log());
        self.process = Some(process.map_err(ClusterError::io(what))?);
        Ok(())
    }

    /// Waits for its word `ready`.
    pub(in crate::cli) async fn ready(
        &mut self,
        runtime: &Runtime,
        limit: Duration,
    ) -> Result<(), ClusterError> {
        let Some(process) = self.process.as_mut() else {
            return Err(self.failed("was not started"));
        };
        let reading = async {
            while let Some(line) = process.line().await {
                if line.trim() == "ready" {
                    return true;
                }
            }
            false
        };
        match runtime.clock.timeout(limit, reading).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(self.failed("ended before it was ready")),
            Err(elapsed) => Err(self.failed(&format!("is not ready: {elapsed}"))),
        }
    }

    fn failed(&self, what: &str) -> ClusterError {
        let log = self.layout.log();
        let words = std::fs::read(&log).unwrap_or_default();
        let from = words.len().saturating_sub(LAST_WORDS_BYTES);
        ClusterError::Node {
            number: self.layout.number,
            what: what.to_owned(),
            words: String::from_utf8_lossy(&words[from..]).into_owned(),
            log,
        }
    }

    /// Its process id, if it runs.
    pub(in crate::cli) fn id(&mut self) -> Option<u32> {
        let process = self.process.as_mut()?;
        process.ended().is_none().then(|| process.id())
    }

    /// True until it has ended.
    pub(in crate::cli) fn is_running(&mut self) -> bool {
        self.id().is_some()
    }

    /// How it ended by itself: told once.
    pub(in crate::cli) fn take_end(&mut self) -> Option<String> {
        let ended = self.process.as_mut()?.ended().map(str::to_owned)?;
        self.process = None;
        Some(ended)
    }

    /// kill -9.
    pub(in crate::cli) fn kill(&mut self) {
        self.process = None;
    }

    /// Asks it to stop in order.
    pub(in crate::cli) fn ask_to_stop(&mut self) {
        self.signal(ChildSignal::Stop);
    }

    /// SIGSTOP.
    pub(in crate::cli) fn pause(&mut self) {
        self.signal(ChildSignal::Pause);
    }

    /// SIGCONT.
    pub(in crate::cli) fn resume(&mut self) {
        self.signal(ChildSignal::Resume);
    }

    fn signal(&mut self, signal: ChildSignal) {
        if let Some(process) = &mut self.process {
            process.signal(signal);
        }
    }
}
