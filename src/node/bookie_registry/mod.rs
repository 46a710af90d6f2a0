//! Bookies in metadata: which exist for ever (`/cookies/`), which can be reached now (`/bookies/`), and
//! the ports that `ledger` and `bookie` leave open, filled from it.

mod cookie;
mod ledger_directory;
mod local_bookie;
mod pool;
mod registration;

#[cfg(test)]
mod tests;

pub use cookie::{COOKIES_PREFIX, CookieError, CookieRecord, check_cookie};
pub use ledger_directory::MetadataLedgers;
pub use local_bookie::LocalBookie;
pub use pool::RegisteredBookies;
pub use registration::{
    BOOKIES_PREFIX, BookieRecord, BookieRegistration, RegisteredBookie, RegistrationConfig,
};
