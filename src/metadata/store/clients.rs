//! Changes that are made once however often they are asked for (Ongaro's dissertation, 6.3). A client whose answer
//! was lost asks again under the same number and is told what came of it; the store keeps the answers a
//! client may still ask for.
//!
//! The client's own number is given by the store, in a change that does no harm when it is made twice. So a number
//! the store does not know was forgotten, and what is asked under it is not done: it may have been done
//! before.

use std::collections::BTreeMap;

use super::limits::{CLIENT_CHANGES_MAX, CLIENTS_MAX};
use super::{Command, Done, RequestId};
use crate::metadata::{Expect, MetadataError, Revision, SessionId};
use crate::rpc::generated::metadata_files as wire;
use crate::{mutant, reached};

type Answer = Result<Done, MetadataError>;

/// A refusal or an answer, without what the question says itself.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Kept {
    Done(Done),
    Mismatch(Option<Revision>),
    SessionExpired,
    Refused(String),
}

/// One client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Client {
    /// Number of the command that used it last.
    used: u64,
    answered_below: u64,
    answers: BTreeMap<u64, Kept>,
}

/// All clients.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Clients {
    last: u64,
    clients: BTreeMap<u64, Client>,
}

impl Clients {
    /// A new client, at the command of this number. At the bound another one is forgotten.
    pub(super) fn open(&mut self, applied: u64) -> u64 {
        if self.clients.len() >= CLIENTS_MAX {
            let idle = self.clients.iter().min_by_key(|(_, client)| client.used);
            if let Some(idle) = idle.map(|(id, _)| *id) {
                reached!("metadata: a client was forgotten");
                self.clients.remove(&idle);
            }
        }
        if !mutant!("P5") || self.last == 0 {
            self.last += 1;
        }
        self.clients.insert(self.last, Client { used: applied, ..Client::default() });
        self.last
    }

    /// The answer to a change that was made before; `None` if it is to be made now.
    pub(super) fn answered(
        &mut self,
        id: RequestId,
        command: &Command,
        applied: u64,
    ) -> Result<Option<Answer>, MetadataError> {
        let client = self.clients.get_mut(&id.client).ok_or(MetadataError::ClientForgotten)?;
        if !mutant!("P4") {
            client.used = applied;
        }
        client.answered_below = client.answered_below.max(id.answered_below);
        client.answers = client.answers.split_off(&client.answered_below);
        if let Some(kept) = client.answers.get(&id.sequence)
            && !mutant!("M-once")
        {
            reached!("metadata: a change was asked for again");
            if mutant!("P7") {
                return Err(MetadataError::OutcomeUnknown("asked for before".to_owned()));
            }
            return Ok(Some(kept.answer(command)));
        }
        if id.sequence < client.answered_below {
            let reason = "nobody waits for this answer any more".to_owned();
            return Err(MetadataError::OutcomeUnknown(reason));
        }
        if id.sequence - client.answered_below >= CLIENT_CHANGES_MAX {
            let reason = format!("{CLIENT_CHANGES_MAX} changes of this client wait for answers");
            return Err(MetadataError::Refused(reason));
        }
        Ok(None)
    }

    /// Keeps what came of a change.
    pub(super) fn keep(&mut self, id: RequestId, answer: &Answer) {
        let kept = match answer {
            Ok(done) => Kept::Done(*done),
            Err(MetadataError::VersionMismatch { found, .. }) => Kept::Mismatch(*found),
            Err(MetadataError::SessionExpired) => Kept::SessionExpired,
            Err(MetadataError::Refused(reason)) => Kept::Refused(reason.clone()),
            Err(error) => Kept::Refused(error.to_string()),
        };
        if let Some(client) = self.clients.get_mut(&id.client) {
            client.answers.insert(id.sequence, kept);
        }
    }

    pub(super) fn last(&self) -> u64 {
        self.last
    }

    pub(super) fn to_wire(&self) -> Vec<wire::SnapshotClient> {
        let clients = self.clients.iter();
        clients
            .map(|(id, client)| wire::SnapshotClient {
                client: *id,
                used: client.used,
                answered_below: client.answered_below,
                answers: client.answers.iter().map(Kept::to_wire).collect(),
            })
            .collect()
    }

    pub(super) fn from_wire(last: u64, clients: Vec<wire::SnapshotClient>) -> Result<Self, String> {
        let mut all = Self { last, clients: BTreeMap::new() };
        for client in clients {
            if client.client == 0 || client.client > last {
                return Err(format!("client {} never opened", client.client));
            }
            let answers = client.answers.into_iter().map(Kept::from_wire);
            let client_state = Client {
                used: client.used,
                answered_below: client.answered_below,
                answers: answers.collect::<Result<_, String>>()?,
            };
            all.clients.insert(client.client, client_state);
        }
        Ok(all)
    }
}

impl Kept {
    fn answer(&self, command: &Command) -> Answer {
        match self {
            Self::Done(done) => Ok(*done),
            Self::Mismatch(found) => {
                let (key, expected) = match command {
                    Command::Put { key, expect, .. } | Command::Delete { key, expect } => {
                        (key.clone(), *expect)
                    }
                    _ => (String::new(), Expect::Any),
                };
                Err(MetadataError::VersionMismatch { key, expected, found: *found })
            }
            Self::SessionExpired => Err(MetadataError::SessionExpired),
            Self::Refused(reason) => Err(MetadataError::Refused(reason.clone())),
        }
    }

    fn to_wire((sequence, kept): (&u64, &Self)) -> wire::SnapshotAnswer {
        use wire::snapshot_answer::Answer as Kind;
        let answer = match kept {
            Self::Done(Done::Written(version)) => Kind::Written(version.0),
            Self::Done(Done::Number(number)) => Kind::Number(*number),
            Self::Done(Done::Opened(session)) => Kind::Opened(session.0),
            Self::Done(Done::Nothing) => Kind::Nothing(true),
            Self::Mismatch(found) => Kind::Mismatch(found.map_or(0, |version| version.0)),
            Self::SessionExpired => Kind::SessionExpired(true),
            Self::Refused(reason) => Kind::Refused(reason.clone()),
        };
        wire::SnapshotAnswer { sequence: *sequence, answer: Some(answer) }
    }

    fn from_wire(answer: wire::SnapshotAnswer) -> Result<(u64, Self), String> {
        use wire::snapshot_answer::Answer as Kind;
        let kept = match answer.answer.ok_or("an answer of an unknown kind")? {
            Kind::Written(version) => Self::Done(Done::Written(Revision(version))),
            Kind::Number(number) => Self::Done(Done::Number(number)),
            Kind::Opened(session) => Self::Done(Done::Opened(SessionId(session))),
            Kind::Nothing(_) => Self::Done(Done::Nothing),
            Kind::Mismatch(found) => Self::Mismatch((found != 0).then_some(Revision(found))),
            Kind::SessionExpired(_) => Self::SessionExpired,
            Kind::Refused(reason) => Self::Refused(reason),
        };
        Ok((answer.sequence, kept))
    }
}
