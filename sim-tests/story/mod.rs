//! Scenarios told as stories: a list of short steps, each one word of this module, about a cluster in the simulated
//! world. What the words mean and how to write a scenario: `docs/internals/scenarios.md`.

mod actors;
mod faults;
mod judge;
mod ledgers;
mod listed;
mod members;
mod places;
mod play;
mod promises;
mod repairs;
mod topics;

use std::any::Any;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures_util::future::LocalBoxFuture;
use seawall::ledger::Quorum;
use seawall::simulator::plan::{Plan, Topology};

pub use ledgers::Ending;
pub use play::Play;
pub use promises::*;

/// What a step says when it fails.
pub type Outcome = Result<(), String>;

type Act = Box<dyn for<'a> FnOnce(&'a mut Play) -> LocalBoxFuture<'a, Outcome> + Send>;

type Change = Box<dyn FnOnce(&mut Plan) + Send>;

struct Step {
    told: String,
    act: Act,
}

/// Another seed: the same story with other latencies and other turns of the tasks.
const SEED: &str = "SEAWALL_STORY_SEED";

/// A scenario as a list of steps, named after the test that it is.
pub struct Story {
    test: &'static str,
    protects: Vec<Protected>,
    topology: Topology,
    changes: Vec<Change>,
    steps: Vec<Step>,
}

/// Begins a story that protects these: `story!(P1, I7).writes("w", 3)`.
macro_rules! story {
    ($($protected:ident),+) => {{
        fn here() {}
        let test = std::any::type_name_of_val(&here);
        $crate::story::Story::new(test, vec![$($crate::story::$protected),+])
    }};
}
pub(crate) use story;

/// How far the telling has come.
#[derive(Default)]
struct Told {
    lines: Vec<(Duration, String)>,
    hash: u64,
}

fn lock(told: &Mutex<Told>) -> MutexGuard<'_, Told> {
    told.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Story {
    /// A story of a test; use [`story!`].
    pub fn new(test: &'static str, protects: Vec<Protected>) -> Self {
        let test = test.trim_end_matches("::here").trim_end_matches("::{{closure}}");
        let test = test.split_once("::").map_or(test, |(_, path)| path);
        let topology = Topology::Cluster;
        Self { test, protects, topology, changes: Vec::new(), steps: Vec::new() }
    }

    /// One node with every role, one copy of everything.
    pub fn standalone(mut self) -> Self {
        self.topology = Topology::Standalone;
        self
    }

    /// So many bookies; three if not said.
    pub fn bookies(self, count: usize) -> Self {
        self.plan(move |plan| plan.shape.bookies = count)
    }

    /// So many brokers; one if not said.
    pub fn brokers(self, count: usize) -> Self {
        self.plan(move |plan| plan.shape.brokers = count)
    }

    /// So many metadata nodes; one if not said.
    pub fn metadata_nodes(self, count: usize) -> Self {
        self.plan(move |plan| plan.shape.metadata = count)
    }

    /// Ensemble, write quorum, ack quorum; 3, 3, 2 if not said.
    pub fn quorum(self, ensemble: u32, write: u32, ack: u32) -> Self {
        self.plan(move |plan| plan.shape.quorum = Quorum { ensemble, write, ack })
    }

    /// A topic's ledgers are rolled after so many entries.
    pub fn entries_a_ledger(self, count: u64) -> Self {
        self.plan(move |plan| plan.ledger_entries_max = count)
    }

    /// A bookie off the list for so many seconds is lost, and its copies are made anew elsewhere; never, if not
    /// said.
    pub fn lost_after(self, seconds: u64) -> Self {
        self.plan(move |plan| plan.lost_bookie_grace = Duration::from_secs(seconds))
    }

    /// What every subscription has consumed is deleted; otherwise the story keeps all.
    pub fn trims(self) -> Self {
        self.plan(|plan| plan.trims = true)
    }

    /// Any other setting of the cluster.
    pub fn plan(mut self, change: impl FnOnce(&mut Plan) + Send + 'static) -> Self {
        self.changes.push(Box::new(change));
        self
    }

    /// A step that no word is for.
    pub fn step(
        mut self,
        told: impl Into<String>,
        act: impl AsyncFnOnce(&mut Play) -> Outcome + Send + 'static,
    ) -> Self {
        let act: Act = Box::new(move |play| Box::pin(act(play)));
        self.steps.push(Step { told: told.into(), act });
        self
    }

    /// Tells the story and, after its last step, demands what has to hold after any: see `judge`.
    pub fn tell(self) {
        self.judged().run();
    }

    /// The hash over all its events.
    fn run(self) -> u64 {
        let Self { test, protects, topology, changes, steps } = self;
        let seed = std::env::var(SEED).ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
        let told: Arc<Mutex<Told>> = Arc::default();
        let telling = Arc::clone(&told);
        let count = steps.len();
        let run = std::thread::spawn(move || {
            let mut plan = Plan { faults: Vec::new(), ..Plan::draw(1, topology) };
            plan.lost_bookie_grace = Duration::from_secs(36_000);
            plan.trims = false;
            for change in changes {
                change(&mut plan);
            }
            crate::support::run(seed, plan, move |stage| async move {
                let mut play = Play::new(stage);
                for step in steps {
                    lock(&telling).lines.push((play.stage.world.now(), step.told));
                    play.look_around();
                    if let Err(why) = (step.act)(&mut play).await {
                        panic!("{why}");
                    }
                }
                lock(&telling).hash = play.stage.world.event_hash();
            });
        });
        match run.join() {
            Ok(()) => lock(&told).hash,
            Err(panic) => {
                let why = text_of(panic.as_ref());
                panic!("{}", complaint(test, &protects, seed, &lock(&told).lines, count, &why))
            }
        }
    }
}

fn text_of(panic: &(dyn Any + Send)) -> String {
    match (panic.downcast_ref::<String>(), panic.downcast_ref::<&str>()) {
        (Some(text), _) => text.clone(),
        (_, Some(text)) => (*text).to_owned(),
        _ => "a panic without words".to_owned(),
    }
}

/// What a failed story says: its name, what it protects, the steps so far, and how to see it again.
fn complaint(
    test: &str,
    protects: &[Protected],
    seed: u64,
    lines: &[(Duration, String)],
    count: usize,
    why: &str,
) -> String {
    let name = test.rsplit("::").next().unwrap_or(test).replace('_', " ");
    let mut text = format!("the scenario \"{name}\" failed\n");
    for protected in protects {
        let _ = writeln!(text, "it protects {}: {}", protected.id, protected.says);
    }
    for (number, (at, told)) in (1..).zip(lines) {
        let _ = writeln!(text, "  {number:>2}. at {:>8.3} s  {told}", at.as_secs_f64());
    }
    let step = lines.len();
    let _ = writeln!(text, "step {step} of {count} failed: {why}");
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let mutant = set("SEAWALL_MUTANT").map(|name| format!("SEAWALL_MUTANT={name} "));
    let seed = if seed == 1 { String::new() } else { format!("{SEED}={seed} ") };
    let _ = write!(
        text,
        "replay: {}{seed}cargo test --features mutants --test sim-tests {test} -- --exact",
        mutant.unwrap_or_default()
    );
    text
}

mod tests {
    use super::*;

    #[test]
    fn a_failed_story_says_what_happened_and_how_to_see_it_again() {
        let failing = || {
            story!(P1, I7)
                .step("nothing happens", async |_| Ok(()))
                .step("the impossible", async |_| Err("it cannot be".to_owned()))
                .step("what nobody comes to", async |_| Ok(()))
                .tell();
        };
        let panic = std::panic::catch_unwind(failing).unwrap_err();
        let text = text_of(panic.as_ref());
        for part in [
            "\"a failed story says what happened and how to see it again\" failed",
            "it protects I7: a fence stays",
            "1. at",
            "2. at",
            "the impossible",
            "step 2 of 4 failed: it cannot be",
            "--test sim-tests story::tests::a_failed_story_says_what_happened",
        ] {
            assert!(text.contains(part), "no {part:?} in:\n{text}");
        }
        assert!(!text.contains("what nobody comes to"), "{text}");
    }

    #[test]
    fn a_story_told_twice_is_the_same_story() {
        let hash = || story!(P1).writer("w").writes("w", 3).power_loss("bookies").judged().run();
        assert_eq!(hash(), hash());
    }
}
