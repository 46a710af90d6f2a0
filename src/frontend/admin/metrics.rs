//! A scrape: what every loaded topic and every part of the node tells, in one text.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{StatusCode, header};

use super::AdminState;
use super::refusal::Refusal;
use crate::broker::{Broker, SubscriptionStats, TopicStats};
use crate::telemetry::{Metric, Sample, exposition, metrics};

/// Label names and values.
type Labels = Vec<(&'static str, String)>;

/// Everything, as OpenMetrics text.
pub(crate) async fn scrape(State(state): State<Arc<AdminState>>) -> Result<Response, Refusal> {
    let mut samples = vec![
        Sample {
            metric: &metrics::VERSION_INFO,
            labels: vec![("version", env!("CARGO_PKG_VERSION").to_owned())],
            value: 1.0,
        },
        Sample::plain(&metrics::READY, f64::from(u8::from(state.health.ready().is_ok()))),
        Sample::plain(&metrics::HTTP_CONNECTIONS, state.counters.open() as f64),
        Sample::plain(&metrics::HTTP_REFUSED, state.counters.refused() as f64),
    ];
    if let Ok(broker) = state.broker() {
        add_topics(&state, broker, &mut samples).await;
    }
    for source in state.sources() {
        samples.extend(source.samples());
    }
    let text = exposition::encode(samples)
        .map_err(|error| Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))?;
    Ok(([(header::CONTENT_TYPE, exposition::CONTENT_TYPE)], text).into_response())
}

async fn add_topics(state: &AdminState, broker: &Broker, samples: &mut Vec<Sample>) {
    let mut topics = broker.loaded_topics();
    topics.sort_by(|left, right| left.name().cmp(right.name()));
    let cluster = &state.config.cluster;
    let mut by_namespace: BTreeMap<String, u64> = BTreeMap::new();
    let mut left_out = 0_u64;
    for (index, topic) in topics.iter().enumerate() {
        let namespace = topic.name().namespace().to_string();
        *by_namespace.entry(namespace.clone()).or_default() += 1;
        if index >= state.config.topic_series_max {
            left_out += 1;
            continue;
        }
        let labels = vec![
            ("cluster", cluster.clone()),
            ("namespace", namespace),
            ("topic", topic.name().to_string()),
        ];
        add_topic(&topic.stats().await, &labels, samples);
    }
    for (namespace, count) in by_namespace {
        let labels = vec![("cluster", cluster.clone()), ("namespace", namespace)];
        samples.push(Sample { metric: &metrics::TOPICS, labels, value: count as f64 });
    }
    samples.push(Sample::plain(&metrics::TOPIC_SERIES_LEFT_OUT, left_out as f64));
}

fn add_topic(stats: &TopicStats, labels: &Labels, samples: &mut Vec<Sample>) {
    let consumers: usize = stats.subscriptions.iter().map(|one| one.consumers.len()).sum();
    let backlog = stats.subscriptions.iter().map(|one| one.backlog_entries).max().unwrap_or(0);
    let values: [(&'static Metric, f64); 16] = [
        (&metrics::SUBSCRIPTIONS, stats.subscriptions.len() as f64),
        (&metrics::PRODUCERS, stats.publishers.len() as f64),
        (&metrics::CONSUMERS, consumers as f64),
        (&metrics::RATE_IN, stats.inward.message_rate),
        (&metrics::RATE_OUT, stats.outward.message_rate),
        (&metrics::THROUGHPUT_IN, stats.inward.byte_rate),
        (&metrics::THROUGHPUT_OUT, stats.outward.byte_rate),
        (&metrics::BYTES_IN, stats.inward.bytes as f64),
        (&metrics::MESSAGES_IN, stats.inward.messages as f64),
        (&metrics::BYTES_OUT, stats.outward.bytes as f64),
        (&metrics::MESSAGES_OUT, stats.outward.messages as f64),
        (&metrics::AVERAGE_MESSAGE, stats.average_message_bytes),
        // One copy is all a topic's statistics know; replicas are not counted yet.
        (&metrics::STORAGE, stats.storage_bytes as f64),
        (&metrics::STORAGE_LOGICAL, stats.storage_bytes as f64),
        (&metrics::STORAGE_BACKLOG, stats.backlog_bytes as f64),
        (&metrics::BACKLOG, backlog as f64),
    ];
    add_all(&values, labels, samples);
    for subscription in &stats.subscriptions {
        let mut labels = labels.clone();
        labels.push(("subscription", subscription.name.clone()));
        add_subscription(subscription, &labels, samples);
    }
}

fn add_subscription(stats: &SubscriptionStats, labels: &Labels, samples: &mut Vec<Sample>) {
    let values: [(&'static Metric, f64); 11] = [
        (&metrics::SUBSCRIPTION_BACKLOG, stats.backlog_entries as f64),
        (&metrics::SUBSCRIPTION_BACKLOG_NO_DELAYED, stats.backlog_entries as f64),
        (&metrics::SUBSCRIPTION_DELAYED, 0.0),
        (&metrics::SUBSCRIPTION_REPLAY, stats.in_replay as f64),
        (&metrics::SUBSCRIPTION_REDELIVER, stats.redeliver_rate),
        (&metrics::SUBSCRIPTION_ACK_RATE, stats.ack_rate),
        (&metrics::SUBSCRIPTION_UNACKED, stats.unacked_messages as f64),
        (&metrics::SUBSCRIPTION_BLOCKED, f64::from(u8::from(stats.blocked_on_unacked))),
        (&metrics::SUBSCRIPTION_RATE_OUT, stats.outward.message_rate),
        (&metrics::SUBSCRIPTION_THROUGHPUT_OUT, stats.outward.byte_rate),
        (&metrics::SUBSCRIPTION_CONSUMERS, stats.consumers.len() as f64),
    ];
    add_all(&values, labels, samples);
}

fn add_all(values: &[(&'static Metric, f64)], labels: &Labels, samples: &mut Vec<Sample>) {
    samples.extend(values.iter().map(|&(metric, value)| Sample {
        metric,
        labels: labels.clone(),
        value,
    }));
}
