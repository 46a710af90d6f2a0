//! What handles and the driver share: the applied state, and who leads.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

use tokio::sync::Notify;

use crate::metadata::consensus::{Index, MemberId, Membership, Role, Term};
use crate::metadata::store::{Store, Watches};

/// The applied state.
pub(super) struct Visible {
    pub(super) store: Store,
    pub(super) watches: Watches,
}

/// What a member knows of its group; for admins, metrics and tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberStatus {
    /// This member.
    pub id: MemberId,
    /// What it is.
    pub role: Role,
    /// The newest term it heard of.
    pub term: Term,
    /// Who leads, as far as it knows.
    pub leader: Option<MemberId>,
    /// Everything up to here is committed, and applied here.
    pub commit: Index,
    /// The end of its log.
    pub last: Index,
    /// The newest membership in its log.
    pub membership: Membership,
    /// How far each other member's log is known to agree, if this one leads.
    pub matched: BTreeMap<MemberId, Index>,
}

/// Why no more changes are taken.
#[derive(Clone, Debug)]
pub(super) struct Ended {
    pub(super) reason: String,
    pub(super) poisoned: bool,
}

/// Between handles and the driver.
pub(super) struct Shared {
    visible: Mutex<Visible>,
    status: Mutex<MemberStatus>,
    ended: Mutex<Option<Ended>>,
    ended_changed: Notify,
}

impl Shared {
    pub(super) fn new(store: Store, status: MemberStatus) -> Self {
        Self {
            visible: Mutex::new(Visible { watches: Watches::behind(store.revision()), store }),
            status: Mutex::new(status),
            ended: Mutex::new(None),
            ended_changed: Notify::new(),
        }
    }

    pub(super) fn visible(&self) -> MutexGuard<'_, Visible> {
        self.visible.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(super) fn status(&self) -> MutexGuard<'_, MemberStatus> {
        self.status.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(super) fn end(&self, ended: Ended) {
        let mut state = self.ended.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if state.is_none() {
            *state = Some(ended);
        }
        drop(state);
        self.ended_changed.notify_waiters();
    }

    pub(super) fn ended(&self) -> Option<Ended> {
        self.ended.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
    }

    pub(super) async fn wait_until_ended(&self) -> Ended {
        loop {
            let changed = self.ended_changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if let Some(ended) = self.ended() {
                return ended;
            }
            changed.await;
        }
    }
}
