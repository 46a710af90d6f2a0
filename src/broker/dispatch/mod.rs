//! Who gets which entry when. The decisions of one subscription are a pure machine; the topic's task
//! performs what it asks for.

mod average;
mod consumers;
mod event;
mod inspect;
mod machine;
#[cfg(test)]
mod tests;

pub use consumers::ConsumerKey;
pub use event::{Assigned, Effect, Event, Fact, ReadId};
pub use inspect::IdleReason;
pub use machine::{Machine, after};
