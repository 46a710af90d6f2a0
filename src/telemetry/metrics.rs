//! Every metric by name. Where Pulsar has a name for the same thing, it is Pulsar's, so that dashboards
//! and alerts written for it work; the rest begins with `seawall_`.

use super::metric::{Metric, MetricKind};

const fn gauge(name: &'static str, help: &'static str) -> Metric {
    Metric { name, help, kind: MetricKind::Gauge }
}

const fn counter(name: &'static str, help: &'static str) -> Metric {
    Metric { name, help, kind: MetricKind::Counter }
}

macro_rules! table {
    ($($constant:ident = $make:ident($name:literal, $help:literal);)+) => {
        $(
            #[doc = $help]
            pub static $constant: Metric = $make($name, $help);
        )+
        /// All rows, in the order they are written.
        pub static ALL: &[&Metric] = &[$(&$constant),+];
    };
}

table! {
    VERSION_INFO = gauge("pulsar_version_info", "Always 1; the version is a label.");
    TOPICS = gauge("pulsar_topics_count", "Topics loaded here, by namespace.");
    SUBSCRIPTIONS = gauge("pulsar_subscriptions_count", "Subscriptions.");
    PRODUCERS = gauge("pulsar_producers_count", "Connected producers.");
    CONSUMERS = gauge("pulsar_consumers_count", "Connected consumers.");
    RATE_IN = gauge("pulsar_rate_in", "Messages published a second.");
    RATE_OUT = gauge("pulsar_rate_out", "Messages delivered a second.");
    THROUGHPUT_IN = gauge("pulsar_throughput_in", "Bytes published a second.");
    THROUGHPUT_OUT = gauge("pulsar_throughput_out", "Bytes delivered a second.");
    BYTES_IN = counter("pulsar_in_bytes", "Bytes published since the topic was loaded.");
    MESSAGES_IN = counter("pulsar_in_messages", "Messages published since the topic was loaded.");
    BYTES_OUT = counter("pulsar_out_bytes", "Bytes delivered since the topic was loaded.");
    MESSAGES_OUT = counter("pulsar_out_messages", "Messages delivered since the topic was loaded.");
    AVERAGE_MESSAGE = gauge("pulsar_average_msg_size", "Mean size of a published message, bytes.");
    STORAGE = gauge("pulsar_storage_size", "Bytes stored, all replicas.");
    STORAGE_LOGICAL = gauge("pulsar_storage_logical_size", "Bytes stored, one copy.");
    STORAGE_BACKLOG = gauge("pulsar_storage_backlog_size", "Bytes the slowest subscription has not acknowledged.");
    BACKLOG = gauge("pulsar_msg_backlog", "Entries not acknowledged, the largest over all subscriptions.");
    SUBSCRIPTION_BACKLOG = gauge("pulsar_subscription_back_log", "Entries not acknowledged.");
    SUBSCRIPTION_BACKLOG_NO_DELAYED = gauge("pulsar_subscription_back_log_no_delayed", "Entries not acknowledged and not delayed.");
    SUBSCRIPTION_DELAYED = gauge("pulsar_subscription_delayed", "Entries whose delivery is delayed.");
    SUBSCRIPTION_REPLAY = gauge("pulsar_subscription_in_replay", "Entries waiting to be delivered again.");
    SUBSCRIPTION_REDELIVER = gauge("pulsar_subscription_msg_rate_redeliver", "Messages delivered again a second.");
    SUBSCRIPTION_ACK_RATE = gauge("pulsar_subscription_msg_ack_rate", "Messages acknowledged a second.");
    SUBSCRIPTION_UNACKED = gauge("pulsar_subscription_unacked_messages", "Messages given out and not acknowledged.");
    SUBSCRIPTION_BLOCKED = gauge("pulsar_subscription_blocked_on_unacked_messages", "1 when too many unacknowledged messages stop delivery.");
    SUBSCRIPTION_RATE_OUT = gauge("pulsar_subscription_msg_rate_out", "Messages delivered a second.");
    SUBSCRIPTION_THROUGHPUT_OUT = gauge("pulsar_subscription_msg_throughput_out", "Bytes delivered a second.");
    SUBSCRIPTION_CONSUMERS = gauge("pulsar_subscription_consumers_count", "Connected consumers of the subscription.");
    ACTIVE_CONNECTIONS = gauge("pulsar_active_connections", "Open client connections.");
    CONNECTIONS_CREATED = gauge("pulsar_connection_created_total_count", "Client connections accepted since start.");
    CONNECTIONS_CLOSED = gauge("pulsar_connection_closed_total_count", "Client connections closed since start.");
    CONNECTIONS_REFUSED = counter("seawall_pulsar_connections_refused", "Client connections closed at once because too many were open.");
    PROTOCOL_ERRORS = counter("seawall_pulsar_protocol_errors", "Client connections closed because of what the client sent.");
    HTTP_CONNECTIONS = gauge("seawall_http_connections", "Open HTTP connections.");
    HTTP_REFUSED = counter("seawall_http_connections_refused", "HTTP connections closed at once because too many were open.");
    READY = gauge("seawall_ready", "1 when the node serves.");
    TOPIC_SERIES_LEFT_OUT = gauge("seawall_topic_series_left_out", "Loaded topics without series of their own because there are too many.");
    BOOKIE_ENTRIES = counter("seawall_bookie_entries_added", "Entries made durable since start.");
    BOOKIE_BYTES = counter("seawall_bookie_bytes_added", "Payload bytes made durable since start.");
    BOOKIE_JOURNAL_SYNCS = counter("seawall_bookie_journal_syncs", "Syncs of the journal, or of each of several, since start.");
    BOOKIE_JOURNAL_BYTES = counter("seawall_bookie_journal_bytes", "Bytes written to the journal, or to each of several, since start, padding included.");
    BOOKIE_ENTRY_LOG_BYTES = counter("seawall_bookie_entry_log_bytes", "Bytes written to entry logs since start.");
    BOOKIE_READ_ONLY = gauge("seawall_bookie_read_only", "1 when the bookie takes no writes.");
    BOOKIE_POISONED = gauge("seawall_bookie_poisoned", "1 when the journal failed and nothing more is acknowledged.");
    BOOKIE_CORRUPT = counter("seawall_bookie_corrupt_found", "Damaged copies found since start.");
    BOOKIE_READ_CACHE_HITS = counter("seawall_bookie_read_cache_hits", "Parts of reads answered with entries read ahead, since start.");
    BOOKIE_READ_CACHE_MISSES = counter("seawall_bookie_read_cache_misses", "Parts of reads that had to be read from a disk, since start.");
    BOOKIE_DRAINING = gauge("seawall_bookie_draining", "1 when the bookie was asked to leave.");
    REPAIR_LEDGERS = gauge("seawall_under_replicated_ledgers", "Ledgers marked for repair when this node last looked.");
    REPAIR_ENTRIES = counter("seawall_repair_entries_copied", "Entries this node copied to restore replication since start.");
    REPAIR_BYTES = counter("seawall_repair_bytes_copied", "Payload bytes of the same.");
    REPAIR_PLACES = counter("seawall_repair_places_repaired", "Places in ensembles made whole by this node since start.");
    REPAIR_FAILURES = counter("seawall_repair_attempts_failed", "Attempts at a ledger that left it marked.");
    REPAIR_AUDITOR = gauge("seawall_auditor", "1 while this node is the auditor.");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_well_formed() {
        let mut names: Vec<_> = ALL.iter().map(|metric| metric.name).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        for name in names {
            assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{name}");
            assert!(!name.ends_with("_total"), "the encoder adds it: {name}");
        }
    }
}
