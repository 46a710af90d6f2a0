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

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(members: &[u64]) -> BTreeSet<MemberId> {
        members.iter().copied().map(MemberId).collect()
    }

    fn group(voters: &[u64], outgoing: &[u64], learners: &[u64]) -> Membership {
        let mut group = Membership {
            voters: ids(voters),
            outgoing: ids(outgoing),
            learners: ids(learners),
            ..Membership::default()
        };
        group.addresses =
            group.members().into_iter().map(|member| (member, "here".to_owned())).collect();
        group
    }

    fn agrees(group: &Membership, members: &[u64]) -> bool {
        let members = ids(members);
        group.is_quorum(|member| members.contains(&member))
    }

    #[test]
    fn more_than_half_is_a_quorum() {
        for (size, needed) in [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3)] {
            let everyone: Vec<u64> = (1..=size).collect();
            let group = group(&everyone, &[], &[7]);
            for count in 0..=everyone.len() {
                assert_eq!(
                    agrees(&group, &everyone[..count]),
                    count >= needed,
                    "{count} of {size}"
                );
            }
            assert!(!agrees(&group, &[7, 8, 9]), "of members without a vote");
        }
    }

    #[test]
    fn a_joint_membership_needs_both_halves() {
        let group = group(&[1, 2, 3], &[3, 4, 5], &[6]);
        assert!(group.is_joint() && !group.left().is_joint());
        for (members, are_enough) in [
            (&[1, 2, 3][..], false),
            (&[3, 4, 5], false),
            (&[1, 2, 4], false),
            (&[1, 4, 5], false),
            (&[1, 3, 4], true),
            (&[1, 2, 4, 5], true),
        ] {
            assert_eq!(agrees(&group, members), are_enough, "{members:?}");
        }
        assert!(group.is_voter(MemberId(1)) && group.is_voter(MemberId(5)));
        assert!(!group.is_voter(MemberId(6)));
        assert_eq!(group.members(), ids(&[1, 2, 3, 4, 5, 6]));
        let left = group.left();
        assert_eq!((left.voters.clone(), left.members()), (ids(&[1, 2, 3]), ids(&[1, 2, 3, 6])));
        assert_eq!(left.addresses.into_keys().collect::<BTreeSet<_>>(), ids(&[1, 2, 3, 6]));
    }

    #[test]
    fn what_a_quorum_has_is_the_highest_index_that_so_many_reach() {
        let index = |group: &Membership, has: &[u64]| {
            group.quorum_index(|MemberId(member)| has[member as usize - 1])
        };
        assert_eq!(index(&group(&[1], &[], &[]), &[4]), 4);
        assert_eq!(index(&group(&[1, 2], &[], &[]), &[4, 9]), 4);
        assert_eq!(index(&group(&[1, 2, 3], &[], &[]), &[9, 5, 7]), 7);
        assert_eq!(index(&group(&[1, 2, 3, 4], &[], &[]), &[8, 5, 7, 6]), 6);
        assert_eq!(index(&group(&[1, 2, 3], &[], &[4, 5]), &[3, 2, 1, 9, 9]), 2);
        // Of the one half two have 9, of the other two have 4.
        assert_eq!(index(&group(&[1, 2, 3], &[3, 4, 5], &[]), &[9, 9, 1, 4, 6]), 4);
    }
}
