//! Format levels: one number for all that a node writes where another node, or another version of it, reads it.
//!
//! | level | entry header | journal groups | entry logs | cookies |
//! | --- | --- | --- | --- | --- |
//! | 1 | 1: fixed widths, 40 bytes | `SWJ1`: record headers of 48 bytes | `SWE1`: the same | 1 |
//! | 2 | 2: varints, about 14 bytes | `SWJ2`: record headers of about 22 bytes | `SWE2`: the same | 2 |
//!
//! Every node reads all levels up to its newest, by the numbers in what it reads, and writes the one it is set to. What is
//! not in the table is the same at all levels. A cookie has the highest level that was ever written beside it, so that a version
//! that does not know the level refuses the folder before it reads anything else in it.

use std::fmt;

/// One of the levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FormatLevel {
    /// Headers of fixed widths.
    One,
    /// Packed headers.
    Two,
}

/// What a level writes: a row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredFormats {
    /// The first byte of an entry header.
    pub entry_header: u8,
    /// The first four bytes of a journal group.
    pub journal_group: [u8; 4],
    /// The first four bytes of an entry log.
    pub entry_log: [u8; 4],
    /// The format in a cookie.
    pub cookie: u32,
}

impl FormatLevel {
    /// All of them, rising.
    pub const ALL: [Self; 2] = [Self::One, Self::Two];
    /// What a node is set to that is not told otherwise.
    pub const NEWEST: Self = Self::Two;

    /// The number in the configuration.
    pub const fn number(self) -> u32 {
        match self {
            Self::One => 1,
            Self::Two => 2,
        }
    }

    /// The level of this number.
    pub fn of_number(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.number() == number)
    }

    /// What it writes.
    pub const fn stored(self) -> StoredFormats {
        match self {
            Self::One => StoredFormats {
                entry_header: 1,
                journal_group: *b"SWJ1",
                entry_log: *b"SWE1",
                cookie: 1,
            },
            Self::Two => StoredFormats {
                entry_header: 2,
                journal_group: *b"SWJ2",
                entry_log: *b"SWE2",
                cookie: 2,
            },
        }
    }

    /// The level whose formats these are, if a node that reads up to `self` knows it.
    pub fn known(self, is_it: impl Fn(StoredFormats) -> bool) -> Option<Self> {
        Self::ALL.into_iter().take_while(|level| *level <= self).find(|level| is_it(level.stored()))
    }
}

impl fmt::Display for FormatLevel {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.number())
    }
}

/// What a node writes, and up to which level it reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Formats {
    /// Written, whatever is there already.
    pub writes: FormatLevel,
    /// Anything higher is refused. Below the newest only where a former version is played.
    pub reads_up_to: FormatLevel,
}

impl Formats {
    /// This version at this level.
    pub const fn writing(writes: FormatLevel) -> Self {
        Self { writes, reads_up_to: FormatLevel::NEWEST }
    }

    /// As the version before the newest level did: knows no other than its own.
    pub const fn of_version_with(newest: FormatLevel) -> Self {
        Self { writes: newest, reads_up_to: newest }
    }
}

impl Default for Formats {
    fn default() -> Self {
        Self::writing(FormatLevel::NEWEST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_levels_share_a_number_and_the_newest_is_the_last() {
        let [one, two] = FormatLevel::ALL.map(FormatLevel::stored);
        assert_ne!(one.entry_header, two.entry_header);
        assert_ne!(one.journal_group, two.journal_group);
        assert_ne!(one.entry_log, two.entry_log);
        assert_ne!(one.cookie, two.cookie);
        assert_eq!(FormatLevel::ALL.last(), Some(&FormatLevel::NEWEST));
        assert_eq!(FormatLevel::of_number(1), Some(FormatLevel::One));
        assert_eq!(FormatLevel::of_number(0), None);
        assert_eq!(FormatLevel::of_number(3), None);
    }

    #[test]
    fn a_version_knows_levels_up_to_its_own() {
        let packed = |formats: StoredFormats| formats.entry_header == 2;
        assert_eq!(FormatLevel::Two.known(packed), Some(FormatLevel::Two));
        assert_eq!(FormatLevel::One.known(packed), None);
        assert_eq!(FormatLevel::Two.known(|formats| formats.cookie == 1), Some(FormatLevel::One));
    }
}
