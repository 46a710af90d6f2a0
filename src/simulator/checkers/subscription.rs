//! P4: a subscription misses nothing and, after a durable acknowledgement, repeats nothing.

use std::collections::{BTreeMap, BTreeSet};

use super::{Finding, History, told};
use crate::simulator::history::{DRAINED_SUBSCRIPTIONS, EXCLUSIVE};

/// Every message of the final log was delivered to every subscription of its topic that was drained.
/// (All subscriptions of the workloads begin at the first message.)
pub fn subscription_misses_nothing(history: &History) -> Finding {
    let mut finding = Finding::default();
    let mut delivered: BTreeMap<(&str, &str), BTreeSet<_>> = BTreeMap::new();
    let drained = |name: &str| DRAINED_SUBSCRIPTIONS.contains(&name);
    for delivery in history.deliveries.iter().filter(|one| drained(&one.subscription)) {
        delivered
            .entry((delivery.topic.as_str(), delivery.subscription.as_str()))
            .or_default()
            .insert(delivery.position);
    }
    for ((topic, subscription), positions) in &delivered {
        let Some(log) = history.final_log.get(*topic) else { continue };
        for (position, number) in log {
            finding.compared += 1;
            if !positions.contains(position) {
                finding.broken(
                    "P4",
                    "subscription_misses_nothing",
                    format!("{topic}/{subscription} never got {} at {position}", told(*number)),
                );
            }
        }
    }
    finding
}

/// A first delivery this long after a receipt was not on its way already when the receipt came, nanoseconds: a
/// client that hears nothing for so long closes its connection.
const ON_ITS_WAY_MAX: u64 = 10_000_000_000;

/// Nothing is delivered to a session that was asked for after the receipt of its acknowledgement, nor to one
/// that is older and got its first delivery long after it.
pub fn subscription_repeats_nothing(history: &History) -> Finding {
    let mut finding = Finding::default();
    let mut first_deliveries: BTreeMap<u32, u64> = BTreeMap::new();
    for delivery in &history.deliveries {
        let first = first_deliveries.entry(delivery.session).or_insert(delivery.at);
        *first = (*first).min(delivery.at);
    }
    let mut durable: BTreeMap<(_, &str, &str), u64> = BTreeMap::new();
    for ack in &history.acks {
        if let Some(at) = ack.receipt_at {
            let key = (ack.position, ack.topic.as_str(), ack.subscription.as_str());
            let first = durable.entry(key).or_insert(at);
            *first = (*first).min(at);
        }
    }
    for delivery in &history.deliveries {
        let key = (delivery.position, delivery.topic.as_str(), delivery.subscription.as_str());
        let Some(acked_at) = durable.get(&key) else { continue };
        finding.compared += 1;
        // Another consumer's receipt and a delivery that left before it was written may come in either order.
        let first = first_deliveries.get(&delivery.session).copied().unwrap_or(0);
        let asked = history.sessions_asked.get(&delivery.session).copied().unwrap_or(first);
        if asked > *acked_at || first > acked_at.saturating_add(ON_ITS_WAY_MAX) {
            finding.broken(
                "P4",
                "subscription_repeats_nothing",
                format!(
                    "{}/{} got {} again in session {}, {} ms after its acknowledgement was durable; the \
                     session was asked for at {} ms, its first delivery came at {} ms",
                    delivery.topic,
                    delivery.subscription,
                    delivery.position,
                    delivery.session,
                    delivery.at.saturating_sub(*acked_at) / 1_000_000,
                    asked / 1_000_000,
                    first / 1_000_000
                ),
            );
        }
    }
    finding
}

/// What no consumer ever asked to acknowledge comes again, to the very end.
pub fn unacknowledged_comes_again(history: &History) -> Finding {
    let mut finding = Finding::default();
    let asked: BTreeSet<(_, &str, &str)> = history
        .acks
        .iter()
        .map(|ack| (ack.position, ack.topic.as_str(), ack.subscription.as_str()))
        .collect();
    let mut came: BTreeMap<u32, BTreeSet<_>> = BTreeMap::new();
    for delivery in &history.deliveries {
        came.entry(delivery.session).or_default().insert(delivery.position);
    }
    for ((topic, subscription), session) in &history.last_sessions {
        let nothing = BTreeSet::new();
        let came = came.get(session).unwrap_or(&nothing);
        let up_to = history.cumulative_acks.get(topic).filter(|_| subscription == EXCLUSIVE);
        for (place, number) in history.final_log.get(topic).into_iter().flatten() {
            let was_asked = asked.contains(&(*place, topic.as_str(), subscription.as_str()))
                || up_to.is_some_and(|up_to| place <= up_to);
            if was_asked {
                continue;
            }
            finding.compared += 1;
            if !came.contains(place) {
                let detail = format!(
                    "{topic}/{subscription}: {} at {place} was never acknowledged and does not come again",
                    told(*number)
                );
                finding.broken("P4", "unacknowledged_comes_again", detail);
            }
        }
    }
    finding
}
