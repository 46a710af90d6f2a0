//! Groups of three and five members under random scripts: losses, repetitions, crashes in the middle of
//! effects, snapshots, membership changes, handovers. At the end the storm stops and the group must agree.

use std::sync::Arc;

use proptest::prelude::*;
use seawall::metadata::consensus::{Event, MemberId, Role, Settings, Ticket};

use crate::consensus_world::{Flying, Violation, World, member, membership, propose};

/// One random step: what, and two numbers that say which.
type Step = (u8, u16, u16);

/// A storm with a wrong promise in it stops here.
pub fn storm(nodes: u64, founders: &[u64], script: &[Step]) -> Result<World, Violation> {
    let settings = Settings {
        append_entries: 2,
        inflight: 2,
        proposals: 4,
        reads: 4,
        promotion_lag: 3,
        ..Settings::default()
    };
    let mut world = World::new(nodes, founders, settings);
    world.prunes = false;
    let mut tickets = 0;
    for (kind, first, second) in script {
        let id = member(u64::from(*first) % nodes + 1);
        tickets += 1;
        let ticket = Ticket(tickets);
        match kind % 100 {
            0..40 => deliver(&mut world, *first, None, false)?,
            40..44 => deliver(&mut world, *first, None, true)?,
            44..48 => deliver(&mut world, *first, Some(usize::from(*second % 6) + 1), false)?,
            48..52 => {
                if let Some(flying) = pick(&world, *first) {
                    world.take(&flying);
                }
            }
            52..54 => {
                for _ in 0..second % 40 {
                    deliver(&mut world, first.wrapping_mul(*second), None, false)?;
                }
            }
            54..60 => {
                // Nobody hears the old leader any more.
                for node in 1..=nodes {
                    if member(node) != id && second >> node & 1 == 1 {
                        world.step(member(node), Event::LeaderSilent, None)?;
                    }
                }
                world.step(id, Event::ElectionTimeout, None)?;
            }
            60..62 => {
                let after = usize::from(*second % 4) + 1;
                world.step(id, Event::ElectionTimeout, Some(after)).map(|_| ())?;
            }
            62..68 => world.step(id, Event::Heartbeat, None).map(drop)?,
            68..70 => world.step(id, Event::QuorumCheck, None).map(drop)?,
            70..78 => at_leader(&mut world, *first, |_| propose(ticket))?,
            78..82 => at_leader(&mut world, *first, |_| Event::Read { ticket })?,
            82..86 => world.crash(id),
            86..91 => world.snapshot(id, u64::from(*second % 3))?,
            91..97 => {
                let bits = |shift: u16| -> Vec<u64> {
                    (1..=nodes).filter(|node| second >> (shift + *node as u16) & 1 == 1).collect()
                };
                let voters = bits(0);
                let learners: Vec<u64> =
                    bits(6).into_iter().filter(|node| !voters.contains(node)).collect();
                let wanted = membership(&voters, &learners);
                at_leader(&mut world, *first, |_| Event::Change {
                    ticket,
                    membership: wanted.clone(),
                })?;
            }
            97..98 => {
                let to = member(u64::from(*second) % nodes + 1);
                at_leader(&mut world, *first, |_| Event::Transfer { to })?;
            }
            _ => {
                let lost = member(u64::from(*second) % nodes + 1);
                world.step(id, Event::Unreachable { member: lost }, None).map(drop)?;
            }
        }
    }
    Ok(world)
}

fn pick(world: &World, number: u16) -> Option<Arc<Flying>> {
    let count = world.network.len().max(1);
    world.network.keys().nth(usize::from(number) % count).cloned()
}

fn deliver(
    world: &mut World,
    number: u16,
    crash: Option<usize>,
    again: bool,
) -> Result<(), Violation> {
    let Some(flying) = pick(world, number) else { return Ok(()) };
    if !again {
        world.take(&flying);
    }
    let event = Event::Message { from: flying.from, message: flying.message.clone() };
    world.step(flying.to, event, crash).map(|_| ())
}

fn at_leader(
    world: &mut World,
    number: u16,
    event: impl Fn(MemberId) -> Event,
) -> Result<(), Violation> {
    let leaders = world.leaders();
    let Some(id) = leaders.get(usize::from(number) % leaders.len().max(1)) else { return Ok(()) };
    world.step(*id, event(*id), None).map(|_| ())
}

/// The storm is over: every message arrives, time-outs come one after the other. Somebody must lead, be
/// able to commit, and bring everyone it names to the same state.
pub fn calm(world: &mut World) -> Result<(), Violation> {
    let ids: Vec<MemberId> = world.nodes.keys().copied().collect();
    for round in 0..200 {
        let settled = world.leaders().into_iter().max_by_key(|id| world.machine(*id).term());
        match settled {
            Some(leader) if round % 40 != 39 => {
                world.step(leader, Event::Heartbeat, None).map(drop)?;
                let ticket = Ticket(1_000_000 + round);
                world.step(leader, propose(ticket), None).map(drop)?;
            }
            _ => {
                for id in &ids {
                    world.step(*id, Event::LeaderSilent, None).map(drop)?;
                }
                let id = ids[usize::try_from(round).unwrap_or(0) % ids.len()];
                world.step(id, Event::ElectionTimeout, None).map(drop)?;
            }
        }
        let mut delivered = 0;
        while let Some(flying) = world.network.keys().next().cloned() {
            world.take(&flying);
            let event = Event::Message { from: flying.from, message: flying.message.clone() };
            world.step(flying.to, event, None).map(drop)?;
            delivered += 1;
            if delivered > 20_000 {
                return Err(Violation("the group talks without end".to_owned()));
            }
        }
        if agrees(world) && round > 3 {
            return Ok(());
        }
    }
    Err(Violation(format!("no agreement in calm: {:?}", summary(world))))
}

/// One leader leads everyone of its membership, all is committed and applied everywhere.
fn agrees(world: &World) -> bool {
    let leader = world.leaders().into_iter().max_by_key(|id| world.machine(*id).term());
    let Some(leader) = leader.map(|id| world.machine(id)) else { return false };
    let membership = leader.log().membership();
    leader.commit() == leader.log().last_index()
        && !membership.is_joint()
        && membership.is_voter(leader.id())
        && membership.members().iter().all(|id| {
            let node = &world.nodes[id];
            node.machine.leader() == Some(leader.id()) && node.applied == leader.commit()
        })
}

fn summary(world: &World) -> Vec<String> {
    world
        .nodes
        .values()
        .map(|node| {
            let machine = &node.machine;
            format!(
                "{} {:?} term {} last {} commit {} voters {:?} outgoing {:?}",
                machine.id(),
                machine.role(),
                machine.term(),
                machine.log().last_index(),
                machine.commit(),
                machine.log().membership().voters,
                machine.log().membership().outgoing
            )
        })
        .collect()
}

fn holds(nodes: u64, founders: &[u64], script: &[Step]) -> Result<(), TestCaseError> {
    let mut world =
        storm(nodes, founders, script).map_err(|violation| TestCaseError::fail(violation.0))?;
    calm(&mut world).map_err(|violation| TestCaseError::fail(violation.0))?;
    let leads = world.leaders().iter().any(|id| world.machine(*id).role() == Role::Leader);
    prop_assert!(leads && world.history.committed_entries() > 0);
    Ok(())
}

fn scripts() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(any::<Step>(), 50..600)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn three_members_keep_every_promise(script in scripts()) {
        holds(3, &[1, 2, 3], &script)?;
    }

    #[test]
    fn five_members_that_come_and_go_keep_every_promise(script in scripts()) {
        holds(5, &[1, 2, 3], &script)?;
    }
}

/// Figure 8 of the Raft paper: an entry of an older term is on a quorum, and still another leader that
/// lacks it can be elected. Whoever counted it as committed is wrong.
pub fn figure_eight() -> Result<(), Violation> {
    let settings = Settings { pre_vote: false, append_entries: 1, ..Settings::default() };
    let mut world = World::new(3, &[1, 2, 3], settings);
    // Between these two everything arrives, nothing else does.
    let mut exchange = |one: u64, other: u64, turns: usize| -> Result<(), Violation> {
        world.network.clear();
        world.crash(member(one));
        while !world.leaders().contains(&member(one)) {
            world.step(member(one), Event::ElectionTimeout, None).map(drop)?;
            for _ in 0..4 {
                between(&mut world, one, other)?;
                if world.leaders().contains(&member(one)) {
                    break;
                }
            }
        }
        for _ in 0..turns {
            between(&mut world, one, other)?;
        }
        Ok(())
    };
    exchange(1, 2, 0)?;
    exchange(2, 3, 0)?;
    // The new leader's probe is refused, then its first entry, of an older term, arrives.
    exchange(1, 3, 4)?;
    exchange(2, 3, 0)
}

fn between(world: &mut World, one: u64, other: u64) -> Result<(), Violation> {
    let ends = [member(one), member(other)];
    let next = world
        .network
        .keys()
        .find(|flying| ends.contains(&flying.from) && ends.contains(&flying.to));
    let Some(flying) = next.cloned() else { return Ok(()) };
    world.take(&flying);
    let event = Event::Message { from: flying.from, message: flying.message.clone() };
    world.step(flying.to, event, None).map(drop)
}

#[test]
fn an_older_terms_entry_is_not_committed_by_counting() {
    assert_eq!(figure_eight(), Ok(()));
}
