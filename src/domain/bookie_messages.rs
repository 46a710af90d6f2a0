//! What is asked of a bookie and what it answers; shared by bookies, the wire between nodes, and the
//! ledger client. Rules: `docs/internals/ledger_protocol.md`.

use super::{BookieId, CreatorToken, Entry, EntryId, LedgerId};

/// Entries of one ledger for one bookie, sent together. They need not be contiguous (striping).
#[derive(Clone, Debug)]
pub struct AddBatch {
    /// The ledger of every entry in the batch.
    pub ledger: LedgerId,
    /// The ledger's creator; a bookie bound to another one refuses.
    pub creator: CreatorToken,
    /// True for recovery and repair adds, which a fence does not stop.
    pub recovery: bool,
    /// The entries, in id order, already sealed.
    pub entries: Vec<Entry>,
}

/// Why a bookie did not store entries. Only `Fenced`, `WrongCreator`, `Deleted` and `Damaged` mean that
/// the entries are certainly not stored by this request; after the others the outcome is unknown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddError {
    /// The ledger is fenced here and this is not a recovery add.
    #[error("the ledger is fenced")]
    Fenced,
    /// The bookie is bound to another creation of this ledger.
    #[error("the bookie knows another creator of this ledger")]
    WrongCreator,
    /// The ledger was deleted here; its tombstone refuses adds for ever.
    #[error("the ledger was deleted")]
    Deleted,
    /// The entry arrived damaged.
    #[error("the entry is damaged: {0}")]
    Damaged(String),
    /// The bookie takes no writes (disk nearly full).
    #[error("the bookie is read-only")]
    ReadOnly,
    /// Queues or caches are full; try again later or elsewhere.
    #[error("the bookie is overloaded")]
    Overloaded,
    /// The journal is poisoned; this bookie will not take writes again until restarted.
    #[error("the bookie's journal is poisoned: {0}")]
    Poisoned(String),
    /// The bookie could not be reached or the connection broke before an answer.
    #[error("the bookie is unreachable: {0}")]
    Unreachable(String),
}

/// The answer to one [`AddBatch`], for all of its entries together: on success every one of them is on
/// synced storage.
#[derive(Clone, Debug)]
pub struct AddAnswer {
    /// Who answers.
    pub bookie: BookieId,
    /// The ledger.
    pub ledger: LedgerId,
    /// The batch's entry ids.
    pub entries: Vec<EntryId>,
    /// Stored and synced, or not.
    pub result: Result<(), AddError>,
}

/// Where answers to adds go. Called exactly once for every batch, from any task; must be short and must
/// not call back into the bookie.
pub trait AddSink: Send + Sync {
    /// Takes one answer.
    fn answered(&self, answer: AddAnswer);
}

/// What to read from one bookie.
#[derive(Clone, Copy, Debug)]
pub struct ReadRequest {
    /// The ledger.
    pub ledger: LedgerId,
    /// Its creator.
    pub creator: CreatorToken,
    /// The first entry wanted.
    pub first: EntryId,
    /// At most this many entries (at least 1).
    pub entries_max: u32,
    /// Stop after this many payload bytes (at least one entry is answered).
    pub bytes_max: u32,
    /// Fence the ledger, durably, before looking the entry up. Recovery reads set this.
    pub fence: bool,
}

/// Why a bookie did not answer with entries. The three answers *absent*, *corrupt* and *unknown* are
/// kept apart on purpose: only `Absent` is a promise about the past.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The bookie is up, has all its data, and does not hold the first entry asked for.
    #[error("the bookie does not hold the entry")]
    Absent,
    /// The bookie holds the entry but its copy is damaged.
    #[error("the bookie's copy is damaged: {0}")]
    Corrupt(String),
    /// The bookie cannot tell yet (start-up, limbo) or failed to look.
    #[error("the bookie cannot tell: {0}")]
    Unknown(String),
    /// The bookie is bound to another creation of this ledger.
    #[error("the bookie knows another creator of this ledger")]
    WrongCreator,
    /// Queues are full; try again later or elsewhere.
    #[error("the bookie is overloaded")]
    Overloaded,
    /// The bookie could not be reached, or the connection broke before an answer.
    #[error("the bookie is unreachable: {0}")]
    Unreachable(String),
}

/// What a bookie knows about a ledger's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastAddConfirmed {
    /// Highest last add confirmed carried by an entry or told explicitly; [`EntryId::NONE`] if none.
    pub last_add_confirmed: EntryId,
    /// Highest entry stored here; [`EntryId::NONE`] if none.
    pub last_entry: EntryId,
    /// The ledger is (now) fenced here, durably.
    pub fenced: bool,
}
