//! A topic that is served here: one task owns its producers, subscriptions and managed ledger, and is
//! reached by a mailbox. All that arrived since the last turn is handled in one: one append, one read of a
//! subscription, one call of each sink.

mod close;
mod command;
mod consume;
mod dispatching;
mod handle;
mod job;
mod load;
mod producers;
mod publish;
mod read;
mod seek;
mod statistics;
mod subscribe;
mod task;
mod unsubscribe;

pub use handle::{Consumer, Producer, Topic};
pub(super) use load::{LoadError, load};
pub(super) use producers::ProducerNames;
