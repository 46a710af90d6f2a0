//! What a story has at hand while it is told, and how a step waits: for a condition, at most so long.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use seawall::domain::{BookieId, Position};
use seawall::runtime::Task;
use seawall::simulator::history::MessageNumber;

use super::Outcome;
use super::actors::{Actor, Writing};
use super::members::Pairs;
use super::topics::Subscribed;
use crate::support::Stage;

/// How long a step waits for what has to come about, if it says nothing else: well above every time-out, lease and
/// back-off of the cluster.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Step of everything that waits.
const TICK: Duration = Duration::from_millis(20);

/// A cluster, its clients, and what they were told so far.
pub struct Play {
    /// The cluster.
    pub stage: Stage,
    /// Names the story has given.
    pub called: BTreeMap<String, Vec<String>>,
    pub(super) actors: BTreeMap<String, Actor>,
    pub(super) writings: BTreeMap<String, Writing>,
    pub(super) bookie_names: BTreeMap<BookieId, String>,
    pub(super) acknowledged: Vec<(MessageNumber, Position)>,
    pub(super) publishing: Vec<Task<Vec<(MessageNumber, Position)>>>,
    pub(super) subscriptions: BTreeMap<String, Arc<Mutex<Subscribed>>>,
    pub(super) is_kept: bool,
    pub(super) trims: bool,
    pub(super) known_bookies: BTreeMap<String, BookieId>,
    pub(super) is_down_for_good: BTreeSet<String>,
    pub(super) gone: BTreeSet<String>,
    pub(super) pairs: Pairs,
}

impl Play {
    /// Nothing has happened yet.
    pub fn new(stage: Stage) -> Self {
        Self {
            trims: stage.plan.trims,
            stage,
            called: BTreeMap::new(),
            actors: BTreeMap::new(),
            writings: BTreeMap::new(),
            bookie_names: BTreeMap::new(),
            acknowledged: Vec::new(),
            publishing: Vec::new(),
            subscriptions: BTreeMap::new(),
            is_kept: false,
            known_bookies: BTreeMap::new(),
            is_down_for_good: BTreeSet::new(),
            gone: BTreeSet::new(),
            pairs: Pairs::default(),
        }
    }

    /// Notes which bookie runs where, as long as it runs.
    pub fn look_around(&mut self) {
        for node in &self.stage.cluster.nodes {
            if let Some(id) = node.serving().and_then(|node| node.bookie().map(|b| b.id())) {
                let name = node.machine.name();
                self.bookie_names.insert(id, name.to_owned());
                self.known_bookies.entry(name.to_owned()).or_insert(id);
            }
        }
    }

    /// Waits until `condition` holds (it says what it still misses), at most `limit`.
    pub async fn wait(
        &mut self,
        limit: Duration,
        mut condition: impl AsyncFnMut(&mut Self) -> Outcome,
    ) -> Outcome {
        let until = self.stage.world.now() + limit;
        loop {
            match condition(self).await {
                Ok(()) => return Ok(()),
                Err(missing) if self.stage.world.now() >= until => {
                    return Err(format!("not within {limit:?}: {missing}"));
                }
                Err(_) => self.tick().await,
            }
        }
    }

    /// Demands that `condition` holds all the time, so long.
    pub async fn hold(
        &mut self,
        so_long: Duration,
        mut condition: impl AsyncFnMut(&mut Self) -> Outcome,
    ) -> Outcome {
        let until = self.stage.world.now() + so_long;
        while self.stage.world.now() < until {
            condition(self).await?;
            self.tick().await;
        }
        condition(self).await
    }

    /// Does work of a client while the cluster is looked after.
    pub async fn supervised<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = std::pin::pin!(work);
        loop {
            self.stage.cluster.supervise();
            let step = self.stage.world.sleep(TICK);
            tokio::select! {
                biased;
                output = &mut work => return output,
                () = step => {}
            }
            self.look_around();
        }
    }

    async fn tick(&mut self) {
        self.stage.start_and_pass(TICK).await;
        self.look_around();
    }
}

/// Fails with `why` unless it is true.
pub fn demand(is_true: bool, why: impl FnOnce() -> String) -> Outcome {
    if is_true { Ok(()) } else { Err(why()) }
}
