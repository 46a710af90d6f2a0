//! P4: a subscription misses nothing and, after a durable acknowledgement, repeats nothing.

use std::collections::{BTreeMap, BTreeSet};

use super::{Finding, History};
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
                    format!("{topic}/{subscription} never got {number:?} at {position}"),
                );
            }
        }
    }
    finding
}

/// Nothing is delivered to a session that began after the receipt of its acknowledgement.
pub fn subscription_repeats_nothing(history: &History) -> Finding {
    let mut finding = Finding::default();
    let mut session_began: BTreeMap<u32, u64> = BTreeMap::new();
    for delivery in &history.deliveries {
        let began = session_began.entry(delivery.session).or_insert(delivery.at);
        *began = (*began).min(delivery.at);
    }
    let mut durable: BTreeMap<(&str, &str, _), u64> = BTreeMap::new();
    for ack in &history.acks {
        if let Some(at) = ack.receipt_at {
            let key = (ack.topic.as_str(), ack.subscription.as_str(), ack.position);
            let first = durable.entry(key).or_insert(at);
            *first = (*first).min(at);
        }
    }
    for delivery in &history.deliveries {
        let key = (delivery.topic.as_str(), delivery.subscription.as_str(), delivery.position);
        let Some(acked_at) = durable.get(&key) else { continue };
        finding.compared += 1;
        // The first delivery of a session may have been on its way when the receipt came; a session
        // whose first delivery is later began later or nearly so.
        let began = session_began.get(&delivery.session).copied().unwrap_or(0);
        if began > *acked_at && delivery.at > *acked_at {
            finding.broken(
                "P4",
                "subscription_repeats_nothing",
                format!(
                    "{}/{} got {} again in session {}, {} ms after its acknowledgement was durable",
                    delivery.topic,
                    delivery.subscription,
                    delivery.position,
                    delivery.session,
                    (delivery.at - acked_at) / 1_000_000
                ),
            );
        }
    }
    finding
}

/// What no consumer ever asked to acknowledge comes again, to the very end.
pub fn unacknowledged_comes_again(history: &History) -> Finding {
    let mut finding = Finding::default();
    let asked: BTreeSet<(&str, &str, _)> = history
        .acks
        .iter()
        .map(|ack| (ack.topic.as_str(), ack.subscription.as_str(), ack.position))
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
            let was_asked = asked.contains(&(topic.as_str(), subscription.as_str(), *place))
                || up_to.is_some_and(|up_to| place <= up_to);
            if was_asked {
                continue;
            }
            finding.compared += 1;
            if !came.contains(place) {
                let detail = format!(
                    "{topic}/{subscription}: {number:?} at {place} was never acknowledged and does not \
                     come again"
                );
                finding.broken("P4", "unacknowledged_comes_again", detail);
            }
        }
    }
    finding
}
