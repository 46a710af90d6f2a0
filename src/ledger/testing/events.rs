//! Records what a writer tells.

use std::sync::{Arc, Mutex};

use tokio::sync::Notify;

use crate::domain::{EntryId, LedgerId};
use crate::ledger::{WriterEnd, WriterEvents};

#[derive(Default)]
struct Told {
    confirmed: Option<EntryId>,
    end: Option<(EntryId, WriterEnd)>,
}

/// What a writer told so far.
#[derive(Default)]
pub(in crate::ledger) struct Recorder {
    state: Mutex<Told>,
    news: Notify,
}

impl Recorder {
    pub(in crate::ledger) fn new() -> Arc<Self> {
        Arc::new(Self::default())
    }

    /// Waits until `entry` is confirmed.
    pub(in crate::ledger) async fn confirmed_at(&self, entry: i64) {
        loop {
            let news = self.news.notified();
            {
                let state = self.state.lock().unwrap();
                if state.confirmed.is_some_and(|confirmed| confirmed.0 >= entry) {
                    return;
                }
                assert!(state.end.is_none(), "ended early: {:?}", state.end);
            }
            news.await;
        }
    }

    /// How the writer ended, if it has told.
    pub(in crate::ledger) fn ended_as(&self) -> Option<(EntryId, WriterEnd)> {
        self.state.lock().unwrap().end.clone()
    }

    /// Waits until the writer ended.
    pub(in crate::ledger) async fn end(&self) -> (EntryId, WriterEnd) {
        loop {
            let news = self.news.notified();
            if let Some(end) = self.state.lock().unwrap().end.clone() {
                return end;
            }
            news.await;
        }
    }
}

impl WriterEvents for Recorder {
    fn confirmed(&self, _ledger: LedgerId, up_to: EntryId) {
        let mut state = self.state.lock().unwrap();
        assert!(state.end.is_none(), "confirmed after the end");
        assert!(state.confirmed.is_none_or(|before| before < up_to), "confirmed went back");
        state.confirmed = Some(up_to);
        self.news.notify_one();
    }

    fn ended(&self, _ledger: LedgerId, last_confirmed: EntryId, reason: WriterEnd) {
        let mut state = self.state.lock().unwrap();
        assert!(state.end.is_none(), "ended twice");
        assert_eq!(state.confirmed.unwrap_or(EntryId::NONE), last_confirmed);
        state.end = Some((last_confirmed, reason));
        self.news.notify_one();
    }
}
