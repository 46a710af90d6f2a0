//! Reading a ledger: `verify` admits only the entries asked for, `replicas` asks bookies until one gives a
//! good copy, `end` learns, or waits to learn, how far may be read, `handle` is what the broker holds.

mod end;
mod handle;
mod replicas;
mod verify;

pub(super) use end::ask_last_add_confirmed;
pub use handle::LedgerReader;
pub(super) use verify::good_run;
