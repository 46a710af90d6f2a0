//! A node in this process, from the command line: settings in, addresses out, and its life until it is told to
//! stop.

use std::time::Duration;

use super::output::{complain, say};
use super::settings::Settings;
use super::{FAILED, GOOD};
use crate::node::Node;
use crate::runtime::real::{self, ProcessSignals};

/// A node told to stop hands over what it can in this time: without metadata, or when all nodes stop at once,
/// there may be nobody to hand over to.
const STOP_LIMIT: Duration = Duration::from_secs(15);

/// Runs a node until told to stop; the answer is the exit code.
pub(super) fn run_node(settings: Settings) -> u8 {
    match real::run(|| serve(settings)) {
        Ok(code) => code,
        Err(error) => {
            complain(&error);
            FAILED
        }
    }
}

async fn serve(settings: Settings) -> u8 {
    // Taken before anything is started: a signal during the start stops it cleanly too.
    let mut signals = match ProcessSignals::take() {
        Ok(signals) => signals,
        Err(error) => {
            complain(&error);
            return FAILED;
        }
    };
    let runtime = real::runtime();
    let starting = Box::pin(Node::start(runtime.clone(), settings.node_config()));
    let started = tokio::select! {
        biased;
        () = signals.stop_asked() => return GOOD,
        started = starting => started,
    };
    let node = match started {
        Ok(node) => node,
        Err(error) => {
            complain(&error);
            return FAILED;
        }
    };
    // Scripts, `cluster local` and the bench read these lines: a word, an address; then the word `ready`.
    say(&format!("data     {}", settings.data.display()));
    if let Some(address) = node.rpc_address() {
        say(&format!("rpc      {address}"));
    }
    if let Some(address) = node.pulsar_address() {
        say(&format!("pulsar   pulsar://{address}"));
    }
    say(&format!("http     http://{}", node.http_address()));
    if let Some(address) = node.grpc_address() {
        say(&format!("grpc     {address}"));
    }
    say(&"ready");
    let code = tokio::select! {
        biased;
        () = signals.stop_asked() => GOOD,
        reason = node.failed() => {
            complain(&reason);
            FAILED
        }
    };
    match runtime.clock.timeout(STOP_LIMIT, node.stop()).await {
        Ok(()) => code,
        Err(elapsed) => {
            complain(&format!(
                "not everything was handed over ({elapsed}); nothing stored is lost"
            ));
            FAILED
        }
    }
}
