//! Consensus' nouns as messages of `proto/seawall/consensus.proto`, and back. Bytes that say something this
//! version does not know are refused, never guessed at.

use crate::metadata::consensus::{
    Append, AppendAnswer, AppendResult, Body, Entry, HardState, MemberId, Membership, Message,
    Payload, SnapshotMark, SnapshotPart, Write,
};
use crate::rpc::generated::consensus as wire;

/// Why bytes could not be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("consensus: {0} of an unknown kind")]
pub(super) struct Unknown(&'static str);

pub(super) fn membership_to_wire(membership: &Membership) -> wire::Membership {
    let ids = |members: &std::collections::BTreeSet<MemberId>| {
        members.iter().map(|member| member.0).collect()
    };
    wire::Membership {
        voters: ids(&membership.voters),
        outgoing: ids(&membership.outgoing),
        learners: ids(&membership.learners),
        addresses: membership
            .addresses
            .iter()
            .map(|(member, address)| wire::Address { member: member.0, address: address.clone() })
            .collect(),
    }
}

pub(super) fn membership_from_wire(membership: wire::Membership) -> Membership {
    let ids = |members: Vec<u64>| members.into_iter().map(MemberId).collect();
    Membership {
        voters: ids(membership.voters),
        outgoing: ids(membership.outgoing),
        learners: ids(membership.learners),
        addresses: membership
            .addresses
            .into_iter()
            .map(|address| (MemberId(address.member), address.address))
            .collect(),
    }
}

fn entry_to_wire(entry: &Entry) -> wire::Entry {
    use wire::entry::Payload as Kind;
    let payload = match &entry.payload {
        Payload::Noop => Kind::Noop(true),
        Payload::Command(command) => Kind::Command(command.clone()),
        Payload::Membership(membership) => Kind::Membership(membership_to_wire(membership)),
    };
    wire::Entry { index: entry.index, term: entry.term, payload: Some(payload) }
}

fn entry_from_wire(entry: wire::Entry) -> Result<Entry, Unknown> {
    use wire::entry::Payload as Kind;
    let payload = match entry.payload.ok_or(Unknown("an entry"))? {
        Kind::Noop(_) => Payload::Noop,
        // A copy of its own: a slice would keep the whole message's buffer for as long as the log.
        Kind::Command(command) => Payload::Command(bytes::Bytes::copy_from_slice(&command)),
        Kind::Membership(membership) => Payload::Membership(membership_from_wire(membership)),
    };
    Ok(Entry { index: entry.index, term: entry.term, payload })
}

fn entries_from_wire(entries: Vec<wire::Entry>) -> Result<Vec<Entry>, Unknown> {
    entries.into_iter().map(entry_from_wire).collect()
}

pub(super) fn write_to_wire(write: &Write, complete: bool) -> wire::LogWrite {
    wire::LogWrite {
        complete,
        hard_state: write.hard_state.map(|hard_state| wire::HardState {
            term: hard_state.term,
            vote: hard_state.vote.map_or(0, |member| member.0),
        }),
        entries: write.entries.iter().map(entry_to_wire).collect(),
    }
}

pub(super) fn write_from_wire(write: wire::LogWrite) -> Result<(Write, bool), Unknown> {
    let hard_state = write.hard_state.map(|hard_state| HardState {
        term: hard_state.term,
        vote: (hard_state.vote != 0).then_some(MemberId(hard_state.vote)),
    });
    Ok((Write { hard_state, entries: entries_from_wire(write.entries)? }, write.complete))
}

pub(super) fn mark_to_wire(mark: &SnapshotMark) -> wire::SnapshotMark {
    wire::SnapshotMark {
        index: mark.index,
        term: mark.term,
        membership: Some(membership_to_wire(&mark.membership)),
    }
}

pub(super) fn mark_from_wire(mark: Option<wire::SnapshotMark>) -> Result<SnapshotMark, Unknown> {
    let mark = mark.ok_or(Unknown("a snapshot"))?;
    let membership = mark.membership.ok_or(Unknown("a snapshot"))?;
    Ok(SnapshotMark {
        index: mark.index,
        term: mark.term,
        membership: membership_from_wire(membership),
    })
}

pub(super) fn message_to_wire(from: MemberId, to: MemberId, message: &Message) -> wire::Envelope {
    use wire::envelope::Body as Kind;
    let body = match &message.body {
        Body::PreVote { last_index, last_term } => Kind::PreVote(wire::Vote {
            last_index: *last_index,
            last_term: *last_term,
            transfer: false,
        }),
        Body::PreVoteAnswer { granted } => Kind::PreVoteAnswer(*granted),
        Body::Vote { last_index, last_term, transfer } => Kind::Vote(wire::Vote {
            last_index: *last_index,
            last_term: *last_term,
            transfer: *transfer,
        }),
        Body::VoteAnswer { granted } => Kind::VoteAnswer(*granted),
        Body::Append(append) => Kind::Append(wire::Append {
            previous_index: append.previous_index,
            previous_term: append.previous_term,
            entries: append.entries.iter().map(entry_to_wire).collect(),
            commit: append.commit,
            round: append.round,
        }),
        Body::AppendAnswer(answer) => Kind::AppendAnswer(answer_to_wire(answer)),
        Body::Snapshot(part) => Kind::Snapshot(wire::SnapshotPart {
            mark: Some(mark_to_wire(&part.mark)),
            offset: part.offset,
            data: part.data.clone(),
            last: part.last,
        }),
        Body::SnapshotAnswer { index, next, done } => {
            Kind::SnapshotAnswer(wire::SnapshotAnswer { index: *index, next: *next, done: *done })
        }
        Body::TimeoutNow => Kind::TimeoutNow(true),
    };
    // Whoever sends it knows where it listens itself.
    let from_address = String::new();
    wire::Envelope { from: from.0, to: to.0, term: message.term, body: Some(body), from_address }
}

fn answer_to_wire(answer: &AppendAnswer) -> wire::AppendAnswer {
    use wire::append_answer::{Conflict, Result as Kind};
    let result = match answer.result {
        AppendResult::Matched(index) => Kind::Matched(index),
        AppendResult::Conflict { refused, hint_index, hint_term } => {
            Kind::Conflict(Conflict { refused, hint_index, hint_term })
        }
    };
    wire::AppendAnswer { round: answer.round, result: Some(result) }
}

pub(super) fn message_from_wire(envelope: wire::Envelope) -> Result<Message, Unknown> {
    use wire::envelope::Body as Kind;
    let body = match envelope.body.ok_or(Unknown("a message"))? {
        Kind::PreVote(vote) => {
            Body::PreVote { last_index: vote.last_index, last_term: vote.last_term }
        }
        Kind::PreVoteAnswer(granted) => Body::PreVoteAnswer { granted },
        Kind::Vote(vote) => Body::Vote {
            last_index: vote.last_index,
            last_term: vote.last_term,
            transfer: vote.transfer,
        },
        Kind::VoteAnswer(granted) => Body::VoteAnswer { granted },
        Kind::Append(append) => Body::Append(append_from_wire(append)?),
        Kind::AppendAnswer(answer) => Body::AppendAnswer(answer_from_wire(answer)?),
        Kind::Snapshot(part) => Body::Snapshot(SnapshotPart {
            mark: mark_from_wire(part.mark)?,
            offset: part.offset,
            data: part.data,
            last: part.last,
        }),
        Kind::SnapshotAnswer(answer) => {
            Body::SnapshotAnswer { index: answer.index, next: answer.next, done: answer.done }
        }
        Kind::TimeoutNow(_) => Body::TimeoutNow,
    };
    Ok(Message { term: envelope.term, body })
}

/// Entries with a gap would break the machine's log, so they are refused here.
fn append_from_wire(append: wire::Append) -> Result<Append, Unknown> {
    let entries = entries_from_wire(append.entries)?;
    let follows = (append.previous_index.saturating_add(1)..)
        .zip(&entries)
        .all(|(index, entry)| entry.index == index);
    if !follows {
        return Err(Unknown("entries"));
    }
    Ok(Append {
        previous_index: append.previous_index,
        previous_term: append.previous_term,
        entries,
        commit: append.commit,
        round: append.round,
    })
}

fn answer_from_wire(answer: wire::AppendAnswer) -> Result<AppendAnswer, Unknown> {
    use wire::append_answer::Result as Kind;
    let result = match answer.result.ok_or(Unknown("an answer"))? {
        Kind::Matched(index) => AppendResult::Matched(index),
        Kind::Conflict(conflict) => AppendResult::Conflict {
            refused: conflict.refused,
            hint_index: conflict.hint_index,
            hint_term: conflict.hint_term,
        },
    };
    Ok(AppendAnswer { round: answer.round, result })
}
