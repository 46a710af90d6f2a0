//! Message ids and key-value lists between Pulsar's words and the broker's.

use crate::domain::{EntryId, LedgerId, Position};
use crate::frontend::pulsar::codec::{ENTRY_MESSAGES_MAX, proto};

/// What "-1" looks like in an unsigned field.
const MINUS_ONE: u64 = u64::MAX;
/// The ledger and entry id of "latest".
const LATEST: u64 = i64::MAX as u64;

/// Where a message id points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Earliest,
    Latest,
    At(Position),
}

/// Where a message id points; `None` if nowhere.
pub(super) fn place(id: &proto::MessageIdData) -> Option<Place> {
    match (id.ledger_id, id.entry_id) {
        (MINUS_ONE, MINUS_ONE) => Some(Place::Earliest),
        (LATEST, LATEST) => Some(Place::Latest),
        (ledger, MINUS_ONE) => Some(Place::At(Position::new(LedgerId(ledger), EntryId::NONE))),
        _ => position(id).map(Place::At),
    }
}

/// The entry a message id names; `None` if it cannot name one.
pub(super) fn position(id: &proto::MessageIdData) -> Option<Position> {
    let entry = i64::try_from(id.entry_id).ok()?;
    i64::try_from(id.ledger_id).ok()?;
    Some(Position::new(LedgerId(id.ledger_id), EntryId(entry)))
}

/// The bit set of a message id: `Ok(None)` if it has none, `Err` if it is longer than any batch.
pub(super) fn ack_set(id: &proto::MessageIdData) -> Result<Option<Vec<u64>>, ()> {
    const WORDS_MAX: usize = ENTRY_MESSAGES_MAX as usize / 64;
    match id.ack_set.len() {
        0 => Ok(None),
        words if words > WORDS_MAX => Err(()),
        _ => Ok(Some(id.ack_set.iter().map(|word| *word as u64).collect())),
    }
}

/// A position in Pulsar's words; no position is -1, -1.
pub(super) fn of_position(position: Option<Position>) -> proto::MessageIdData {
    let (ledger_id, entry_id) = match position {
        Some(position) => (position.ledger.0, position.entry.0 as u64),
        None => (MINUS_ONE, MINUS_ONE),
    };
    proto::MessageIdData { ledger_id, entry_id, ..Default::default() }
}

/// A list of pairs.
pub(super) fn pairs(list: Vec<proto::KeyValue>) -> Vec<(String, String)> {
    list.into_iter().map(|pair| (pair.key, pair.value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(ledger_id: u64, entry_id: u64) -> proto::MessageIdData {
        proto::MessageIdData { ledger_id, entry_id, ..Default::default() }
    }

    #[test]
    fn the_two_ends_are_named_by_extreme_numbers() {
        assert_eq!(place(&id(u64::MAX, u64::MAX)), Some(Place::Earliest));
        assert_eq!(place(&id(LATEST, LATEST)), Some(Place::Latest));
        assert_eq!(place(&id(3, 5)), Some(Place::At(Position::new(LedgerId(3), EntryId(5)))));
        assert_eq!(place(&id(3, 1 << 63)), None);
        assert_eq!(place(&id(1 << 63, 0)), None);
    }
}
