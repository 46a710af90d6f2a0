//! What kind of file a path is, for the table.

use std::path::Path;

/// The kind of a synced file, of a name in a synced folder, or of an index.
pub(super) fn file_kind(path: &Path) -> &'static str {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let kinds = [
        ("cookie", "cookies"),
        ("stamping", "mark of a first start"),
        ("adopt", "adoption"),
        ("checkpoint", "checkpoint file"),
        ("index", "index"),
        ("next.", "journal"),
        ("log-", "metadata log"),
        ("snapshot", "metadata snapshot"),
        ("identity", "member's identity"),
        ("promise", "promises given"),
    ];
    let by_ending = [(".journal", "journal"), (".entries", "entry log"), (".facts", "facts log")];
    let begins = kinds.iter().find(|(begin, _)| name.starts_with(begin));
    let ends = by_ending.iter().find(|(end, _)| name.ends_with(end));
    begins.or(ends).map_or("folders", |(_, kind)| kind)
}
