//! A leader that a quorum no longer answers steps down, so that its clients look for another one.

use super::Machine;
use super::machine::Part;
use crate::reached;

impl Machine {
    pub(super) fn on_quorum_check(&mut self) {
        let (id, term) = (self.id, self.term());
        let Part::Leader(leading) = &mut self.part else { return };
        let progress = &leading.progress;
        let is_followed = self.log.membership().is_quorum(|member| {
            member == id || progress.get(&member).is_some_and(|progress| progress.active)
        });
        for progress in leading.progress.values_mut() {
            progress.active = false;
        }
        // A handover gets one whole election time-out.
        match &mut leading.transfer {
            Some((_, checked)) if !*checked => *checked = true,
            transfer => *transfer = None,
        }
        if !is_followed {
            reached!("consensus: a leader without a quorum stepped down");
            self.become_follower(term);
        }
    }
}
