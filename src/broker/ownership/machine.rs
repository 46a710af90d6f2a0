//! Which bundles this broker owns, and what to do next about each. Pure: answers of metadata and of topics
//! come in as events, each with the attempt it belongs to, so that late ones are known as such.
//!
//! A bundle is taken by looking at its record and claiming it at the version seen, with the next epoch. It is
//! given up by closing its topics first, and only then writing that nobody owns it. One that somebody else
//! took is closed here and nothing is written.

use std::collections::BTreeMap;

use super::bundle::Bundle;
use super::record::{BrokerInstance, OwnershipRecord};
use crate::metadata::{Expect, Revision};
use crate::{mutant, reached};

/// Bundles held or being taken here; more are refused.
const BUNDLES_MAX: usize = 100_000;
/// Requests waiting for one bundle; more are refused.
const WAITERS_MAX: usize = 10_000;
/// Claims of one attempt lost in a row before the caller is told to come again.
const CLAIMS_MAX: u32 = 3;

/// Names a request that waits for an answer.
pub type Token = u64;

/// What may happen.
#[derive(Clone, Debug)]
pub enum Event {
    /// Someone wants the bundle served here.
    Acquire(Bundle, Token),
    /// The record was looked at.
    Looked(Bundle, u64, Result<Looked, String>),
    /// A claim was answered.
    Claimed(Bundle, u64, Result<Revision, ClaimError>),
    /// A watch saw the record; `None` if it was removed.
    Seen(Bundle, Revision, Option<OwnershipRecord>),
    /// The bundle is to be given up.
    Release(Bundle, Token),
    /// Its topics are closed.
    Closed(Bundle, u64),
    /// The release is written, or not.
    Released(Bundle, u64),
    /// Everything is to be given up and nothing taken any more.
    Stop(Token),
}

/// What the record of a bundle said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Looked {
    /// The record with its version, if there is one.
    pub found: Option<(OwnershipRecord, Revision)>,
    /// Its owner is registered.
    pub owner_lives: bool,
}

/// Why a claim was not made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClaimError {
    /// Somebody else changed the record; certainly not made.
    Conflict,
    /// It may or may not have been made.
    Unknown(String),
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Read the record, and whether its owner is registered.
    Look(Bundle, u64),
    /// Write the record if it is as expected.
    Claim(Bundle, u64, OwnershipRecord, Expect),
    /// Serve the bundle's topics from now on.
    Open(Bundle, u64),
    /// Serve them no more: close them, clients look up again.
    Close(Bundle, u64),
    /// Write that nobody owns it.
    Release(Bundle, u64, OwnershipRecord, Expect),
    /// Answer a request.
    Answer(Token, Answer),
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The bundle is owned here.
    Here,
    /// It is owned by another broker.
    Elsewhere(BrokerInstance),
    /// Nobody can say yet; ask again.
    NotNow(String),
    /// It is given up, or was not held.
    Done,
}

enum State {
    Taking { attempt: u64, claims: u32, epoch: u64, waiters: Vec<Token> },
    Owned { epoch: u64, version: Revision },
    Closing { attempt: u64, epoch: u64, version: Revision, lost: bool, waiters: Vec<Token> },
    Releasing { attempt: u64, waiters: Vec<Token> },
}

/// See the module.
pub struct Machine {
    own: BrokerInstance,
    bundles: BTreeMap<Bundle, State>,
    attempts: u64,
    stopping: Vec<Token>,
}

impl Machine {
    /// The machine of one start of a broker.
    pub const fn new(own: BrokerInstance) -> Self {
        Self { own, bundles: BTreeMap::new(), attempts: 0, stopping: Vec::new() }
    }

    /// Bundles owned here, with their epochs.
    pub fn owned(&self) -> impl Iterator<Item = (&Bundle, u64)> {
        self.bundles.iter().filter_map(|(bundle, state)| match state {
            State::Owned { epoch, .. } => Some((bundle, *epoch)),
            _ => None,
        })
    }

    /// Takes one event.
    pub fn on(&mut self, event: Event) -> Vec<Effect> {
        let mut effects = Vec::new();
        match event {
            Event::Acquire(bundle, token) => self.acquire(bundle, token, &mut effects),
            Event::Looked(bundle, attempt, looked) => {
                self.looked(bundle, attempt, looked, &mut effects);
            }
            Event::Claimed(bundle, attempt, result) => {
                self.claimed(bundle, attempt, result, &mut effects);
            }
            Event::Seen(bundle, version, record) => {
                self.seen(bundle, version, record.as_ref(), &mut effects);
            }
            Event::Release(bundle, token) => self.release(bundle, token, &mut effects),
            Event::Closed(bundle, attempt) => self.closed(bundle, attempt, &mut effects),
            Event::Released(bundle, attempt) => self.released(&bundle, attempt, &mut effects),
            Event::Stop(token) => {
                self.stopping.push(token);
                let owned: Vec<Bundle> = self.owned().map(|(bundle, _)| bundle.clone()).collect();
                for bundle in owned {
                    self.close(bundle, false, Vec::new(), &mut effects);
                }
            }
        }
        if self.bundles.is_empty() {
            effects
                .extend(self.stopping.drain(..).map(|token| Effect::Answer(token, Answer::Done)));
        }
        effects
    }

    fn next_attempt(&mut self) -> u64 {
        self.attempts += 1;
        self.attempts
    }

    fn acquire(&mut self, bundle: Bundle, token: Token, effects: &mut Vec<Effect>) {
        let refused = |reason: &str| Effect::Answer(token, Answer::NotNow(reason.to_owned()));
        if !self.stopping.is_empty() {
            effects.push(refused("the broker is stopping"));
            return;
        }
        let count = self.bundles.len();
        match self.bundles.get_mut(&bundle) {
            Some(State::Owned { .. }) => effects.push(Effect::Answer(token, Answer::Here)),
            Some(State::Taking { waiters, .. }) if waiters.len() < WAITERS_MAX => {
                waiters.push(token);
            }
            Some(State::Taking { .. }) => effects.push(refused("too many wait for the bundle")),
            Some(State::Closing { .. } | State::Releasing { .. }) => {
                effects.push(refused("the bundle is being unloaded"));
            }
            None if count >= BUNDLES_MAX => effects.push(refused("too many bundles are held here")),
            None => {
                let attempt = self.next_attempt();
                effects.push(Effect::Look(bundle.clone(), attempt));
                let waiters = vec![token];
                self.bundles
                    .insert(bundle, State::Taking { attempt, claims: 0, epoch: 0, waiters });
            }
        }
    }

    fn looked(
        &mut self,
        bundle: Bundle,
        of: u64,
        looked: Result<Looked, String>,
        effects: &mut Vec<Effect>,
    ) {
        let own = self.own;
        let Some(State::Taking { attempt, epoch, .. }) = self.bundles.get_mut(&bundle) else {
            return;
        };
        if *attempt != of {
            return;
        }
        let looked = match looked {
            Ok(looked) => looked,
            Err(reason) => return self.give_up(&bundle, &Answer::NotNow(reason), effects),
        };
        let (record, expect) = match looked.found {
            None => (OwnershipRecord::new(Some(own), 1), Expect::Absent),
            Some((record, version)) => {
                if let Some(owner) = record.owner.filter(|owner| *owner != own)
                    && looked.owner_lives
                {
                    return self.give_up(&bundle, &Answer::Elsewhere(owner), effects);
                }
                if record.owner.is_some() {
                    reached!("ownership: a bundle was taken from an owner that is gone");
                }
                (OwnershipRecord::new(Some(own), record.epoch + 1), Expect::Version(version))
            }
        };
        *epoch = record.epoch;
        let expect = if mutant!("B-owner-put") { Expect::Any } else { expect };
        effects.push(Effect::Claim(bundle, of, record, expect));
    }

    fn claimed(
        &mut self,
        bundle: Bundle,
        of: u64,
        result: Result<Revision, ClaimError>,
        effects: &mut Vec<Effect>,
    ) {
        let Some(State::Taking { attempt, claims, epoch, waiters }) = self.bundles.get_mut(&bundle)
        else {
            return;
        };
        if *attempt != of {
            return;
        }
        match result {
            Ok(version) => {
                let (epoch, waiters) = (*epoch, std::mem::take(waiters));
                self.bundles.insert(bundle.clone(), State::Owned { epoch, version });
                if self.stopping.is_empty() {
                    effects.push(Effect::Open(bundle, epoch));
                    effects.extend(waiters.into_iter().map(|t| Effect::Answer(t, Answer::Here)));
                } else {
                    reached!("ownership: a bundle was taken while stopping");
                    self.close(bundle, false, Vec::new(), effects);
                    let reason = Answer::NotNow("the broker is stopping".to_owned());
                    let refuse = |token| Effect::Answer(token, reason.clone());
                    effects.extend(waiters.into_iter().map(refuse));
                }
            }
            Err(ClaimError::Conflict) if *claims + 1 < CLAIMS_MAX => {
                reached!("ownership: a claim was lost");
                *claims += 1;
                effects.push(Effect::Look(bundle, of));
            }
            Err(ClaimError::Conflict) => {
                let answer =
                    Answer::NotNow("Failed to acquire ownership: it is contested".to_owned());
                self.give_up(&bundle, &answer, effects);
            }
            // If it was made after all, the record names this broker: whoever looks next is sent here, and
            // it is claimed anew.
            Err(ClaimError::Unknown(reason)) => {
                reached!("ownership: the fate of a claim is unknown");
                let answer = Answer::NotNow(format!("Failed to acquire ownership: {reason}"));
                self.give_up(&bundle, &answer, effects);
            }
        }
    }

    fn give_up(&mut self, bundle: &Bundle, answer: &Answer, effects: &mut Vec<Effect>) {
        if let Some(State::Taking { waiters, .. }) = self.bundles.remove(bundle) {
            let told = waiters.into_iter().map(|token| Effect::Answer(token, answer.clone()));
            effects.extend(told);
        }
    }

    fn seen(
        &mut self,
        bundle: Bundle,
        version: Revision,
        record: Option<&OwnershipRecord>,
        effects: &mut Vec<Effect>,
    ) {
        let is_own = record.and_then(|record| record.owner) == Some(self.own);
        match self.bundles.get_mut(&bundle) {
            Some(State::Owned { version: held, .. }) if version > *held && !is_own => {
                reached!("ownership: a bundle was taken by another broker");
                self.close(bundle, true, Vec::new(), effects);
            }
            Some(State::Closing { version: held, lost, .. }) if version > *held && !is_own => {
                *lost = true;
            }
            _ => {}
        }
    }

    fn release(&mut self, bundle: Bundle, token: Token, effects: &mut Vec<Effect>) {
        match self.bundles.get_mut(&bundle) {
            Some(State::Owned { .. }) => self.close(bundle, false, vec![token], effects),
            Some(State::Closing { waiters, .. } | State::Releasing { waiters, .. }) => {
                waiters.push(token);
            }
            Some(State::Taking { .. }) => {
                let answer = Answer::NotNow("the bundle is being taken".to_owned());
                effects.push(Effect::Answer(token, answer));
            }
            None => effects.push(Effect::Answer(token, Answer::Done)),
        }
    }

    /// Starts to close an owned bundle.
    fn close(
        &mut self,
        bundle: Bundle,
        lost: bool,
        waiters: Vec<Token>,
        effects: &mut Vec<Effect>,
    ) {
        let attempt = self.next_attempt();
        let Some(State::Owned { epoch, version }) = self.bundles.get(&bundle) else { return };
        let (epoch, version) = (*epoch, *version);
        if mutant!("B-release-early") && !lost {
            let record = OwnershipRecord::new(None, epoch);
            let expect = Expect::Version(version);
            effects.push(Effect::Release(bundle.clone(), 0, record, expect));
        }
        effects.push(Effect::Close(bundle.clone(), attempt));
        self.bundles.insert(bundle, State::Closing { attempt, epoch, version, lost, waiters });
    }

    fn closed(&mut self, bundle: Bundle, of: u64, effects: &mut Vec<Effect>) {
        let Some(State::Closing { attempt, epoch, version, lost, waiters }) =
            self.bundles.get_mut(&bundle)
        else {
            return;
        };
        if *attempt != of {
            return;
        }
        let waiters = std::mem::take(waiters);
        if *lost {
            self.bundles.remove(&bundle);
            effects.extend(waiters.into_iter().map(|token| Effect::Answer(token, Answer::Done)));
            return;
        }
        let record = OwnershipRecord::new(None, *epoch);
        let expect = Expect::Version(*version);
        effects.push(Effect::Release(bundle.clone(), of, record, expect));
        self.bundles.insert(bundle, State::Releasing { attempt: of, waiters });
    }

    /// Whatever came of the release: if it is not written, the record names this broker, and whoever looks
    /// next is sent here.
    fn released(&mut self, bundle: &Bundle, of: u64, effects: &mut Vec<Effect>) {
        let Some(State::Releasing { attempt, waiters }) = self.bundles.get_mut(bundle) else {
            return;
        };
        if *attempt != of {
            return;
        }
        let waiters = std::mem::take(waiters);
        self.bundles.remove(bundle);
        effects.extend(waiters.into_iter().map(|token| Effect::Answer(token, Answer::Done)));
    }
}
