//! What a key's type cannot say: values that are too small or too large, and values that do not go together.

use std::fmt::Display;
use std::time::Duration;

use super::node_config::parse_founder;
use super::{Effective, Problem, RoleName, Settings};
use crate::bookie::{JOURNAL_DIRECTORIES_MAX, LEDGER_DIRECTORIES_MAX};
use crate::broker::ownership::bundle::BUNDLES_OF_NAMESPACE_MAX;
use crate::domain::FormatLevel;
use crate::ledger::ENSEMBLE_MAX;
use crate::runtime::is_any_host;

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;
const GIB: u64 = 1024 * MIB;
const MILLISECOND: Duration = Duration::from_millis(1);
const HOUR: Duration = Duration::from_secs(3600);
/// Longer than any node runs, and far from where clocks overflow.
const TEN_YEARS: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// Adds everything that a node cannot work with.
pub(crate) fn check(effective: &Effective, problems: &mut Vec<Problem>) {
    let mut check = Check { effective, settings: &effective.settings, problems };
    check.words();
    check.numbers();
    check.durations();
    check.together();
    check.cluster();
}

struct Check<'a> {
    effective: &'a Effective,
    settings: &'a Settings,
    problems: &'a mut Vec<Problem>,
}

impl Check<'_> {
    fn bad(&mut self, key: &str, value: &dyn Display, reason: &str, allowed: String) {
        self.problems.push(Problem::BadValue {
            origin: self.effective.origin(key),
            key: key.to_owned(),
            value: value.to_string(),
            reason: reason.to_owned(),
            allowed,
        });
    }

    fn words(&mut self) {
        let Settings { data, rpc, pulsar, http, grpc, broker, .. } = self.settings;
        for (key, text) in [
            ("data", data.as_os_str().to_string_lossy().as_ref()),
            ("rpc.host", &rpc.host),
            ("pulsar.host", &pulsar.host),
            ("http.host", &http.host),
            ("grpc.host", &grpc.host),
            ("broker.cluster", &broker.cluster),
        ] {
            if text.trim().is_empty() {
                self.bad(key, &quoted(text), "empty", "any other text".to_owned());
            }
        }
        let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
        if !broker.cluster.chars().all(plain) {
            let allowed = "letters, digits and -_. only".to_owned();
            self.bad("broker.cluster", &quoted(&broker.cluster), "other letters", allowed);
        }
        for (key, told, scheme) in [
            ("rpc.advertised", &rpc.advertised, ""),
            ("pulsar.advertised", &pulsar.advertised, "pulsar://"),
            ("http.advertised", &http.advertised, "http://"),
            ("grpc.advertised", &grpc.advertised, ""),
        ] {
            let address = told.strip_prefix(scheme).unwrap_or(told);
            if !told.is_empty() && !is_address(address) {
                let allowed = "host:port by which others reach this node, or nothing".to_owned();
                self.bad(key, &quoted(told), "not an address", allowed);
            }
        }
        for address in &self.settings.metadata.addresses {
            if !is_address(address) {
                let allowed = "host:port, the node-to-node port of a metadata node".to_owned();
                self.bad("metadata.addresses", &quoted(address), "not an address", allowed);
            }
        }
    }

    fn numbers(&mut self) {
        let Settings { pulsar, bookie, ledger, broker, repair, replication, .. } = self.settings;
        let level = self.settings.format_level;
        let size = |value: usize| value as u64;
        let most_copies = u64::from(ENSEMBLE_MAX);
        for (key, value, least, most) in [
            ("format_level", level.into(), 1, FormatLevel::NEWEST.number().into()),
            ("pulsar.message_bytes_max", size(pulsar.message_bytes_max), KIB, 32 * MIB),
            ("bookie.journal_file_bytes", bookie.journal_file_bytes, MIB, 16 * GIB),
            ("bookie.journal_group_bytes", size(bookie.journal_group_bytes), 4 * KIB, 64 * MIB),
            ("bookie.journal_queue_bytes", size(bookie.journal_queue_bytes), MIB, 64 * GIB),
            ("bookie.write_cache_bytes", size(bookie.write_cache_bytes), MIB, 64 * GIB),
            ("bookie.read_cache_bytes", size(bookie.read_cache_bytes), 0, 64 * GIB),
            ("bookie.entry_log_bytes", bookie.entry_log_bytes, MIB, 64 * GIB),
            ("ledger.pending_entries_max", size(ledger.pending_entries_max), 1, 10_000_000),
            ("ledger.pending_bytes_max", size(ledger.pending_bytes_max), MIB, 64 * GIB),
            ("ledger.racks_min", ledger.racks_min.into(), 1, most_copies),
            ("broker.ledger_entries_max", broker.ledger_entries_max, 1, u64::MAX),
            ("broker.ledger_bytes_max", broker.ledger_bytes_max, 1, u64::MAX),
            ("broker.topic_pending_max", size(broker.topic_pending_max), 1, 10_000_000),
            (
                "broker.unacked_per_consumer_max",
                broker.unacked_per_consumer_max.into(),
                1,
                u64::MAX,
            ),
            ("broker.bundles", broker.bundles.into(), 1, BUNDLES_OF_NAMESPACE_MAX.into()),
            ("repair.bytes_per_second", repair.bytes_per_second, 64 * KIB, 1024 * GIB),
            ("replication.ensemble", replication.ensemble.into(), 1, most_copies),
            ("replication.write_quorum", replication.write_quorum.into(), 1, most_copies),
            ("replication.ack_quorum", replication.ack_quorum.into(), 1, most_copies),
        ] {
            let allowed = || match most {
                u64::MAX => format!("{least} or more"),
                most => format!("{least} to {most}"),
            };
            if value < least {
                self.bad(key, &value, "too small", allowed());
            } else if value > most {
                self.bad(key, &value, "too large", allowed());
            }
        }
    }

    fn durations(&mut self) {
        let Settings { bookie, ledger, broker, repair, .. } = self.settings;
        for (key, value, least, most) in [
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
            ("repair.lost_bookie_grace", repair.lost_bookie_grace, MILLISECOND, TEN_YEARS),
            ("repair.open_tail_grace", repair.open_tail_grace, MILLISECOND, TEN_YEARS),
            ("repair.audit_interval", repair.audit_interval, 100 * MILLISECOND, TEN_YEARS),
            ("repair.check_interval", repair.check_interval, 1000 * MILLISECOND, TEN_YEARS),
            ("repair.replicator_interval", repair.replicator_interval, 100 * MILLISECOND, HOUR),
            ("repair.session_time_to_live", repair.session_time_to_live, 500 * MILLISECOND, HOUR),
        ] {
            let shown = humantime::format_duration;
            let allowed = || format!("{} to {}", shown(least), shown(most));
            if value < least {
                self.bad(key, &shown(value), "too short", allowed());
            } else if value > most {
                self.bad(key, &shown(value), "too long", allowed());
            }
        }
    }

    /// Folders: said in one way only, not too many, none twice.
    fn directories(&mut self) {
        let bookie = &self.settings.bookie;
        let journals =
            std::iter::once(&bookie.journal_directory).chain(&bookie.journal_directories);
        let journals = journals.map(|path| ("a journal directory", path)).collect::<Vec<_>>();
        for (key, many, only_key, only, most, others) in [
            (
                "bookie.journal_directories",
                &bookie.journal_directories,
                "bookie.journal_directory",
                &bookie.journal_directory,
                JOURNAL_DIRECTORIES_MAX,
                Vec::new(),
            ),
            (
                "bookie.ledger_directories",
                &bookie.ledger_directories,
                "bookie.ledger_directory",
                &bookie.ledger_directory,
                LEDGER_DIRECTORIES_MAX,
                journals,
            ),
        ] {
            let told = |path: &std::path::Path| quoted(&path.to_string_lossy());
            if !many.is_empty() && !only.as_os_str().is_empty() {
                let reason = format!("{only_key} is said, too");
                let allowed = "one of the two; the first of several is what was the only one";
                self.bad(key, &many.len(), &reason, allowed.to_owned());
            }
            if many.len() > most {
                self.bad(key, &many.len(), "too many", format!("{most} at most"));
            }
            for (at, path) in many.iter().enumerate() {
                let another = || "a folder of its own, on a disk of its own".to_owned();
                if path.as_os_str().is_empty() {
                    self.bad(key, &told(path), "empty", another());
                } else if many[..at].contains(path) {
                    self.bad(key, &told(path), "there twice", another());
                } else if let Some((what, _)) = others.iter().find(|(_, other)| *other == path) {
                    self.bad(key, &told(path), &format!("{what} is the same"), another());
                }
            }
        }
        let alone = &bookie.ledger_directory;
        if !alone.as_os_str().is_empty() && bookie.journal_directories.contains(alone) {
            let (key, reason) = ("bookie.ledger_directory", "a journal directory is the same");
            let path = quoted(&alone.to_string_lossy());
            self.bad(key, &path, reason, "a folder of its own".to_owned());
        }
    }

    /// Values that do not go together. Each is told with the one that is more likely wrong.
    fn together(&mut self) {
        let Settings { pulsar, http, grpc, rpc, bookie, ledger, replication, .. } = self.settings;
        let is_broker = self.settings.node_roles().broker;
        let mut taken: Vec<(&str, &str, u16)> = Vec::new();
        for (key, host, port, is_used) in [
            ("pulsar.port", &pulsar.host, pulsar.port, is_broker),
            ("grpc.port", &grpc.host, grpc.port, is_broker),
            ("http.port", &http.host, http.port, true),
            ("rpc.port", &rpc.host, rpc.port, !self.settings.is_standalone()),
        ] {
            if port == 0 || !is_used {
                continue;
            }
            if let Some((other, ..)) = taken.iter().find(|(_, at, it)| at == host && *it == port) {
                let reason = format!("{other} is the same");
                self.bad(key, &port, &reason, "another port, or 0 for any".to_owned());
            }
            taken.push((key, host, port));
        }
        self.directories();
        let message = pulsar.message_bytes_max as u64;
        for (key, value) in [
            ("bookie.journal_queue_bytes", bookie.journal_queue_bytes as u64),
            ("bookie.write_cache_bytes", bookie.write_cache_bytes as u64),
            ("bookie.entry_log_bytes", bookie.entry_log_bytes),
            ("ledger.pending_bytes_max", ledger.pending_bytes_max as u64),
        ] {
            if value < message {
                let reason = "less than one message";
                let allowed = format!("at least pulsar.message_bytes_max, {message}");
                self.bad(key, &value, reason, allowed);
            }
        }
        let group = bookie.journal_group_bytes as u64 + message;
        if bookie.journal_file_bytes < group {
            let reason = "less than bookie.journal_group_bytes and one message together";
            let allowed = format!("at least {group}");
            self.bad("bookie.journal_file_bytes", &bookie.journal_file_bytes, reason, allowed);
        }
        if ledger.racks_min > replication.write_quorum {
            let reason = "more than replication.write_quorum";
            let allowed = format!("1 to {}", replication.write_quorum);
            self.bad("ledger.racks_min", &ledger.racks_min, reason, allowed);
        }
        for (key, value, name, least) in [
            (
                "replication.ensemble",
                replication.ensemble,
                "replication.write_quorum",
                replication.write_quorum,
            ),
            (
                "replication.write_quorum",
                replication.write_quorum,
                "replication.ack_quorum",
                replication.ack_quorum,
            ),
        ] {
            if value < least {
                let reason = format!("less than {name}");
                self.bad(key, &value, &reason, format!("at least {name}, {least}"));
            }
        }
    }

    /// What only a node of a cluster needs.
    fn cluster(&mut self) {
        let Settings { roles, rpc, metadata, replication, .. } = self.settings;
        if self.settings.is_standalone() {
            if replication.ensemble != 1 {
                let reason = "a standalone node has one bookie";
                let allowed = "1, or name roles".to_owned();
                self.bad("replication.ensemble", &replication.ensemble, reason, allowed);
            }
            return;
        }
        let mut seen = Vec::new();
        for role in roles {
            if seen.contains(role) {
                let allowed = "each of metadata, bookie, broker at most once".to_owned();
                self.bad("roles", &format!("{role:?}").to_lowercase(), "named twice", allowed);
            }
            seen.push(*role);
        }
        let has = |role| roles.contains(&role);
        self.metadata_group(has(RoleName::Metadata));
        if !has(RoleName::Metadata) && metadata.addresses.is_empty() {
            let reason = "this node has no metadata of its own";
            let allowed = "host:port of at least one metadata node".to_owned();
            self.bad("metadata.addresses", &"[]", reason, allowed);
        }
        let address = format!("{}:{}", rpc.host, rpc.port);
        if has(RoleName::Bookie) && rpc.advertised.is_empty() && is_any_host(&address) {
            let reason = "the port is bound to every address, and others must be told one";
            let allowed = "host:port by which others reach this node, or set rpc.host".to_owned();
            self.bad("rpc.advertised", &"\"\"", reason, allowed);
        }
    }
}

impl Check<'_> {
    fn metadata_group(&mut self, has_metadata: bool) {
        let metadata = &self.settings.metadata;
        let mut ids = Vec::new();
        for founder in &metadata.founders {
            let allowed = || "id@host:port, each id above 0 and once".to_owned();
            match parse_founder(founder) {
                Some((id, address)) if is_address(&address) && !ids.contains(&id) => ids.push(id),
                Some((id, _)) if ids.contains(&id) => {
                    self.bad(
                        "metadata.founders",
                        &quoted(founder),
                        "its id is there twice",
                        allowed(),
                    );
                }
                _ => self.bad("metadata.founders", &quoted(founder), "not a member", allowed()),
            }
        }
        let member = metadata.member;
        if member > 0 && !has_metadata {
            let reason = "only a node with the metadata role is a member";
            self.bad("metadata.member", &member, reason, "0, or add the role".to_owned());
        }
        if has_metadata && member == 0 && !ids.is_empty() {
            let reason = "this node would keep metadata alone, beside the group";
            self.bad("metadata.member", &member, reason, "its id among the founders".to_owned());
        }
        if member > 0 && !ids.is_empty() && !ids.contains(&member) {
            let reason = "not among metadata.founders";
            let allowed = "one of their ids; a member that joins later has no founders".to_owned();
            self.bad("metadata.member", &member, reason, allowed);
        }
        if member > 0 && ids.is_empty() && metadata.addresses.is_empty() {
            let reason = "a member that joins must know the group";
            let allowed = "host:port of at least one of its members".to_owned();
            self.bad("metadata.addresses", &"[]", reason, allowed);
        }
    }
}

fn quoted(text: &str) -> String {
    format!("{text:?}")
}

fn is_address(text: &str) -> bool {
    text.rsplit_once(':').is_some_and(|(host, port)| {
        !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0)
    })
}

#[cfg(test)]
mod tests {
    use crate::cli::settings::source::tests::from_text;

    fn refusal(toml: &str) -> String {
        from_text(toml).expect_err(toml).to_string()
    }

    #[test]
    fn defaults_and_small_but_sound_values_are_good() {
        from_text("").unwrap();
        let small = "[pulsar]\nmessage_bytes_max = 262144\nadvertised = \"pulsar://a.b:6650\"\n\
                     [bookie]\njournal_file_bytes = 1048576\nwrite_cache_bytes = 1048576\n\
                     read_cache_bytes = 0\n\
                     entry_log_bytes = 1048576\nfree_space_low_bytes = 0\n\
                     scrub_bytes_per_second = 0\n[broker]\nledger_entries_max = 1\n\
                     tail_cache_bytes = 0\n";
        from_text(small).unwrap();
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
            ("bookie", "read_cache_bytes", ["-1", huge]),
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
        assert!(refusal("format_level = 0").contains("format_level = 0: too small"));
        assert!(refusal("format_level = 3").contains("allowed: 1 to 2"));
        assert_eq!(from_text("format_level = 1").unwrap().settings.format_level, 1);
        assert!(refusal("[broker]\nledger_entries_max = 0").contains("broker.ledger_entries_max"));
        assert!(
            refusal("[http]\nport = 6650").contains("http.port = 6650: pulsar.port is the same")
        );
        assert!(refusal("[grpc]\nport = 6650").contains("grpc.port = 6650"));
        assert!(refusal("[grpc]\nadvertised = \"x\"").contains("grpc.advertised"));
        for (directories, words) in [
            ("journal_directories = [\"a\", \"a\"]", "there twice"),
            ("journal_directories = [\"\"]", "empty"),
            ("journal_directories = [\"a\"]\njournal_directory = \"b\"", "said, too"),
        ] {
            let text = refusal(&format!("[bookie]\n{directories}"));
            assert!(text.contains("bookie.journal_directories"), "{text}");
            assert!(text.contains(words), "{text}");
        }
        let same = "[bookie]\njournal_directories = [\"a\", \"b\"]\nledger_directory = \"b\"";
        assert!(refusal(same).contains("bookie.ledger_directory"));
        for (directories, words) in [
            ("ledger_directories = [\"a\", \"a\"]", "there twice"),
            ("ledger_directories = [\"\"]", "empty"),
            ("ledger_directories = [\"a\"]\nledger_directory = \"b\"", "said, too"),
            ("ledger_directories = [\"a\"]\njournal_directory = \"a\"", "is the same"),
            ("ledger_directories = [\"a\"]\njournal_directories = [\"b\", \"a\"]", "is the same"),
        ] {
            let text = refusal(&format!("[bookie]\n{directories}"));
            assert!(text.contains("bookie.ledger_directories"), "{text}");
            assert!(text.contains(words), "{text}");
        }
        let many: Vec<String> = (0..17).map(|number| format!("\"{number}\"")).collect();
        for kind in ["journal", "ledger"] {
            let many = format!("[bookie]\n{kind}_directories = [{}]", many.join(", "));
            assert!(refusal(&many).contains("16 at most"));
        }
        let bound = "[bookie]\njournal_file_bytes = 5300000";
        assert!(refusal(bound).contains("one message together"));
    }

    #[test]
    fn a_node_of_a_cluster_needs_what_others_need_of_it() {
        let good = "roles = [\"bookie\"]\n[rpc]\nadvertised = \"b1:7000\"\n\
                    [metadata]\naddresses = [\"m1:7000\", \"m2:7000\"]\n";
        from_text(good).unwrap();
        for (from, to, words) in [
            ("[\"bookie\"]", "[\"bookie\", \"bookie\"]", "roles = bookie: named twice"),
            ("[\"m1:7000\", \"m2:7000\"]", "[]", "no metadata of its own"),
            ("m2:7000", "m2", "metadata.addresses = \"m2\": not an address"),
            ("b1:7000", "", "rpc.advertised = \"\": the port is bound to every address"),
        ] {
            let text = refusal(&good.replace(from, to));
            assert!(text.contains(words), "{words:?} is not in {text}");
        }
        let group = good.replace("bookie", "metadata").replace(
            "[metadata]",
            "[metadata]\nmember = 2\nfounders = [\"1@m1:7000\", \"2@m2:7000\"]",
        );
        from_text(&group).unwrap();
        for (from, to, words) in [
            ("member = 2", "member = 3", "metadata.member = 3: not among"),
            ("member = 2", "member = 0", "beside the group"),
            ("2@m2:7000", "1@m2:7000", "there twice"),
            ("2@m2:7000", "m2:7000", "metadata.founders = \"m2:7000\": not a member"),
            ("[\"metadata\"]", "[\"broker\"]", "only a node with the metadata role"),
        ] {
            let text = refusal(&group.replace(from, to));
            assert!(text.contains(words), "{words:?} is not in {text}");
        }
        let quorum = format!("{good}[replication]\nensemble = 3\nwrite_quorum = 4\nack_quorum = 5");
        let text = refusal(&quorum);
        assert!(text.contains("replication.ensemble = 3: less than replication.write_quorum"));
        assert!(text.contains("replication.write_quorum = 4: less than replication.ack_quorum"));
        assert!(refusal("[replication]\nensemble = 3").contains("one bookie"));
    }
}
