//! Samples as OpenMetrics text, one family after the other in the order of the table.

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use super::metric::{MetricKind, Sample};
use super::metrics;

/// The media type of what [`encode`] writes.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A registry would keep families in maps of random order; a collector writes them as given.
#[derive(Debug)]
struct Scrape(Vec<Sample>);

impl Collector for Scrape {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        for metric in metrics::ALL {
            let kind = match metric.kind {
                MetricKind::Counter => MetricType::Counter,
                MetricKind::Gauge => MetricType::Gauge,
            };
            let mut samples =
                self.0.iter().filter(|sample| std::ptr::eq(sample.metric, *metric)).peekable();
            if samples.peek().is_none() {
                continue;
            }
            let mut family = encoder.encode_descriptor(metric.name, metric.help, None, kind)?;
            for sample in samples {
                let labels: Vec<_> =
                    sample.labels.iter().map(|(name, value)| (*name, escape(value))).collect();
                let one = family.encode_family(&labels)?;
                match metric.kind {
                    MetricKind::Counter => ConstCounter::new(sample.value).encode(one)?,
                    MetricKind::Gauge => ConstGauge::new(sample.value).encode(one)?,
                }
            }
        }
        Ok(())
    }
}

/// The text of a scrape.
pub fn encode(samples: Vec<Sample>) -> Result<String, std::fmt::Error> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Scrape(samples)));
    let mut body = String::new();
    text::encode(&mut body, &registry)?;
    Ok(body)
}

/// The encoder writes label values as they are, and a topic's name may hold a quote.
fn escape(value: &str) -> String {
    let mut escaped = String::with_capacity(value.len());
    for character in value.chars() {
        match character {
            '\\' => escaped.push_str("\\\\"),
            '"' => escaped.push_str("\\\""),
            '\n' => escaped.push_str("\\n"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_types_labels_and_values() {
        let topic = vec![("topic", "a\"b\\c".to_owned())];
        let samples = vec![
            Sample { metric: &metrics::RATE_IN, labels: topic.clone(), value: 1.5 },
            Sample { metric: &metrics::MESSAGES_IN, labels: topic, value: 3.0 },
            Sample::plain(&metrics::READY, 1.0),
        ];
        let text = encode(samples).unwrap();
        assert!(text.contains("# TYPE pulsar_rate_in gauge\n"), "{text}");
        assert!(text.contains("pulsar_rate_in{topic=\"a\\\"b\\\\c\"} 1.5\n"), "{text}");
        assert!(text.contains("pulsar_in_messages_total{topic=\"a\\\"b\\\\c\"} 3"), "{text}");
        assert!(text.contains("seawall_ready 1"), "{text}");
        assert!(text.ends_with("# EOF\n"), "{text}");
    }
}
