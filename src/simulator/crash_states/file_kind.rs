//! What kind of file a path is, for the table.

use std::path::Path;

use super::SubjectName;

/// The kind of a synced file, of a name in a synced folder, of an index, or of a promise.
pub(super) fn file_kind(subject: SubjectName, path: &Path) -> &'static str {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let kinds = [
        ("cookie", "cookies"),
        ("stamping", "mark of a first start"),
        ("adopt", "adoption"),
        ("checkpoint", "checkpoint file"),
        ("index", "index"),
        ("next.", "journal"),
        ("log-", if subject == SubjectName::Group { "consensus log" } else { "metadata log" }),
        ("snapshot", "metadata snapshot"),
        ("identity", "member's identity"),
        ("promise", "promises given"),
        ("vote", "votes given"),
    ];
    let by_ending = [(".journal", "journal"), (".entries", "entry log"), (".facts", "facts log")];
    let begins = kinds.iter().find(|(begin, _)| name.starts_with(begin));
    let ends = by_ending.iter().find(|(end, _)| name.ends_with(end));
    begins.or(ends).map_or("folders", |(_, kind)| kind)
}
