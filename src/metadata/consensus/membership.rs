//! Who belongs to the group, and what a quorum of it is.

use std::collections::{BTreeMap, BTreeSet};

use super::Index;
use crate::mutant;

/// A member of the group. Never used again for another node: a member whose disk was lost comes back under
/// a new one, because what it promised under the old one is forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberId(pub u64);

impl std::fmt::Display for MemberId {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}", self.0)
    }
}

/// The members of a group. While `outgoing` is not empty the membership is *joint*: whatever needs a quorum
/// needs one of `voters` and one of `outgoing`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Membership {
    /// Who votes and counts for commits.
    pub voters: BTreeSet<MemberId>,
    /// The voters before the change that is under way; empty when there is none.
    pub outgoing: BTreeSet<MemberId>,
    /// Who is sent the log without counting.
    pub learners: BTreeSet<MemberId>,
    /// Where each member listens, for whoever carries messages; consensus does not look at it.
    pub addresses: BTreeMap<MemberId, String>,
}

impl Membership {
    /// A group of these voters.
    pub fn of_voters(voters: impl IntoIterator<Item = (MemberId, String)>) -> Self {
        let addresses: BTreeMap<MemberId, String> = voters.into_iter().collect();
        Self { voters: addresses.keys().copied().collect(), addresses, ..Self::default() }
    }

    /// True while a change of voters is under way.
    pub fn is_joint(&self) -> bool {
        !self.outgoing.is_empty()
    }

    /// True if this member's vote counts.
    pub fn is_voter(&self, member: MemberId) -> bool {
        self.voters.contains(&member) || self.outgoing.contains(&member)
    }

    /// Everyone who is sent the log.
    pub fn members(&self) -> BTreeSet<MemberId> {
        self.voters.iter().chain(&self.outgoing).chain(&self.learners).copied().collect()
    }

    /// True if those for whom `has` holds are a quorum, of both halves of a joint membership.
    pub fn is_quorum(&self, has: impl Fn(MemberId) -> bool) -> bool {
        let majority = |half: &BTreeSet<MemberId>| {
            half.iter().filter(|member| has(**member)).count() > half.len() / 2
        };
        majority(&self.voters)
            && (!self.is_joint() || mutant!("M-joint") || majority(&self.outgoing))
    }

    /// The highest index that a quorum has, given what each member has.
    pub fn quorum_index(&self, has: impl Fn(MemberId) -> Index) -> Index {
        let candidates: BTreeSet<Index> =
            self.voters.iter().chain(&self.outgoing).map(|member| has(*member)).collect();
        let reached = |index: &Index| self.is_quorum(|member| has(member) >= *index);
        candidates.into_iter().rev().find(reached).unwrap_or(0)
    }

    /// The membership that ends the change under way.
    pub(super) fn left(&self) -> Self {
        let mut left = self.clone();
        left.outgoing = BTreeSet::new();
        let members = left.members();
        left.addresses.retain(|member, _| members.contains(member));
        left
    }

    pub(super) fn cost(&self) -> usize {
        let ids = self.voters.len() + self.outgoing.len() + self.learners.len();
        16 * ids + self.addresses.values().map(|address| 16 + address.len()).sum::<usize>()
    }
}
