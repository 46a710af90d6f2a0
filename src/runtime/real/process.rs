//! The process: its executor, its signals, and what a panic does.

use std::future::Future;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Runs the production executor until `work` is done. From here on a panic in any task ends the process:
/// a node whose task died is not the node it claims to be.
pub fn run<F: Future>(work: impl FnOnce() -> F) -> std::io::Result<F::Output> {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        report(panic);
        std::process::abort();
    }));
    let executor = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    Ok(executor.block_on(async { work().await }))
}

/// SIGINT and SIGTERM.
pub struct ProcessSignals {
    interrupt: Signal,
    terminate: Signal,
}

impl ProcessSignals {
    /// Takes the signals over from the operating system's default, which is to die.
    pub fn take() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Completes when the process is asked to stop.
    pub async fn stop_asked(&mut self) {
        tokio::select! {
            biased;
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
