//! Logs of the nodes as part of a recording: each line with the node whose task wrote it and what that was woken by.

use std::fmt::{self, Write};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing::{Event, Level, Metadata, Subscriber};

use super::noted::Noted;
use crate::runtime::sim::{Note, Recorder};

/// Takes every log line of this crate down to debug, and nothing of libraries.
pub(super) struct LogNotes(pub(super) Recorder);

/// A line: its message, then its fields.
#[derive(Default)]
struct Line {
    message: String,
    fields: String,
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing to a string does not fail.
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, "  {name}={value:?}"),
        };
    }
}

impl Subscriber for LogNotes {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event()
            && is_of_this_crate(metadata.target())
            && *metadata.level() <= Level::DEBUG
    }

    fn event(&self, event: &Event<'_>) {
        self.0.note(|| {
            let mut line = Line::default();
            event.record(&mut line);
            let metadata = event.metadata();
            let module = metadata.target().trim_start_matches("seawall::");
            let severity = match *metadata.level() {
                Level::ERROR => 1,
                Level::WARN => 2,
                Level::INFO => 3,
                _ => 4,
            };
            let text = format!("{} ({module}){}", line.message, line.fields);
            Note::from(Noted::Log).following().facts([severity, 0, 0]).text(text)
        });
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

fn is_of_this_crate(target: &str) -> bool {
    target == "seawall" || target.starts_with("seawall::")
}
