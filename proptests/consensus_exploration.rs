//! Three members of the metadata group in every order of deliveries, losses, time-outs, crashes and
//! restarts within small bounds. A message that is never delivered is a lost one, so each state reached
//! stands for all losses too. States seen before are not looked at again; their number is printed.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use seawall::metadata::consensus::Settings;

use crate::consensus_world::{Action, Budget, Violation, World, membership};

struct Frame {
    world: World,
    budget: Budget,
    actions: Vec<Action>,
}

struct Explored {
    states: usize,
    steps: u64,
    deepest: usize,
}

struct Found {
    violation: Violation,
    path: Vec<Action>,
}

/// Visits every state that can be reached.
fn explore(world: World, budget: Budget) -> Result<Explored, Box<Found>> {
    let mut seen = BTreeSet::from([world.fingerprint(&budget)]);
    let actions = world.actions(&budget);
    let mut path: Vec<Action> = Vec::new();
    let mut stack = vec![Frame { world, budget, actions }];
    let (mut steps, mut deepest) = (0, 0);
    while let Some(frame) = stack.last_mut() {
        let Some(action) = frame.actions.pop() else {
            stack.pop();
            path.pop();
            continue;
        };
        let (mut world, mut budget) = (frame.world.clone(), frame.budget.clone());
        let result = world.act(&action, &mut budget);
        steps += 1;
        path.push(action.clone());
        let effects = match result {
            Ok(effects) => effects,
            Err(violation) => return Err(Box::new(Found { violation, path })),
        };
        let is_whole = !matches!(
            action,
            Action::Deliver { crash: Some(_), .. } | Action::Event { crash: Some(_), .. }
        );
        if is_whole && frame.budget.torn > 0 {
            let torn = (1..effects).filter_map(|after| action.torn(after));
            frame.actions.extend(torn);
        }
        if !seen.insert(world.fingerprint(&budget)) {
            path.pop();
            continue;
        }
        deepest = deepest.max(stack.len());
        let actions = world.actions(&budget);
        stack.push(Frame { world, budget, actions });
    }
    Ok(Explored { states: seen.len(), steps, deepest })
}

fn free() -> Settings {
    Settings { pre_vote: false, promotion_lag: u64::MAX, ..Settings::default() }
}

/// The bounds of one exploration.
struct Bounds {
    name: &'static str,
    settings: Settings,
    voters: &'static [u64],
    budget: Budget,
}

const THREE: &[u64] = &[1, 2, 3];

fn bounds(name: &'static str, budget: Budget) -> Bounds {
    Bounds { name, settings: free(), voters: THREE, budget }
}

/// Small enough for a test run, each with another set of things that happen.
fn small() -> Vec<Bounds> {
    let once = Budget { elections: 1, ..Budget::default() };
    let twice = Budget { elections: 2, ..Budget::default() };
    vec![
        bounds("two elections", twice.clone()),
        bounds(
            "an election, a proposal, a crash in the middle of it",
            Budget { proposals: 1, torn: 1, ..once.clone() },
        ),
        bounds("an election, a read", Budget { reads: 1, ..once.clone() }),
        bounds(
            "an election, a crash, a repeated message",
            Budget { crashes: 1, duplicates: 1, ..once.clone() },
        ),
        bounds("an election, a snapshot", Budget { snapshots: 1, ..once.clone() }),
        bounds(
            "an election, a change to one member",
            Budget { changes: vec![membership(&[1], &[])], ..once.clone() },
        ),
        Bounds {
            settings: Settings { pre_vote: true, ..free() },
            ..bounds("an election with pre-vote, a crash", Budget { crashes: 1, ..once })
        },
    ]
}

/// Minutes, and gigabytes of memory.
fn large() -> Vec<Bounds> {
    let once = Budget { elections: 1, ..Budget::default() };
    let twice = Budget { elections: 2, ..Budget::default() };
    vec![
        bounds("two elections, a crash", Budget { crashes: 1, ..twice.clone() }),
        bounds("two elections, a torn write", Budget { torn: 1, ..twice.clone() }),
        bounds("two elections, a proposal", Budget { proposals: 1, ..twice.clone() }),
        bounds("an election, a proposal, a read", Budget { proposals: 1, reads: 1, ..once }),
        bounds("two elections, a repeated message", Budget { duplicates: 1, ..twice }),
    ]
}

/// Bounds that planted bugs are hunted in: large, but the search ends with the first thing it finds.
#[cfg(feature = "mutants")]
pub fn hunt() -> Option<String> {
    let twice = Budget { elections: 2, ..Budget::default() };
    let hunts = [
        Budget { elections: 1, proposals: 1, ..Budget::default() },
        twice.clone(),
        Budget { torn: 1, ..twice.clone() },
        Budget { proposals: 1, reads: 1, ..twice },
    ];
    hunts.into_iter().find_map(|budget| {
        let found = explore(World::new(3, THREE, free()), budget).err()?;
        Some(format!("in {} steps: {}", found.path.len(), found.violation.0))
    })
}

fn run(bounds: Vec<Bounds>) {
    let mut report = String::new();
    let mut states = 0;
    for Bounds { name, settings, voters, budget } in bounds {
        let world = World::new(3, voters, settings);
        match explore(world, budget) {
            Ok(explored) => {
                states += explored.states;
                let Explored { states, steps, deepest } = explored;
                println!("{name}: {states} states, {steps} steps, up to {deepest} in a row");
            }
            Err(found) => {
                for action in &found.path {
                    let _ = writeln!(report, "  {action:?}");
                }
                panic!("{name}: {}\n{report}", found.violation.0);
            }
        }
    }
    println!("explored {states} states of three members, no promise broken");
}

#[test]
fn three_members_in_every_order() {
    run(small());
}

#[test]
#[ignore = "minutes"]
fn three_members_in_every_order_within_larger_bounds() {
    run(large());
}
