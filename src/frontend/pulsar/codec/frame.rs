//! Cuts a byte stream into frames.
//!
//! ```text
//! u32 total   bytes that follow, 4 + command + payload
//! u32 size    bytes of the command
//! command     size bytes, a BaseCommand
//! payload     the rest: only after SEND and MESSAGE
//! ```
//! Both numbers are big-endian and checked before a byte of the frame is waited for.

use bytes::{Buf, Bytes, BytesMut};

/// Largest metadata plus payload of a message unless configured, in bytes.
pub const MAX_MESSAGE_SIZE_DEFAULT: usize = 5 * 1024 * 1024;
/// What a frame may hold beyond a message's largest size, for its headers.
pub const FRAME_PADDING: usize = 10 * 1024;
/// Least free space offered to a read.
const READ_SPACE: usize = 64 * 1024;

/// One frame; both parts share the buffer they were read into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The encoded `BaseCommand`.
    pub command: Bytes,
    /// What follows it; empty for a simple command.
    pub payload: Bytes,
}

/// Bytes that cannot be frames. The stream cannot be read any further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// Larger than allowed.
    #[error("a frame of {size} bytes is over the limit of {limit}")]
    TooLarge {
        /// Announced.
        size: usize,
        /// Allowed.
        limit: usize,
    },
    /// The two sizes contradict each other.
    #[error("a frame of {total} bytes cannot hold a command of {command}")]
    Sizes {
        /// Announced for the frame.
        total: usize,
        /// Announced for the command.
        command: usize,
    },
}

fn number_at(buffer: &[u8], offset: usize) -> Option<usize> {
    let bytes = buffer.get(offset..offset + 4)?;
    Some(u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as usize)
}

/// Takes the next complete frame off the buffer; `None` if it is not complete yet. `limit` bounds the
/// announced size.
pub fn next_frame(buffer: &mut BytesMut, limit: usize) -> Result<Option<Frame>, FrameError> {
    let Some(total) = number_at(buffer, 0) else { return Ok(None) };
    if total > limit {
        return Err(FrameError::TooLarge { size: total, limit });
    }
    if total < 4 {
        return Err(FrameError::Sizes { total, command: 0 });
    }
    let Some(command) = number_at(buffer, 4) else { return Ok(None) };
    if command > total - 4 {
        return Err(FrameError::Sizes { total, command });
    }
    if buffer.len() < 4 + total {
        return Ok(None);
    }
    let mut frame = buffer.split_to(4 + total).freeze();
    frame.advance(8);
    let payload = frame.split_off(command);
    Ok(Some(Frame { command: frame, payload }))
}

/// Makes room for the next read. Space grows with the bytes that really came, so a peer that announces a
/// large frame and sends nothing costs nothing.
pub fn reserve_for_next(buffer: &mut BytesMut) {
    let missing = number_at(buffer, 0).map_or(0, |total| (4 + total).saturating_sub(buffer.len()));
    if buffer.capacity() - buffer.len() < READ_SPACE / 4 || buffer.is_empty() {
        buffer.reserve(missing.min(buffer.len()).max(READ_SPACE));
    }
}
