//! Who gets which entry when. The decisions of one subscription are a pure machine; the topic's task
//! performs what it asks for.

mod average;
mod consumers;
mod machine;
#[cfg(test)]
mod tests;

pub use consumers::ConsumerKey;
pub use machine::{
    Assigned, Effect, Event, Fact, IdleReason, Machine, READ_ENTRIES_MAX, ReadId, after,
};
