//! Domain nouns as wire messages of `proto/seawall/bookie.proto`, and back.

use super::generated::bookie as wire;
use crate::domain::{
    AddBatch, AddError, BookieId, CreatorToken, Entry, EntryId, LastAddConfirmed, LedgerId,
    ReadError, ReadRequest,
};

/// An entry for the wire.
pub fn entry_to_wire(entry: Entry) -> wire::Entry {
    wire::Entry {
        entry: entry.entry.0,
        last_add_confirmed: entry.last_add_confirmed.0,
        length: entry.length,
        digest: entry.digest,
        payload: entry.payload,
    }
}

/// An entry of a known ledger from the wire.
pub fn entry_from_wire(ledger: LedgerId, entry: wire::Entry) -> Entry {
    Entry {
        ledger,
        entry: EntryId(entry.entry),
        last_add_confirmed: EntryId(entry.last_add_confirmed),
        length: entry.length,
        digest: entry.digest,
        payload: entry.payload,
    }
}

/// A batch under a number for the wire.
pub fn batch_to_wire(number: u64, batch: AddBatch) -> wire::AddBatch {
    wire::AddBatch {
        number,
        ledger: batch.ledger.0,
        creator: batch.creator.0,
        recovery: batch.recovery,
        entries: batch.entries.into_iter().map(entry_to_wire).collect(),
    }
}

/// A batch and its number from the wire.
pub fn batch_from_wire(batch: wire::AddBatch) -> (u64, AddBatch) {
    let ledger = LedgerId(batch.ledger);
    let entries = batch.entries.into_iter().map(|entry| entry_from_wire(ledger, entry)).collect();
    let creator = CreatorToken(batch.creator);
    (batch.number, AddBatch { ledger, creator, recovery: batch.recovery, entries })
}

/// The answer to a batch for the wire.
pub fn add_result_to_wire(number: u64, result: Result<(), AddError>) -> wire::AddAnswer {
    let (result, detail) = match result {
        Ok(()) => (wire::AddResult::Stored, String::new()),
        Err(AddError::Fenced) => (wire::AddResult::Fenced, String::new()),
        Err(AddError::WrongCreator) => (wire::AddResult::WrongCreator, String::new()),
        Err(AddError::Deleted) => (wire::AddResult::Deleted, String::new()),
        Err(AddError::Damaged(detail)) => (wire::AddResult::Damaged, detail),
        Err(AddError::ReadOnly) => (wire::AddResult::ReadOnly, String::new()),
        Err(AddError::Overloaded) => (wire::AddResult::Overloaded, String::new()),
        Err(AddError::Poisoned(detail)) => (wire::AddResult::Poisoned, detail),
        Err(AddError::Unreachable(detail)) => (wire::AddResult::Unreachable, detail),
    };
    wire::AddAnswer { number, result: result.into(), detail }
}

/// The answer to a batch from the wire. One this version does not know counts as no answer.
pub fn add_result_from_wire(answer: wire::AddAnswer) -> Result<(), AddError> {
    match answer.result() {
        wire::AddResult::Stored => Ok(()),
        wire::AddResult::Fenced => Err(AddError::Fenced),
        wire::AddResult::WrongCreator => Err(AddError::WrongCreator),
        wire::AddResult::Deleted => Err(AddError::Deleted),
        wire::AddResult::Damaged => Err(AddError::Damaged(answer.detail)),
        wire::AddResult::ReadOnly => Err(AddError::ReadOnly),
        wire::AddResult::Overloaded => Err(AddError::Overloaded),
        wire::AddResult::Poisoned => Err(AddError::Poisoned(answer.detail)),
        wire::AddResult::Unreachable => Err(AddError::Unreachable(answer.detail)),
        wire::AddResult::Unspecified => {
            Err(AddError::Unreachable(format!("answered with code {}", answer.result)))
        }
    }
}

/// A failed read for the wire: its code and its words.
pub fn read_error_to_wire(error: ReadError) -> (wire::ReadFailure, String) {
    match error {
        ReadError::Absent => (wire::ReadFailure::Absent, String::new()),
        ReadError::Corrupt(detail) => (wire::ReadFailure::Corrupt, detail),
        ReadError::Unknown(detail) => (wire::ReadFailure::Unknown, detail),
        ReadError::WrongCreator => (wire::ReadFailure::WrongCreator, String::new()),
        ReadError::Overloaded => (wire::ReadFailure::Overloaded, String::new()),
        ReadError::Unreachable(detail) => (wire::ReadFailure::Unreachable, detail),
    }
}

/// `Ok` if the answer carries no failure. A code this version does not know is *unknown*, never *absent*.
pub fn read_failure_from_wire(code: i32, detail: String) -> Result<(), ReadError> {
    if code == 0 {
        return Ok(());
    }
    Err(match wire::ReadFailure::try_from(code) {
        Ok(wire::ReadFailure::Absent) => ReadError::Absent,
        Ok(wire::ReadFailure::Corrupt) => ReadError::Corrupt(detail),
        Ok(wire::ReadFailure::WrongCreator) => ReadError::WrongCreator,
        Ok(wire::ReadFailure::Overloaded) => ReadError::Overloaded,
        Ok(wire::ReadFailure::Unreachable) => ReadError::Unreachable(detail),
        Ok(wire::ReadFailure::Unknown) => ReadError::Unknown(detail),
        _ => ReadError::Unknown(format!("answered with code {code}")),
    })
}

/// A read for the wire.
pub fn read_to_wire(bookie: BookieId, request: &ReadRequest) -> wire::ReadRequest {
    wire::ReadRequest {
        bookie: bookie.0,
        ledger: request.ledger.0,
        creator: request.creator.0,
        first: request.first.0,
        entries_max: request.entries_max,
        bytes_max: request.bytes_max,
        fence: request.fence,
    }
}

/// A read from the wire.
pub fn read_from_wire(request: &wire::ReadRequest) -> ReadRequest {
    ReadRequest {
        ledger: LedgerId(request.ledger),
        creator: CreatorToken(request.creator),
        first: EntryId(request.first),
        entries_max: request.entries_max,
        bytes_max: request.bytes_max,
        fence: request.fence,
    }
}

/// A ledger's end, or why it is not told, for the wire.
pub fn last_add_confirmed_to_wire(
    result: Result<LastAddConfirmed, ReadError>,
) -> wire::LastAddConfirmedAnswer {
    match result {
        Ok(known) => wire::LastAddConfirmedAnswer {
            last_add_confirmed: known.last_add_confirmed.0,
            last_entry: known.last_entry.0,
            fenced: known.fenced,
            failure: 0,
            detail: String::new(),
        },
        Err(error) => {
            let (failure, detail) = read_error_to_wire(error);
            wire::LastAddConfirmedAnswer {
                last_add_confirmed: EntryId::NONE.0,
                last_entry: EntryId::NONE.0,
                fenced: false,
                failure: failure.into(),
                detail,
            }
        }
    }
}

/// A ledger's end from the wire.
pub fn last_add_confirmed_from_wire(
    answer: wire::LastAddConfirmedAnswer,
) -> Result<LastAddConfirmed, ReadError> {
    read_failure_from_wire(answer.failure, answer.detail)?;
    Ok(LastAddConfirmed {
        last_add_confirmed: EntryId(answer.last_add_confirmed),
        last_entry: EntryId(answer.last_entry),
        fenced: answer.fenced,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_answer_survives_the_wire() {
        let detail = || "why".to_owned();
        for result in [
            Ok(()),
            Err(AddError::Fenced),
            Err(AddError::WrongCreator),
            Err(AddError::Deleted),
            Err(AddError::Damaged(detail())),
            Err(AddError::ReadOnly),
            Err(AddError::Overloaded),
            Err(AddError::Poisoned(detail())),
            Err(AddError::Unreachable(detail())),
        ] {
            assert_eq!(add_result_from_wire(add_result_to_wire(1, result.clone())), result);
        }
        for error in [
            ReadError::Absent,
            ReadError::Corrupt(detail()),
            ReadError::Unknown(detail()),
            ReadError::WrongCreator,
            ReadError::Overloaded,
            ReadError::Unreachable(detail()),
        ] {
            let (code, words) = read_error_to_wire(error.clone());
            assert_eq!(read_failure_from_wire(code.into(), words), Err(error));
        }
        assert!(matches!(read_failure_from_wire(99, String::new()), Err(ReadError::Unknown(_))));
        let unknown = wire::AddAnswer { number: 1, result: 99, detail: String::new() };
        assert!(matches!(add_result_from_wire(unknown), Err(AddError::Unreachable(_))));
    }
}
