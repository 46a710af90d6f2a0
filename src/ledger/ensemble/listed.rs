//! An ensemble in a line of the log.

use std::fmt;

use crate::domain::BookieId;

/// Shows bookies by their names, with blanks between.
pub(in crate::ledger) struct Listed<'a>(pub(in crate::ledger) &'a [BookieId]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, bookie) in self.0.iter().enumerate() {
            let blank = if position == 0 { "" } else { " " };
            write!(formatter, "{blank}{bookie}")?;
        }
        Ok(())
    }
}
