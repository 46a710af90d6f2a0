//! Pulsar's bytes: frames, commands and entries. No I/O; shared by the broker's front end and our client.
//! Never panics and never allocates more than the bytes it was given, whatever they are.

mod command;
mod encode;
mod entry;
mod frame;
/// The generated messages of the protocol.
pub mod proto;

pub use command::{Command, CommandError};
pub use encode::{
    MessageHead, encode_command, encode_entry, encode_message_head, encode_payload_command,
    encode_send_receipt,
};
pub use entry::{
    ENTRY_MESSAGES_MAX, EntryError, EntryFacts, EntryParts, inspect_entry, split_entry,
};
pub use frame::{
    FRAME_PADDING, Frame, FrameError, MAX_MESSAGE_SIZE_DEFAULT, next_frame, reserve_for_next,
};

#[cfg(test)]
mod tests;
