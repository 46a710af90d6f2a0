//! What people and scripts read: tables or JSON on standard output, complaints on standard error.

use std::fmt::Display;
use std::io::{IsTerminal, Write};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

/// How results are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum OutputFormat {
    /// For a person.
    #[default]
    Table,
    /// For a script.
    Json,
}

/// `-o table|json`, the same on every command that prints results.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct OutputOption {
    /// How to print results.
    #[arg(short = 'o', long = "output", value_enum, default_value = "table")]
    pub(super) format: OutputFormat,
}

/// One line to standard error.
pub(super) fn complain(message: &dyn Display) {
    // `eprintln!` panics when nobody reads; there is nobody left to tell then.
    let _ = writeln!(std::io::stderr(), "seawall: {message}");
}

/// One line to standard output, at once; false when nobody reads it any more.
pub(super) fn say(line: &dyn Display) -> bool {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).is_ok()
}

/// One JSON value on one line.
pub(super) fn say_json<T: Serialize>(value: &T) -> bool {
    match serde_json::to_string(value) {
        Ok(text) => say(&text),
        Err(error) => {
            complain(&error);
            false
        }
    }
}

/// Rows under their headings, columns as wide as needed; numbers are expected as text.
pub(super) fn table(headings: &[&str], rows: &[Vec<String>]) -> String {
    let mut widths: Vec<usize> = headings.iter().map(|heading| heading.chars().count()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let mut text = String::new();
        for (cell, width) in cells.zip(&widths) {
            text.push_str(&format!("{cell:<width$}  "));
        }
        text.trim_end().to_owned()
    };
    let mut lines = vec![line(&mut headings.iter().copied())];
    lines.extend(rows.iter().map(|row| line(&mut row.iter().map(String::as_str))));
    lines.join("\n")
}

/// A bar on standard error; hidden when that is not a terminal. Length 0 means unknown.
pub(super) fn progress(length: u64, what: &'static str) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::hidden());
    }
    let bar = if length == 0 { ProgressBar::new_spinner() } else { ProgressBar::new(length) };
    let template = if length == 0 {
        "{spinner} {pos} {prefix} ({per_sec}) {msg}"
    } else {
        "{bar:30} {pos}/{len} {prefix} {elapsed} {msg}"
    };
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.set_prefix(what);
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows =
            vec![vec!["a".to_owned(), "12".to_owned()], vec!["long".to_owned(), "3".to_owned()]];
        assert_eq!(table(&["x", "y"], &rows), "x     y\na     12\nlong  3");
    }
}
