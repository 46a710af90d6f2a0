//! How far one subscription has got: the mark-delete position (everything up to it is acknowledged) and
//! the ranges and batch indexes acknowledged beyond it. Stored in a ledger of its own, group-written;
//! mark-delete never goes back except by an explicit reset.

mod flusher;
mod handle;
mod recovery;
mod snapshot;
/// What is acknowledged. Pure.
pub mod state;
mod store;

pub use handle::Cursor;
pub(super) use handle::CursorPlace;
pub(super) use recovery::recover_cursors;
pub use snapshot::CursorSnapshot;
pub use state::{CursorState, EntryState};
