//! A bounded queue that is emptied in one turn: how batches form by themselves under load.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::Notify;

struct Shared<T> {
    state: Mutex<State<T>>,
    filled: Notify,
    drained: Notify,
    capacity: usize,
}

struct State<T> {
    items: VecDeque<T>,
    receiver_gone: bool,
    senders: usize,
}

impl<T> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// The receiving end: one task.
pub struct Mailbox<T>(Arc<Shared<T>>);

/// A sending end.
pub struct MailboxSender<T>(Arc<Shared<T>>);

/// Both ends of a queue of at most `capacity` items (see [`MailboxSender::push`] for the one exception).
pub fn mailbox<T>(capacity: usize) -> (MailboxSender<T>, Mailbox<T>) {
    let state = State { items: VecDeque::new(), receiver_gone: false, senders: 1 };
    let shared = Arc::new(Shared {
        state: Mutex::new(state),
        filled: Notify::new(),
        drained: Notify::new(),
        capacity,
    });
    (MailboxSender(Arc::clone(&shared)), Mailbox(shared))
}

impl<T> MailboxSender<T> {
    /// Waits for room, then adds the item. Gives it back if the receiver is gone.
    pub async fn send(&self, item: T) -> Result<(), T> {
        loop {
            let drained = self.0.drained.notified();
            tokio::pin!(drained);
            drained.as_mut().enable();
            {
                let mut state = self.0.lock();
                if state.receiver_gone {
                    return Err(item);
                }
                if state.items.len() < self.0.capacity {
                    state.items.push_back(item);
                    drop(state);
                    self.0.filled.notify_one();
                    return Ok(());
                }
            }
            drained.await;
        }
    }

    /// Adds the item if there is room. Gives it back if there is none or the receiver is gone.
    pub fn try_send(&self, item: T) -> Result<(), T> {
        let mut state = self.0.lock();
        if state.receiver_gone || state.items.len() >= self.0.capacity {
            return Err(item);
        }
        state.items.push_back(item);
        drop(state);
        self.0.filled.notify_one();
        Ok(())
    }

    /// Adds the item even over the capacity. Only for answers to work that was itself admitted under a
    /// bound (so the bound holds there), where dropping or blocking would lose an acknowledgement.
    /// Gives it back if the receiver is gone.
    pub fn push(&self, item: T) -> Result<(), T> {
        let mut state = self.0.lock();
        if state.receiver_gone {
            return Err(item);
        }
        state.items.push_back(item);
        drop(state);
        self.0.filled.notify_one();
        Ok(())
    }

    /// True once the receiver is gone.
    pub fn is_closed(&self) -> bool {
        self.0.lock().receiver_gone
    }
}

impl<T> Clone for MailboxSender<T> {
    fn clone(&self) -> Self {
        self.0.lock().senders += 1;
        Self(Arc::clone(&self.0))
    }
}

impl<T> Drop for MailboxSender<T> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.senders -= 1;
        let last = state.senders == 0;
        drop(state);
        if last {
            self.0.filled.notify_one();
        }
    }
}

impl<T> Mailbox<T> {
    /// Waits until there is something, then takes everything. `None` once all senders are gone and the
    /// queue is empty. Cancellation safe.
    pub async fn take_all(&mut self) -> Option<VecDeque<T>> {
        loop {
            let filled = self.0.filled.notified();
            {
                let mut state = self.0.lock();
                if !state.items.is_empty() {
                    let items = std::mem::take(&mut state.items);
                    drop(state);
                    self.0.drained.notify_waiters();
                    return Some(items);
                }
                if state.senders == 0 {
                    return None;
                }
            }
            filled.await;
        }
    }

    /// Takes what is there now, possibly nothing.
    pub fn take_ready(&mut self) -> VecDeque<T> {
        let items = std::mem::take(&mut self.0.lock().items);
        if !items.is_empty() {
            self.0.drained.notify_waiters();
        }
        items
    }
}

impl<T> Drop for Mailbox<T> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.receiver_gone = true;
        let undelivered = std::mem::take(&mut state.items);
        drop(state);
        drop(undelivered);
        self.0.drained.notify_waiters();
    }
}
