//! What must come to hold by itself once everything is healed, and how long that may take.

use std::future::Future;
use std::time::Duration;

use super::checkers::Finding;
use super::clients::{Clients, SETUP_LIMIT, Stage};

/// Something that is looked for again and again.
pub struct Awaited {
    promise: &'static str,
    /// The checker's name.
    pub checker: &'static str,
    /// What is done to find out, as a task's name.
    question: &'static str,
    since: &'static str,
    /// Longest wait.
    limit: Duration,
    /// Longest time that one look takes.
    look_limit: Duration,
    /// Between two looks.
    pause: Duration,
}

/// Every copy is where it must be.
pub const REPLICATION: Awaited = Awaited {
    promise: "P1",
    checker: "full_replication",
    question: "compare all copies",
    since: "all worked again",
    limit: Duration::from_secs(240),
    look_limit: Duration::from_secs(240),
    pause: Duration::from_secs(3),
};

/// Brokers have nothing of clients that are gone. A connection of which one end knows nothing is silent for two
/// keep-alive intervals, a minute, before it is given up.
pub const NOTHING_LEFT: Awaited = Awaited {
    promise: "P8",
    checker: "nothing_left_behind",
    question: "look for what is left",
    since: "all clients left",
    limit: Duration::from_secs(90),
    look_limit: SETUP_LIMIT,
    pause: Duration::from_secs(1),
};

impl<S: Stage> Clients<S> {
    /// Looks until it is as it must be, or the time is over. A look answers how many facts it compared, or what is
    /// wrong; none if there is nobody to ask.
    pub async fn await_finding<W>(
        &mut self,
        awaited: &Awaited,
        look: impl Fn(&S) -> Option<W>,
    ) -> Finding
    where
        W: Future<Output = Result<u64, String>> + Send + 'static,
    {
        let until = self.stage.now() + awaited.limit;
        let mut finding = Finding::default();
        loop {
            let looked = match look(&self.stage) {
                Some(work) => {
                    self.while_supervised(awaited.question, work, awaited.look_limit).await
                }
                None => None,
            };
            match looked.unwrap_or(Err("nobody answers".to_owned())) {
                Ok(compared) => {
                    finding.compared = compared;
                    return finding;
                }
                Err(wrong) if self.stage.now() >= until => {
                    let detail = format!("{:?} after {}: {wrong}", awaited.limit, awaited.since);
                    finding.broken(awaited.promise, awaited.checker, detail);
                    return finding;
                }
                Err(_) => self.supervise(awaited.pause).await,
            }
        }
    }
}
