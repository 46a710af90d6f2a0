//! What a key's type cannot say: values that are too small or too large, and values that do not go together.

use std::time::Duration;

use super::{Settings, SettingsError};
use crate::broker::ownership::bundle::BUNDLES_OF_NAMESPACE_MAX;

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;
const GIB: u64 = 1024 * MIB;
const MILLISECOND: Duration = Duration::from_millis(1);
const HOUR: Duration = Duration::from_secs(3600);
/// Longer than any node runs, and far from where clocks overflow.
const TEN_YEARS: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// Refuses the first value that a node cannot work with.
pub(crate) fn check(settings: &Settings) -> Result<(), SettingsError> {
    let found = words(settings)
        .and_then(|()| numbers(settings))
        .and_then(|()| durations(settings))
        .and_then(|()| together(settings));
    found.map_err(SettingsError::Conflict)
}

fn words(settings: &Settings) -> Result<(), String> {
    for (name, text) in [
        ("data", settings.data.as_os_str().to_string_lossy().as_ref()),
        ("pulsar.host", &settings.pulsar.host),
        ("http.host", &settings.http.host),
        ("grpc.host", &settings.grpc.host),
        ("broker.cluster", &settings.broker.cluster),
    ] {
        if text.trim().is_empty() {
            return Err(format!("{name} must not be empty"));
        }
    }
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    if !settings.broker.cluster.chars().all(plain) {
        return Err(format!(
            "broker.cluster is {:?}: letters, digits and -_. only",
            settings.broker.cluster
        ));
    }
    for (name, advertised) in [
        ("pulsar.advertised", settings.pulsar.advertised.as_str()),
        ("grpc.advertised", settings.grpc.advertised.as_str()),
    ] {
        let address = advertised.strip_prefix("pulsar://").unwrap_or(advertised);
        let is_address = address.rsplit_once(':').is_some_and(|(host, port)| {
            !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0)
        });
        if !advertised.is_empty() && !is_address {
            return Err(format!("{name} is {advertised:?}: expected host:port"));
        }
    }
    Ok(())
}

fn numbers(settings: &Settings) -> Result<(), String> {
    let Settings { pulsar, bookie, ledger, broker, .. } = settings;
    let size = |value: usize| value as u64;
    for (name, value, least, most) in [
        ("pulsar.message_bytes_max", size(pulsar.message_bytes_max), KIB, 32 * MIB),
        ("bookie.journal_file_bytes", bookie.journal_file_bytes, MIB, 16 * GIB),
        ("bookie.journal_group_bytes", size(bookie.journal_group_bytes), 4 * KIB, 64 * MIB),
        ("bookie.journal_queue_bytes", size(bookie.journal_queue_bytes), MIB, 64 * GIB),
        ("bookie.write_cache_bytes", size(bookie.write_cache_bytes), MIB, 64 * GIB),
        ("bookie.entry_log_bytes", bookie.entry_log_bytes, MIB, 64 * GIB),
        ("ledger.pending_entries_max", size(ledger.pending_entries_max), 1, 10_000_000),
        ("ledger.pending_bytes_max", size(ledger.pending_bytes_max), MIB, 64 * GIB),
        ("broker.ledger_entries_max", broker.ledger_entries_max, 1, u64::MAX),
        ("broker.ledger_bytes_max", broker.ledger_bytes_max, 1, u64::MAX),
        ("broker.topic_pending_max", size(broker.topic_pending_max), 1, 10_000_000),
        ("broker.unacked_per_consumer_max", broker.unacked_per_consumer_max.into(), 1, u64::MAX),
        ("broker.bundles", broker.bundles.into(), 1, BUNDLES_OF_NAMESPACE_MAX.into()),
    ] {
        if value < least {
            return Err(format!("{name} is {value}: at least {least} is needed"));
        }
        if value > most {
            return Err(format!("{name} is {value}: at most {most} can be used"));
        }
    }
    Ok(())
}

fn durations(settings: &Settings) -> Result<(), String> {
    let Settings { bookie, ledger, broker, .. } = settings;
    for (name, value, least, most) in [
        ("bookie.checkpoint_interval", bookie.checkpoint_interval, 10 * MILLISECOND, HOUR),
        ("bookie.garbage_interval", bookie.garbage_interval, 100 * MILLISECOND, TEN_YEARS),
        ("ledger.add_timeout", ledger.add_timeout, 10 * MILLISECOND, HOUR),
        ("ledger.read_timeout", ledger.read_timeout, 10 * MILLISECOND, HOUR),
        ("ledger.speculative_read_delay", ledger.speculative_read_delay, MILLISECOND, HOUR),
        ("broker.ledger_age_max", broker.ledger_age_max, 1000 * MILLISECOND, TEN_YEARS),
        ("broker.trim_interval", broker.trim_interval, 10 * MILLISECOND, TEN_YEARS),
        ("broker.cursor_flush_interval", broker.cursor_flush_interval, MILLISECOND, HOUR),
        ("broker.session_time_to_live", broker.session_time_to_live, 100 * MILLISECOND, HOUR),
        ("broker.shedding_interval", broker.shedding_interval, Duration::ZERO, TEN_YEARS),
    ] {
        let shown = humantime::format_duration;
        if value < least {
            return Err(format!("{name} is {}: at least {} is needed", shown(value), shown(least)));
        }
        if value > most {
            return Err(format!("{name} is {}: at most {} can be used", shown(value), shown(most)));
        }
    }
    Ok(())
}

fn together(settings: &Settings) -> Result<(), String> {
    let Settings { pulsar, http, grpc, bookie, ledger, .. } = settings;
    let ports = [
        ("pulsar.port", &pulsar.host, pulsar.port),
        ("http.port", &http.host, http.port),
        ("grpc.port", &grpc.host, grpc.port),
    ];
    for (index, (name, host, port)) in ports.iter().enumerate() {
        let mut others = ports.iter().skip(index + 1);
        let clash = others.find(|(_, at, taken)| *port != 0 && port == taken && host == at);
        if let Some((other, ..)) = clash {
            return Err(format!("{name} and {other} are both {port}"));
        }
    }
    let message = pulsar.message_bytes_max as u64;
    for (name, value) in [
        ("bookie.journal_queue_bytes", bookie.journal_queue_bytes as u64),
        ("bookie.write_cache_bytes", bookie.write_cache_bytes as u64),
        ("bookie.entry_log_bytes", bookie.entry_log_bytes),
        ("ledger.pending_bytes_max", ledger.pending_bytes_max as u64),
    ] {
        if value < message {
            return Err(format!(
                "{name} is {value}: less than one message (pulsar.message_bytes_max is {message})"
            ));
        }
    }
    let group = bookie.journal_group_bytes as u64 + message;
    if bookie.journal_file_bytes < group {
        return Err(format!(
            "bookie.journal_file_bytes is {}: less than bookie.journal_group_bytes and one message \
             together ({group})",
            bookie.journal_file_bytes
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(toml: &str) -> String {
        let settings: Settings = toml::from_str(toml).expect(toml);
        check(&settings).expect_err(toml).to_string()
    }

    #[test]
    fn defaults_and_small_but_sound_values_are_good() {
        check(&Settings::default()).unwrap();
        let small = "[pulsar]\nmessage_bytes_max = 262144\nadvertised = \"pulsar://a.b:6650\"\n\
                     [bookie]\njournal_file_bytes = 1048576\nwrite_cache_bytes = 1048576\n\
                     entry_log_bytes = 1048576\nfree_space_low_bytes = 0\n\
                     scrub_bytes_per_second = 0\n[broker]\nledger_entries_max = 1\n\
                     tail_cache_bytes = 0\n";
        check(&toml::from_str(small).unwrap()).unwrap();
    }

    #[test]
    fn every_bad_value_is_refused_by_name() {
        let huge = "9000000000000000000";
        for (section, key, values) in [
            ("pulsar", "message_bytes_max", ["0", "1073741824"]),
            ("pulsar", "host", ["\"\"", "\" \""]),
            ("pulsar", "advertised", ["\"nonsense\"", "\":1\""]),
            ("pulsar", "advertised", ["\"a:0\"", "\"a:70000\""]),
            ("bookie", "journal_file_bytes", ["1", huge]),
            ("bookie", "journal_group_bytes", ["64", huge]),
            ("bookie", "journal_queue_bytes", ["0", "2000000"]),
            ("bookie", "write_cache_bytes", ["0", "2000000"]),
            ("bookie", "entry_log_bytes", ["1", huge]),
            ("bookie", "checkpoint_interval", ["\"0s\"", "\"2h\""]),
            ("bookie", "garbage_interval", ["\"0s\"", "\"1000years\""]),
            ("ledger", "pending_bytes_max", ["0", "2000000"]),
            ("ledger", "pending_entries_max", ["0", huge]),
            ("ledger", "add_timeout", ["\"0s\"", "\"9000years\""]),
            ("ledger", "read_timeout", ["\"0s\"", "\"9000years\""]),
            ("broker", "ledger_age_max", ["\"0s\"", "\"9000years\""]),
            ("broker", "trim_interval", ["\"0s\"", "\"9000years\""]),
            ("broker", "cursor_flush_interval", ["\"0s\"", "\"9000years\""]),
            ("broker", "topic_pending_max", ["0", huge]),
            ("broker", "bundles", ["0", "129"]),
            ("broker", "session_time_to_live", ["\"0s\"", "\"2h\""]),
            ("broker", "cluster", ["\"\"", "\"a/b\""]),
        ] {
            for value in values {
                let text = refusal(&format!("[{section}]\n{key} = {value}\n"));
                assert!(text.contains(&format!("{section}.{key}")), "{key} = {value}: {text}");
            }
        }
        assert!(refusal("data = \"\"").contains("data"));
        assert!(refusal("[broker]\nledger_entries_max = 0").contains("broker.ledger_entries_max"));
        assert!(refusal("[http]\nport = 6650").contains("both 6650"));
        assert!(refusal("[grpc]\nport = 8080").contains("both 8080"));
        assert!(refusal("[grpc]\nadvertised = \"x\"").contains("grpc.advertised"));
        let bound = "[bookie]\njournal_file_bytes = 5300000";
        assert!(refusal(bound).contains("one message together"));
    }
}
