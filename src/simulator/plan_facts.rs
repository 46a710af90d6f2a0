//! The settings of a seed in words, for those who look for seeds with certain ones.

use super::plan::Plan;

impl Plan {
    /// Every key of [`Self::facts`].
    pub const FACTS: &'static [&'static str] = &[
        "metadata",
        "bookies",
        "brokers",
        "shares-nodes",
        "quorum",
        "fault",
        "topics",
        "producers",
        "window",
        "batch",
        "trims",
        "ledger-entries",
        "checkpoint-ms",
        "write-cache",
        "burst",
        "ledger-directories",
        "journal-directories",
    ];

    /// Keys and values; a key with several values is there several times.
    pub fn facts(&self) -> Vec<(&'static str, String)> {
        let (shape, quorum) = (&self.shape, &self.shape.quorum);
        let mut facts = vec![
            ("metadata", shape.metadata.to_string()),
            ("bookies", shape.bookies.to_string()),
            ("brokers", shape.brokers.to_string()),
            ("shares-nodes", shape.shares_nodes.to_string()),
            ("quorum", format!("{}/{}/{}", quorum.ensemble, quorum.write, quorum.ack)),
            ("topics", self.topics.to_string()),
            ("producers", self.producers.to_string()),
            ("window", self.producer_window.to_string()),
            ("batch", self.batch_messages.to_string()),
            ("trims", self.trims.to_string()),
            ("ledger-entries", self.ledger_entries_max.to_string()),
            ("checkpoint-ms", self.checkpoint_interval.as_millis().to_string()),
            ("write-cache", self.write_cache_bytes.to_string()),
            ("ledger-directories", self.ledger_directories.to_string()),
            ("journal-directories", self.journal_directories.to_string()),
            ("burst", self.publish_burst.to_string()),
        ];
        facts.extend(self.faults.iter().map(|kind| ("fault", kind.as_str().to_owned())));
        facts
    }
}
