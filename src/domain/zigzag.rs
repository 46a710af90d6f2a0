//! Signed numbers near zero, of either sign, as small unsigned ones: what the packed headers of records and of
//! entries write as varints (the mapping of Protocol Buffers' `sint64`).

/// 0, -1, 1, -2 … as 0, 1, 2, 3 …
pub const fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)) as u64
}

/// The number that [`zigzag`] made this of.
pub const fn unzigzag(code: u64) -> i64 {
    (code >> 1) as i64 ^ -((code & 1) as i64)
}
