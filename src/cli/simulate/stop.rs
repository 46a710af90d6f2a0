//! SIGINT and SIGTERM in a campaign: the first ends it in order, with what it has come to so far; the second ends the
//! process at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::cli::USAGE;
use crate::cli::output::complain;
use crate::runtime::real::ProcessSignals;

/// Whether a campaign is to end before its time.
#[derive(Clone, Default)]
pub(super) struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Asked for by the first signal from now on.
    pub(super) fn on_signal() -> Result<Self, String> {
        let stop = Self::default();
        let asked = stop.clone();
        let executor = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let executor = executor.map_err(|error| format!("cannot wait for signals: {error}"))?;
        let taken = executor.block_on(async { ProcessSignals::take() });
        let mut signals = taken.map_err(|error| format!("cannot wait for signals: {error}"))?;
        let wait = move || {
            executor.block_on(signals.stop_asked());
            asked.ask();
            complain(&"stopping; runs under way are dropped; once more, and it ends at once");
            executor.block_on(signals.stop_asked());
            // There is nobody who could hand an exit code up: the campaign is on other threads.
            std::process::exit(USAGE.into());
        };
        let thread = std::thread::Builder::new().name("signals".to_owned()).spawn(wait);
        thread.map_err(|error| format!("no thread for signals: {error}"))?;
        Ok(stop)
    }

    pub(super) fn ask(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
