//! What a topic tells about itself.

use super::command::{ConsumerAddress, Reply};
use super::task::TopicTask;
use crate::broker::{ConsumerStats, PublisherStats, TopicStats};
use crate::domain::EntryId;

impl TopicTask {
    pub(super) fn stats(&self) -> TopicStats {
        let ledger = self.ledger.stats();
        let inward = self.inward.flow(self.now);
        let mut outward = crate::broker::Flow::default();
        let subscriptions: Vec<_> =
            self.subscriptions.values().map(|one| one.stats(self.now)).collect();
        for one in &subscriptions {
            outward.message_rate += one.outward.message_rate;
            outward.byte_rate += one.outward.byte_rate;
            outward.messages += one.outward.messages;
            outward.bytes += one.outward.bytes;
        }
        let slowest = subscriptions
            .iter()
            .filter(|one| one.is_durable)
            .map(|one| one.backlog_entries)
            .max()
            .unwrap_or(0);
        let last = self.ledger.last_confirmed();
        TopicStats {
            inward,
            outward,
            average_message_bytes: mean(inward.bytes, inward.messages),
            storage_bytes: ledger.storage_bytes,
            // Entries are taken to be of the same size.
            backlog_bytes: (mean(ledger.storage_bytes, ledger.entries) * slowest as f64) as u64,
            publishers: self.publishers(),
            subscriptions,
            last_position: (last.entry != EntryId::NONE).then_some(last),
            ledgers: ledger
                .ledgers
                .iter()
                .map(|(id, entries, bytes)| (id.0, *entries, *bytes))
                .collect(),
            pending_adds: ledger.pending,
        }
    }

    fn publishers(&self) -> Vec<PublisherStats> {
        let open = self.producers.iter().filter(|producer| !producer.closing);
        open.map(|producer| {
            let inward = producer.inward.flow(self.now);
            PublisherStats {
                producer_id: producer.options.producer_id,
                producer_name: producer.name.clone(),
                inward,
                average_message_bytes: mean(inward.bytes, inward.messages),
                connection: producer.options.connection.clone(),
                metadata: producer.options.metadata.clone(),
            }
        })
        .collect()
    }

    pub(super) fn consumer_stats(
        &mut self,
        address: &ConsumerAddress,
        reply: Reply<ConsumerStats>,
    ) {
        let now = self.now;
        let stats = self.subscription_of(address).and_then(|subscription| {
            let consumer = subscription.consumers.get(&address.key)?;
            Some(consumer.stats(address.key, &subscription.machine, now))
        });
        let _ = reply.send(stats.unwrap_or_default());
    }
}

fn mean(sum: u64, count: u64) -> f64 {
    if count == 0 { 0.0 } else { sum as f64 / count as f64 }
}
