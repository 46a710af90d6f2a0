//! Where settings come from: defaults, a TOML file, variables `SEAWALL_<SECTION>_<KEY>`, flags; each overrides
//! what is before it, and everything that is wrong is collected.
#![allow(
    clippy::disallowed_methods,
    reason = "configuration is read in this one place, before there is a runtime"
)]

use std::collections::BTreeMap;
use std::path::Path;

use toml::de::DeTable;
use toml::{Table, Value};

use super::problem::{Origin, Problem, Problems, nearest};
use super::{Settings, check};

/// A value that was said.
struct Given {
    value: Value,
    origin: Origin,
}

/// Settings in the making.
pub(crate) struct Source {
    /// By key with its section; what was said last stays.
    given: BTreeMap<String, Given>,
    /// Kinds of all keys.
    model: BTreeMap<String, Value>,
    problems: Vec<Problem>,
}

/// Settings that can be used, and where each was said.
#[derive(Debug)]
pub(crate) struct Effective {
    /// The settings.
    pub(crate) settings: Settings,
    origins: BTreeMap<String, Origin>,
}

impl Effective {
    /// Where the value of a key was said.
    pub(crate) fn origin(&self, key: &str) -> Origin {
        self.origins.get(key).cloned().unwrap_or(Origin::Default)
    }
}

impl Source {
    /// Nothing but the file (if any) and the environment. Flags may follow.
    pub(crate) fn read(file: Option<&Path>) -> Self {
        let mut source = Self::empty();
        if let Some(path) = file {
            match std::fs::read_to_string(path) {
                Ok(text) => source.add_file(path, &text),
                Err(error) => source
                    .problems
                    .push(Problem::Unreadable { path: path.to_owned(), reason: error.to_string() }),
            }
        }
        source.add_variables(&|name| std::env::var(name).ok());
        source
    }

    fn empty() -> Self {
        let mut model = BTreeMap::new();
        if let Ok(defaults) = Table::try_from(Settings::default()) {
            flatten(&defaults, "", &mut |key, value| drop(model.insert(key, value.clone())));
        }
        Self { given: BTreeMap::new(), model, problems: Vec::new() }
    }

    fn add_file(&mut self, path: &Path, text: &str) {
        let origin = |at: usize| {
            let line = 1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count();
            Origin::File { path: path.to_owned(), line }
        };
        let (table, spans) = match (text.parse::<Table>(), DeTable::parse(text)) {
            (Ok(table), Ok(spans)) => (table, spans),
            (Err(error), _) | (_, Err(error)) => {
                let origin = origin(error.span().map_or(0, |span| span.start));
                let reason = error.message().to_owned();
                self.problems.push(Problem::NotToml { origin, reason });
                return;
            }
        };
        let mut lines = BTreeMap::new();
        places(spans.get_ref(), "", &mut |key, at| {
            lines.insert(key, at);
        });
        flatten(&table, "", &mut |key, value| {
            let origin = origin(lines.get(&key).copied().unwrap_or(0));
            self.add(key, value.clone(), origin);
        });
    }

    /// A variable of a name that is no key may be anybody's: it is left alone.
    fn add_variables(&mut self, variable: &dyn Fn(&str) -> Option<String>) {
        let keys: Vec<(String, Value)> =
            self.model.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
        for (key, model) in keys {
            let name = format!("SEAWALL_{}", key.replace('.', "_").to_uppercase());
            if let Some(text) = variable(&name) {
                self.add(key, parse_like(&model, &text), Origin::Variable(name));
            }
        }
    }

    /// Adds a flag, if it was given.
    pub(crate) fn flag<T: Into<Value>>(
        &mut self,
        flag: &'static str,
        key: &str,
        value: Option<T>,
    ) -> &mut Self {
        if let Some(value) = value {
            self.add(key.to_owned(), value.into(), Origin::Flag(flag));
        }
        self
    }

    fn add(&mut self, key: String, value: Value, origin: Origin) {
        let Some(model) = self.model.get(&key) else {
            let suggestion = nearest(&key, self.model.keys().map(String::as_str));
            self.problems.push(Problem::UnknownKey { origin, key, suggestion });
            return;
        };
        // With this key alone: every bad value is found, not only the first.
        let mut alone = Table::new();
        put(&mut alone, &key, value.clone());
        if let Err(error) = alone.try_into::<Settings>() {
            self.problems.push(Problem::BadValue {
                origin,
                key,
                value: value.to_string(),
                reason: error.message().trim().to_owned(),
                allowed: kind_words(model),
            });
            return;
        }
        self.given.insert(key, Given { value, origin });
    }

    /// All of it together, checked.
    pub(crate) fn finish(self) -> Result<Effective, Problems> {
        let mut problems = self.problems;
        let is_cluster = match self.given.get("roles").map(|given| &given.value) {
            Some(Value::Array(roles)) => !roles.is_empty(),
            _ => false,
        };
        let defaults = if is_cluster { Settings::of_cluster() } else { Settings::default() };
        let mut table = Table::try_from(&defaults).unwrap_or_default();
        let mut origins = BTreeMap::new();
        for (key, given) in self.given {
            put(&mut table, &key, given.value);
            origins.insert(key, given.origin);
        }
        match table.try_into::<Settings>() {
            Ok(settings) => {
                let effective = Effective { settings, origins };
                check::check(&effective, &mut problems);
                if problems.is_empty() { Ok(effective) } else { Err(Problems(problems)) }
            }
            // Each value was good alone.
            Err(error) => {
                let reason = error.message().to_owned();
                problems.push(Problem::NotToml { origin: Origin::Default, reason });
                Err(Problems(problems))
            }
        }
    }
}

fn joined(prefix: &str, key: &str) -> String {
    if prefix.is_empty() { key.to_owned() } else { format!("{prefix}.{key}") }
}

/// Every value of a table under its key with its section.
pub(crate) fn flatten(table: &Table, prefix: &str, take: &mut dyn FnMut(String, &Value)) {
    for (key, value) in table {
        let key = joined(prefix, key);
        match value {
            Value::Table(section) => flatten(section, &key, take),
            value => take(key, value),
        }
    }
}

/// The place of every key in the text.
fn places(table: &DeTable<'_>, prefix: &str, take: &mut dyn FnMut(String, usize)) {
    for (key, value) in table.iter() {
        let name = joined(prefix, key.get_ref());
        if let toml::de::DeValue::Table(section) = value.get_ref() {
            places(section, &name, take);
        }
        take(name, key.span().start);
    }
}

fn put(table: &mut Table, key: &str, value: Value) {
    match key.split_once('.') {
        None => drop(table.insert(key.to_owned(), value)),
        Some((section, rest)) => {
            let inner = table.entry(section).or_insert_with(|| Value::Table(Table::new()));
            if let Value::Table(inner) = inner {
                put(inner, rest, value);
            }
        }
    }
}

/// Text as a value of the same kind as `model`; as it is if it cannot be one, to be refused with its words.
fn parse_like(model: &Value, text: &str) -> Value {
    let as_text = || Value::String(text.to_owned());
    match model {
        Value::Integer(_) => text.trim().parse().map_or_else(|_| as_text(), Value::Integer),
        Value::Boolean(_) => text.trim().parse().map_or_else(|_| as_text(), Value::Boolean),
        Value::Array(_) => {
            let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
            Value::Array(words.map(|word| Value::String(word.to_owned())).collect())
        }
        _ => as_text(),
    }
}

fn kind_words(model: &Value) -> String {
    let words = match model {
        Value::Integer(_) => "a whole number",
        Value::Boolean(_) => "true or false",
        Value::Array(_) => "a list of texts, each of the words meant for it",
        Value::String(text) if humantime::parse_duration(text).is_ok() => {
            "a duration, for example \"200ms\", \"30s\" or \"4h\""
        }
        _ => "a text",
    };
    words.to_owned()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// What a file of this text means.
    pub(crate) fn from_text(text: &str) -> Result<Effective, Problems> {
        let mut source = Source::empty();
        source.add_file(Path::new("a.toml"), text);
        source.finish()
    }

    fn from_variables(variable: &dyn Fn(&str) -> Option<String>) -> Result<Effective, Problems> {
        let mut source = Source::empty();
        source.add_variables(variable);
        source.finish()
    }

    #[test]
    fn every_key_can_be_set_by_a_variable() {
        let variable = |name: &str| match name {
            "SEAWALL_PULSAR_PORT" => Some("7000".to_owned()),
            "SEAWALL_BROKER_TRIM_INTERVAL" => Some("5s".to_owned()),
            "SEAWALL_DATA" => Some("/x".to_owned()),
            "SEAWALL_METADATA_ADDRESSES" => Some("a:1, b:2".to_owned()),
            _ => None,
        };
        let settings = from_variables(&variable).unwrap().settings;
        assert_eq!(settings.pulsar.port, 7000);
        assert_eq!(settings.broker.trim_interval, std::time::Duration::from_secs(5));
        assert_eq!(settings.data, std::path::PathBuf::from("/x"));
        assert_eq!(settings.metadata.addresses, ["a:1", "b:2"]);
        for bad in ["", "x", "70000"] {
            let variable = |name: &str| (name == "SEAWALL_PULSAR_PORT").then(|| bad.to_owned());
            assert!(from_variables(&variable).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn later_words_override_earlier_ones_and_are_remembered() {
        let mut source = Source::empty();
        source.add_file(Path::new("a.toml"), "# one\n[pulsar]\nport = 1\n\n[http]\nport = 2\n");
        source.add_variables(&|name| (name == "SEAWALL_HTTP_PORT").then(|| "3".to_owned()));
        source.flag("--data", "data", Some("/y")).flag("--x", "http.host", None::<String>);
        let effective = source.finish().unwrap();
        let settings = &effective.settings;
        assert_eq!((settings.pulsar.port, settings.http.port), (1, 3));
        let said = |key| effective.origin(key).to_string();
        assert_eq!(said("pulsar.port"), "a.toml:3");
        assert_eq!(said("http.port"), "variable SEAWALL_HTTP_PORT");
        assert_eq!(said("data"), "flag --data");
        assert_eq!(said("http.host"), "default");
    }

    #[test]
    fn everything_wrong_is_told_at_once() {
        let text = "dta = \"x\"\nroles = [\"king\"]\n[pulsar]\nprot = 1\nport = \"no\"\n\
                    [bookie]\nwrite_cache_bytes = 5\ncheckpoint_interval = \"soon\"\n";
        let told = from_text(text).unwrap_err().to_string();
        for words in [
            "a.toml:1: unknown key dta; did you mean data?",
            "a.toml:2: roles = [\"king\"]: unknown variant `king`",
            "a.toml:4: unknown key pulsar.prot; did you mean pulsar.port?",
            "a.toml:5: pulsar.port = \"no\": ",
            "allowed: a whole number",
            "a.toml:7: bookie.write_cache_bytes = 5: ",
            "a.toml:8: bookie.checkpoint_interval = \"soon\": ",
            "allowed: a duration",
        ] {
            assert!(told.contains(words), "{words:?} is not in:\n{told}");
        }
        assert!(from_text("[pulsar\n").unwrap_err().to_string().starts_with("a.toml:1: not TOML"));
        assert!(from_text("pulsar = 1").is_err());
        assert!(from_text("[data]\nx = 1").is_err());
        assert!(from_text("[pulsar]\nport = 1").is_ok());
    }

    #[test]
    fn a_node_of_a_cluster_keeps_three_copies_unless_told_otherwise() {
        let quorum = |text: &str| from_text(text).unwrap().settings.node_config().broker.quorum;
        assert_eq!(quorum("").ensemble, 1);
        let cluster = "roles = [\"broker\"]\n[metadata]\naddresses = [\"a:1\"]\n";
        assert_eq!((quorum(cluster).ensemble, quorum(cluster).ack), (3, 2));
        let told = format!("{cluster}[replication]\nensemble = 5\n");
        assert_eq!((quorum(&told).ensemble, quorum(&told).write), (5, 3));
    }

    #[test]
    fn the_sample_names_every_key_with_its_default() {
        let text = include_str!("../../../docs/operating/server.toml");
        let effective = from_text(text).unwrap();
        let said: Vec<&String> = effective.origins.keys().collect();
        let all: Vec<String> = Source::empty().model.into_keys().collect();
        assert_eq!(said, all.iter().collect::<Vec<_>>());
        let mut settings = effective.settings;
        assert_eq!(settings.roles.len(), 3);
        let defaults = Settings::of_cluster();
        settings.roles.clear();
        settings.rpc.advertised.clear();
        settings.metadata = crate::cli::settings::sections::MetadataSettings::default();
        assert_eq!(settings, defaults);
    }
}
