//! What a scenario may protect: the promises of `docs/ARCHITECTURE.md` and the invariants of the protocol, by
//! number. `docs/internals/scenarios.md` lists both with the scenarios that protect them.

/// A promise or an invariant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protected {
    /// Its number.
    pub id: &'static str,
    /// What it says.
    pub says: &'static str,
}

macro_rules! protected {
    ($($id:ident $says:literal)*) => {
        $(
            #[doc = $says]
            #[allow(dead_code, reason = "the list is whole, whether or not a scenario names each")]
            pub const $id: Protected = Protected { id: stringify!($id), says: $says };
        )*
        /// All of them.
        pub const ALL: &[Protected] = &[$($id),*];
    };
}

protected! {
    P1 "no committed message is lost"
    P2 "one order for everyone, and no position twice"
    P3 "no duplicate where deduplication is on"
    P4 "a subscription misses nothing and repeats nothing acknowledged"
    P5 "a deposed owner can do no harm"
    P6 "it comes back by itself"
    P7 "corruption is never served"
    P8 "nothing a client sends does harm"
    I1 "what was acknowledged can be read while Qa - 1 copies are lost"
    I2 "a ledger is closed at or behind everything its writer confirmed"
    I3 "nothing is confirmed behind the end of a closed ledger"
    I4 "every read of an entry gives the same bytes"
    I5 "entries are confirmed in order and without a hole"
    I6 "every entry of a closed ledger has at least Qa copies"
    I7 "a fence stays, through crashes, too"
    I8 "no last add confirmed passes what was confirmed"
    I9 "a record changes by compare-and-set and keeps its shape"
    I10 "what a bookie acknowledged is in its journal or its entry log"
    I11 "a chain's ledgers follow one another and only the last may be open"
    I12 "each acknowledged publish is in the log, each producer's in order"
    I13 "a stored mark-delete never passes what is unacknowledged"
    I14 "what is unacknowledged is delivered in the end"
    I15 "nothing is trimmed that a subscription still needs"
    I16 "once faults end, everything that was begun ends"
}
