//! Which mutant is awake, and which ones a process came by.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a copy made for mutation testing, never the product"
)]

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

const MUTANTS_MAX: usize = 8192;

static AWAKE: OnceLock<usize> = OnceLock::new();
static SEEN: [AtomicBool; MUTANTS_MAX] = [const { AtomicBool::new(false) }; MUTANTS_MAX];
static SEEN_FILE: OnceLock<Option<File>> = OnceLock::new();

/// Whether this mutant is awake: `SEAWALL_SWITCH` holds its number. With `SEAWALL_SWITCH_SEEN`, a file, the number of
/// each that is asked about is written down.
pub fn on(mutant: usize) -> bool {
    if !SEEN[mutant].load(Relaxed) && !SEEN[mutant].swap(true, Relaxed) {
        let file = SEEN_FILE.get_or_init(|| {
            let path = std::env::var_os("SEAWALL_SWITCH_SEEN")?;
            OpenOptions::new().create(true).append(true).open(path).ok()
        });
        if let Some(mut file) = file.as_ref() {
            let _ = file.write_all(format!("{mutant}\n").as_bytes());
        }
    }
    let awake = AWAKE.get_or_init(|| {
        let number = std::env::var("SEAWALL_SWITCH").ok().and_then(|text| text.parse().ok());
        number.unwrap_or(usize::MAX)
    });
    *awake == mutant
}
