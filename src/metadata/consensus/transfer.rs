//! Leadership is handed over: the leader takes no more requests, waits until the other has the whole log,
//! and tells it to campaign at once.

use super::{Body, Index, Machine, MemberId};
use crate::reached;

impl Machine {
    pub(super) fn on_transfer(&mut self, to: MemberId) {
        if to == self.id || !self.log.membership().voters.contains(&to) {
            return;
        }
        let Some(leading) = self.leading() else { return };
        // Asked again it is the same handover: its time runs on.
        if leading.transfer.is_none_or(|(under_way, _)| under_way != to) {
            leading.transfer = Some((to, false));
        }
        self.continue_transfer(to);
        self.replicate_to(to);
    }

    /// The member has the log up to what it just answered.
    pub(super) fn continue_transfer(&mut self, member: MemberId) {
        let last: Index = self.log.last_index();
        let Some(leading) = self.leading() else { return };
        let is_wanted = leading.transfer.is_some_and(|(to, _)| to == member);
        let has_all =
            leading.progress.get(&member).is_some_and(|progress| progress.matched == last);
        if is_wanted && has_all {
            self.send(member, Body::TimeoutNow);
        }
    }

    pub(super) fn on_timeout_now(&mut self) {
        if self.role() != super::Role::Leader && self.may_campaign() {
            reached!("consensus: leadership was handed over");
            self.campaign(true);
        }
    }
}
