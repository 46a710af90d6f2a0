//! Sinks that remember what came, and wait for more.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::broker::{
    CloseReason, ConsumerSink, Delivery, ProducerSink, PublishError, PublishOutcome,
};
use crate::domain::Position;
use crate::runtime::real;

/// How long a test waits for what must come.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a test waits to see that nothing comes.
const SILENCE: Duration = Duration::from_millis(50);

async fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let clock = real::runtime().clock;
    let end = clock.now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(clock.now() < end, "{what} did not come");
        clock.sleep(Duration::from_millis(1)).await;
    }
}

#[derive(Default)]
pub(super) struct ProducerProbe {
    outcomes: Mutex<Vec<PublishOutcome>>,
    closed: Mutex<Option<CloseReason>>,
}

impl ProducerProbe {
    /// The next `count` outcomes: `(sequence id, result)`.
    pub(super) async fn outcomes(
        &self,
        count: usize,
    ) -> Vec<(u64, Result<Position, PublishError>)> {
        until("an outcome", || {
            let mut outcomes = self.outcomes.lock().unwrap();
            (outcomes.len() >= count).then(|| outcomes.drain(..count).collect::<Vec<_>>())
        })
        .await
        .into_iter()
        .map(|outcome| (outcome.sequence_id, outcome.result))
        .collect()
    }

    pub(super) async fn closed(&self) -> CloseReason {
        until("the close", || self.closed.lock().unwrap().clone()).await
    }
}

impl ProducerSink for ProducerProbe {
    fn published(&self, outcomes: Vec<PublishOutcome>) {
        assert!(self.closed.lock().unwrap().is_none(), "an outcome after the close");
        self.outcomes.lock().unwrap().extend(outcomes);
    }

    fn closed(&self, reason: CloseReason) {
        assert!(self.closed.lock().unwrap().replace(reason).is_none(), "closed twice");
    }
}

#[derive(Default)]
pub(super) struct ConsumerProbe {
    deliveries: Mutex<Vec<Delivery>>,
    closed: Mutex<Option<CloseReason>>,
    active: Mutex<Option<bool>>,
    pub(super) full: AtomicBool,
}

impl ConsumerProbe {
    /// The next `count` deliveries.
    pub(super) async fn take(&self, count: usize) -> Vec<Delivery> {
        until("a delivery", || {
            let mut deliveries = self.deliveries.lock().unwrap();
            (deliveries.len() >= count).then(|| deliveries.drain(..count).collect())
        })
        .await
    }

    /// The next `count` entries, by the number in their bytes.
    pub(super) async fn numbers(&self, count: usize) -> Vec<u64> {
        self.take(count).await.iter().map(number_of).collect()
    }

    /// Asserts that nothing comes.
    pub(super) async fn nothing(&self) {
        real::runtime().clock.sleep(SILENCE).await;
        let deliveries = self.deliveries.lock().unwrap();
        assert!(deliveries.is_empty(), "came: {deliveries:?}");
    }

    pub(super) async fn closed(&self) -> CloseReason {
        until("the close", || self.closed.lock().unwrap().clone()).await
    }

    pub(super) async fn active(&self, expected: bool) {
        until("the change", || (*self.active.lock().unwrap() == Some(expected)).then_some(()))
            .await;
    }
}

/// The number in a delivery's bytes.
pub(super) fn number_of(delivery: &Delivery) -> u64 {
    String::from_utf8_lossy(&delivery.client_bytes).parse().expect("a number")
}

impl ConsumerSink for ConsumerProbe {
    fn deliver(&self, deliveries: Vec<Delivery>) {
        assert!(self.closed.lock().unwrap().is_none(), "a delivery after the close");
        self.deliveries.lock().unwrap().extend(deliveries);
    }

    fn has_room(&self) -> bool {
        !self.full.load(Ordering::SeqCst)
    }

    fn active_changed(&self, is_active: bool) {
        *self.active.lock().unwrap() = Some(is_active);
    }

    fn closed(&self, reason: CloseReason) {
        assert!(self.closed.lock().unwrap().replace(reason).is_none(), "closed twice");
    }
}

/// A probe to share with the broker.
pub(super) fn probe<T: Default>() -> Arc<T> {
    Arc::default()
}
