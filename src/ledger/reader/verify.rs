//! What a bookie answered, checked: identity and digest of every entry.

use crate::domain::{Entry, EntryId, LedgerId, ReadError};
use crate::{mutant, reached};

/// The good run at the head of a bookie's answer: entry `first` and those after it, at most
/// `entries_max`, each the one asked for and undamaged. An error if not even the first is.
pub(in crate::ledger) fn good_run(
    ledger: LedgerId,
    first: EntryId,
    entries_max: u32,
    mut entries: Vec<Entry>,
) -> Result<Vec<Entry>, ReadError> {
    entries.truncate(entries_max as usize);
    let mut expected = first;
    let mut damage = None;
    let mut good = 0;
    for entry in &entries {
        let verified =
            if mutant!("L29") { entry.verify_digest() } else { entry.verify(ledger, expected) };
        if let Err(found) = verified {
            reached!("ledger reader: a bad copy refused");
            damage = Some(found);
            break;
        }
        good += 1;
        expected = expected.next();
    }
    entries.truncate(good);
    match damage {
        Some(found) if good == 0 => Err(ReadError::Corrupt(found.to_string())),
        _ if good == 0 => Err(ReadError::Unknown("the answer holds no entry".to_owned())),
        _ => Ok(entries),
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn entry(id: i64) -> Entry {
        Entry::seal(LedgerId(1), EntryId(id), EntryId::NONE, 1, Bytes::from_static(b"x"))
    }

    #[test]
    fn a_run_ends_before_the_first_bad_entry() {
        let mut entries = vec![entry(3), entry(4), entry(6)];
        let run = good_run(LedgerId(1), EntryId(3), 10, entries.clone()).unwrap();
        assert_eq!(run.len(), 2);
        assert_eq!(good_run(LedgerId(1), EntryId(3), 1, entries.clone()).unwrap().len(), 1);
        assert!(matches!(
            good_run(LedgerId(1), EntryId(4), 9, entries.clone()),
            Err(ReadError::Corrupt(_))
        ));
        assert!(good_run(LedgerId(2), EntryId(3), 9, entries.clone()).is_err());
        entries[0].digest ^= 1;
        assert!(good_run(LedgerId(1), EntryId(3), 9, entries).is_err());
        assert!(matches!(
            good_run(LedgerId(1), EntryId(3), 9, Vec::new()),
            Err(ReadError::Unknown(_))
        ));
    }
}
