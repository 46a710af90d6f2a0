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

/// A member whose log has these terms from index 2 on, and which leads the term after them.
fn leading(terms: &[Term]) -> Machine {
    let mut machine = following(terms);
    machine.step(Event::ElectionTimeout);
    let term = machine.term();
    hear(&mut machine, 2, term, Body::VoteAnswer { granted: true });
    machine
}

/// Behind which entry of its own a leader continues for a follower that refused this.
fn continued_behind(machine: &mut Machine, result: AppendResult) -> Vec<(u64, Term)> {
    let term = machine.term();
    let answer = Body::AppendAnswer(AppendAnswer { round: 0, result });
    let previous = |effect: &Effect| match effect {
        Effect::Send { to, message: Message { body: Body::Append(append), .. } } => {
            assert_eq!(*to, member(2));
            Some((append.previous_index, append.previous_term))
        }
        _ => None,
    };
    hear(machine, 2, term, answer).iter().filter_map(previous).collect()
}

/// Entry by entry it would take a message for each entry that a follower took from a leader nobody else heard.
#[test]
fn a_leader_steps_back_over_whole_terms() {
    let back = |hint_index, hint_term| {
        let refused = AppendResult::Conflict { refused: 5, hint_index, hint_term };
        continued_behind(&mut leading(&[2, 2, 4, 4]), refused)
    };
    assert_eq!(back(3, Some(3)), [(2, 2)], "none of that term is the leader's");
    assert_eq!(back(2, Some(2)), [(3, 2)], "the leader's last of that term may be the follower's");
    assert_eq!(back(4, None), [(3, 2)], "the follower's log ends before");
    assert_eq!(back(9, None), [(4, 4)], "what was refused is not sent again");
    let late = AppendResult::Conflict { refused: 4, hint_index: 2, hint_term: Some(3) };
    assert_eq!(continued_behind(&mut leading(&[2, 2, 4, 4]), late), [], "asked long ago");
}

/// Of two answers the older may come last.
#[test]
fn what_a_follower_took_is_not_refused_afterwards() {
    let mut machine = leading(&[2, 2, 4, 4]);
    let matched = AppendAnswer { round: 0, result: AppendResult::Matched(6) };
    hear(&mut machine, 2, 5, Body::AppendAnswer(matched));
    let conflict =
        |refused, hint_index, hint_term| AppendResult::Conflict { refused, hint_index, hint_term };
    assert_eq!(continued_behind(&mut machine, conflict(6, 2, Some(2))), []);
    assert_eq!(continued_behind(&mut machine, conflict(5, 2, Some(2))), []);
    machine.step(propose(Ticket(1)));
    assert_eq!(continued_behind(&mut machine, conflict(7, 7, None)), [(6, 5)]);
}

/// And the follower tells where its own entries of that term begin, as far as they may still be replaced.
#[test]
fn a_follower_that_refuses_tells_where_its_term_begins() {
    let refuse = |previous: (u64, Term)| {
        let mut machine = leading(&[2, 3, 3, 3]);
        let effects = hear(&mut machine, 2, 9, append(previous, Vec::new()));
        let answers = effects.into_iter().filter_map(|effect| match effect {
            Effect::Send { message: Message { body: Body::AppendAnswer(answer), .. }, .. } => {
                Some(answer.result)
            }
            _ => None,
        });
        answers.collect::<Vec<_>>()
    };
    let refused = |refused, hint_index, hint_term| {
        vec![AppendResult::Conflict { refused, hint_index, hint_term }]
    };
    assert_eq!(refuse((5, 8)), refused(5, 3, Some(3)));
    assert_eq!(refuse((4, 8)), refused(4, 3, Some(3)));
    assert_eq!(refuse((2, 8)), refused(2, 2, Some(2)));
    assert_eq!(refuse((7, 8)), refused(7, 7, None));
    assert_eq!(refuse((5, 3)), vec![AppendResult::Matched(5)]);
    let mut machine = following(&[1, 1, 1, 1]);
    let mut news =
        Append { previous_index: 5, previous_term: 1, entries: Vec::new(), commit: 3, round: 0 };
    hear(&mut machine, 2, 2, Body::Append(news.clone()));
    assert_eq!(machine.commit(), 3);
    news.previous_term = 2;
    let effects = hear(&mut machine, 2, 2, Body::Append(news));
    let conflict = AppendAnswer { round: 0, result: refused(5, 4, Some(1)).remove(0) };
    let is_answer = |effect: &Effect| match effect {
        Effect::Send { message, .. } => message.body == Body::AppendAnswer(conflict),
        _ => false,
    };
    assert!(effects.iter().any(is_answer), "{effects:?}");
}

/// A follower whose log has these terms from index 2 on, in the term of the last.
fn following(terms: &[Term]) -> Machine {
    following_with(settings(), terms)
}

fn following_with(settings: Settings, terms: &[Term]) -> Machine {
    let mut restored = Restored::founding(membership(&[1, 2, 3], &[]));
    restored.hard_state.term = terms.last().copied().unwrap();
    let entry = |(index, term): (u64, &Term)| Entry { index, term: *term, payload: Payload::Noop };
    restored.entries = (2..).zip(terms).map(entry).collect();
    Machine::restore(member(1), settings, restored)
}

/// Whether a member that asks for this member's vote gets it. What is said is on the disk before it is said.
fn votes(machine: &mut Machine, from: u64, term: Term, last: (u64, Term)) -> bool {
    let (last_index, last_term) = last;
    let before = machine.term();
    let effects = hear(machine, from, term, Body::Vote { last_index, last_term, transfer: false });
    let answers = effects.iter().enumerate().filter_map(|(place, effect)| match effect {
        Effect::Send { to, message: Message { term, body: Body::VoteAnswer { granted } } } => {
            assert_eq!((*to, *term), (member(from), machine.term()));
            Some((place, *granted))
        }
        _ => None,
    });
    let [(place, granted)] = answers.collect::<Vec<_>>()[..] else { panic!("{effects:?}") };
    let is_durable = effects[..place].iter().any(|effect| {
        matches!(effect, Effect::Persist(write)
            if write.hard_state.is_some_and(|state| state.vote == Some(member(from))))
    });
    assert!(is_durable || !granted || before == term, "said before it is on the disk");
    granted
}

#[test]
fn a_vote_is_given_once_a_term() {
    let mut machine = following(&[2, 3]);
    assert!(votes(&mut machine, 2, 4, (3, 3)));
    assert!(votes(&mut machine, 2, 4, (3, 3)), "asked again");
    assert!(!votes(&mut machine, 3, 4, (9, 3)), "another has it");
    assert!(!votes(&mut machine, 3, 3, (9, 3)), "of a term that is over");
    assert!(votes(&mut machine, 3, 5, (9, 3)));
    hear(&mut machine, 2, 6, append((3, 3), Vec::new()));
    assert!(!votes(&mut machine, 3, 6, (9, 9)), "this term has its leader");
}

#[test]
fn a_log_that_is_behind_gets_no_vote() {
    for (last, is_enough) in
        [((3, 3), true), ((4, 3), true), ((2, 4), true), ((2, 3), false), ((9, 2), false)]
    {
        assert_eq!(votes(&mut following(&[2, 3]), 2, 4, last), is_enough, "{last:?}");
    }
}

/// A member that could not win, or that nobody has to replace, gets no yes to its question whether it could.
#[test]
fn nobody_is_helped_to_depose_a_leader_that_is_heard() {
    let says_yes = |machine: &mut Machine, term, (last_index, last_term)| {
        let effects = hear(machine, 2, term, Body::PreVote { last_index, last_term });
        let [Effect::Send { to, message }] = &effects[..] else { panic!("{effects:?}") };
        let Body::PreVoteAnswer { granted } = message.body else { panic!("{message:?}") };
        assert_eq!((*to, machine.term()), (member(2), 3), "nothing is promised");
        assert_eq!(message.term, if granted { term } else { 3 });
        granted
    };
    let mut machine = following_with(Settings::default(), &[2, 3]);
    assert!(says_yes(&mut machine, 4, (3, 3)));
    assert!(!says_yes(&mut machine, 3, (3, 3)), "of a term that is there already");
    assert!(!says_yes(&mut machine, 4, (2, 3)), "its log is behind");
    hear(&mut machine, 3, 3, append((3, 3), Vec::new()));
    assert!(!says_yes(&mut machine, 4, (3, 3)), "a leader is heard");
    machine.step(Event::LeaderSilent);
    assert!(says_yes(&mut machine, 4, (3, 3)));
}

/// Whoever leads or stands for election in a term that is over hears which one it is now, and nothing else comes of it.
#[test]
fn who_acts_in_an_older_term_is_told_of_the_newer() {
    let mut machine = leading(&[2, 3, 3, 3]);
    let before = machine.log().clone();
    let effects = hear(&mut machine, 2, 3, append((2, 2), Vec::new()));
    let [Effect::Send { to, message }] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!((*to, message.term), (member(2), 4));
    assert!(matches!(&message.body, Body::AppendAnswer(_)));
    assert!(!votes(&mut machine, 3, 3, (9, 9)));
    assert_eq!((machine.term(), machine.log()), (4, &before));
    assert_eq!(machine.leader(), Some(member(1)));
}
