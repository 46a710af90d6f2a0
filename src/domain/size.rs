//! Sizes in bytes, by name.

/// 1,024 bytes.
pub const KIBIBYTE: u64 = 1024;
/// 1,048,576 bytes.
pub const MEBIBYTE: u64 = 1024 * KIBIBYTE;
