//! Single situations of consensus that random storms come to too rarely: answers and writes that are late by terms.

use std::sync::Arc;

use seawall::metadata::consensus::{
    Append, AppendAnswer, AppendResult, Body, Effect, Entry, Event, Machine, Message, Payload,
    Restored, Settings, Term, Ticket,
};

use crate::consensus_world::{Flying, World, member, membership, propose};

/// Elections are asked for one by one: nobody is asked before.
fn settings() -> Settings {
    Settings { pre_vote: false, ..Settings::default() }
}

/// Everything between these two arrives, and what follows from it between them.
fn exchange(world: &mut World, one: u64, other: u64) {
    let ends = [member(one), member(other)];
    let between = |flying: &Flying| ends.contains(&flying.from) && ends.contains(&flying.to);
    while let Some(flying) = world.network.keys().find(|flying| between(flying)).cloned() {
        deliver(world, &flying);
    }
}

fn deliver(world: &mut World, flying: &Arc<Flying>) {
    world.take(flying);
    let event = Event::Message { from: flying.from, message: flying.message.clone() };
    world.step(flying.to, event, None).unwrap();
}

/// What one has sent these arrives, and nothing of what follows from it.
fn arrive(world: &mut World, from: u64, to: &[u64]) {
    let sent: Vec<Arc<Flying>> = world.network.keys().cloned().collect();
    for flying in sent {
        if flying.from == member(from) && to.iter().any(|to| flying.to == member(*to)) {
            deliver(world, &flying);
        }
    }
}

/// Begins the next term with a leader whom these vote for. Nothing of his reaches anybody yet but what they were asked.
fn elect(world: &mut World, leader: u64, voters: [u64; 2]) {
    let newest = world.nodes.values().map(|node| node.machine.term()).max();
    while world.machine(member(leader)).term() <= newest.unwrap_or(0) {
        world.network.clear();
        world.step(member(leader), Event::ElectionTimeout, None).unwrap();
    }
    let wanted: Vec<Arc<Flying>> = world.network.keys().cloned().collect();
    world.network.clear();
    for flying in wanted {
        if voters.map(member).contains(&flying.to) {
            deliver(world, &flying);
        }
    }
    let answers: Vec<Arc<Flying>> = world.network.keys().cloned().collect();
    world.network.clear();
    for answer in answers {
        deliver(world, &answer);
    }
    assert!(world.leaders().contains(&member(leader)), "{leader} was not elected");
}

/// Member 2 says what it has taken from leader 1. Before that is heard, another leader replaces it; and member 1 leads
/// again, with other entries at the same places.
#[test]
fn an_answer_of_a_former_term_does_not_count() {
    let mut world = World::new(5, &[1, 2, 3, 4, 5], settings());
    world.prunes = false;
    elect(&mut world, 1, [4, 5]);
    for ticket in 1..=3 {
        world.step(member(1), propose(Ticket(ticket)), None).unwrap();
        exchange(&mut world, 1, 2);
    }
    assert_eq!(world.machine(member(2)).log().last_index(), 5);
    world.step(member(1), propose(Ticket(4)), None).unwrap();
    arrive(&mut world, 1, &[2]);
    let late = world.network.keys().find(|flying| flying.from == member(2)).cloned().unwrap();
    let last = AppendAnswer { round: 0, result: AppendResult::Matched(6) };
    assert_eq!(late.message.body, Body::AppendAnswer(last));
    elect(&mut world, 3, [4, 5]);
    arrive(&mut world, 3, &[1, 2]);
    elect(&mut world, 1, [4, 5]);
    for ticket in 5..=7 {
        world.step(member(1), propose(Ticket(ticket)), None).unwrap();
    }
    exchange(&mut world, 1, 4);
    assert_eq!(world.machine(member(4)).log().last_index(), 6);
    deliver(&mut world, &late);
    assert_eq!(world.machine(member(1)).commit(), 1, "what two of five have is committed");
}

/// A member of three that nobody else is behind.
fn alone() -> Machine {
    let founding = Restored::founding(membership(&[1, 2, 3], &[]));
    Machine::restore(member(1), settings(), founding)
}

fn hear(machine: &mut Machine, from: u64, term: Term, body: Body) -> Vec<Effect> {
    machine.step(Event::Message { from: member(from), message: Message { term, body } })
}

fn append(previous: (u64, Term), entries: Vec<Entry>) -> Body {
    let (previous_index, previous_term) = previous;
    Body::Append(Append { previous_index, previous_term, entries, commit: 1, round: 0 })
}

fn applies(effects: &[Effect]) -> bool {
    effects.iter().any(|effect| matches!(effect, Effect::Apply(_)))
}

/// A write ends when another entry has taken the place of what was written.
#[test]
fn the_end_of_a_write_that_was_replaced_does_not_count() {
    let mut machine = alone();
    machine.step(Event::ElectionTimeout);
    hear(&mut machine, 2, 2, Body::VoteAnswer { granted: true });
    machine.step(propose(Ticket(1)));
    assert_eq!((machine.term(), machine.log().last_index()), (2, 3));
    let other = Entry { index: 2, term: 3, payload: Payload::Noop };
    hear(&mut machine, 2, 3, append((1, 1), vec![other]));
    machine.step(Event::ElectionTimeout);
    hear(&mut machine, 3, 4, Body::VoteAnswer { granted: true });
    assert_eq!((machine.log().last_index(), machine.log().last_term()), (3, 4));
    machine.step(Event::Persisted { index: 3, term: 2 });
    let matched = AppendAnswer { round: 0, result: AppendResult::Matched(3) };
    let effects = hear(&mut machine, 2, 4, Body::AppendAnswer(matched));
    assert!(!applies(&effects), "one of three has written it");
    assert!(applies(&machine.step(Event::Persisted { index: 3, term: 4 })));
}

/// Who is far behind is told that the leader is there by each append, also by those that do not fit: or it would stand
/// for election while the leader looks for where their logs agree.
#[test]
fn an_append_that_does_not_fit_holds_off_an_election() {
    let mut machine = alone();
    let effects = hear(&mut machine, 2, 2, append((9, 2), Vec::new()));
    let is_refused = |effect: &Effect| {
        matches!(effect, Effect::Send { message, .. } if matches!(&message.body,
            Body::AppendAnswer(answer) if matches!(answer.result, AppendResult::Conflict { .. })))
    };
    assert!(effects.iter().any(is_refused));
    assert!(effects.contains(&Effect::RestartElectionTimer));
}
