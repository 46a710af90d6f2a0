//! A connected consumer: its sink, its options and its figures.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crate::broker::dispatch::{ConsumerKey, Machine};
use crate::broker::messages::{ConsumerSink, SubscribeOptions};
use crate::broker::meter::Meter;
use crate::broker::stats::ConsumerStats;
use crate::domain::{Instant, WallTime};

/// When things last happened; zero for never.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::broker) struct Seen {
    pub(in crate::broker) flow: WallTime,
    pub(in crate::broker) consumed: WallTime,
    pub(in crate::broker) acked: WallTime,
}

/// One connected consumer.
pub(in crate::broker) struct ConnectedConsumer {
    pub(in crate::broker) options: SubscribeOptions,
    pub(in crate::broker) sink: Arc<dyn ConsumerSink>,
    /// Permits given at the handle and not yet taken over here.
    pub(in crate::broker) permits: Arc<AtomicU64>,
    pub(in crate::broker) outward: Meter,
    pub(in crate::broker) redelivered: Meter,
    pub(in crate::broker) acked: Meter,
    pub(in crate::broker) entries: u64,
    pub(in crate::broker) seen: Seen,
}

impl ConnectedConsumer {
    pub(in crate::broker) fn new(
        options: SubscribeOptions,
        sink: Arc<dyn ConsumerSink>,
        now: Instant,
    ) -> Self {
        Self {
            options,
            sink,
            permits: Arc::new(AtomicU64::new(0)),
            outward: Meter::new(now),
            redelivered: Meter::new(now),
            acked: Meter::new(now),
            entries: 0,
            seen: Seen::default(),
        }
    }

    /// Its figures.
    pub(in crate::broker) fn stats(
        &self,
        key: ConsumerKey,
        machine: &Machine,
        now: Instant,
    ) -> ConsumerStats {
        let outward = self.outward.flow(now);
        ConsumerStats {
            consumer_id: self.options.consumer_id,
            consumer_name: self.options.consumer_name.clone(),
            outward,
            redeliver_rate: self.redelivered.flow(now).message_rate,
            ack_rate: self.acked.flow(now).message_rate,
            available_permits: machine.consumer_permits(key),
            unacked_messages: machine.consumer_unacked(key),
            blocked_on_unacked: machine.consumer_blocked(key),
            average_messages_per_entry: if self.entries == 0 {
                0.0
            } else {
                outward.messages as f64 / self.entries as f64
            },
            last_acked: self.seen.acked,
            last_consumed: self.seen.consumed,
            last_flow: self.seen.flow,
            connection: self.options.connection.clone(),
            metadata: self.options.metadata.clone(),
        }
    }
}
