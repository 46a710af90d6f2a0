//! Which bookies hold what: striping arithmetic, coverage of write sets, choice of bookies.

mod coverage;
mod listed;
mod member;
mod placement;
mod striping;

pub use coverage::every_write_set_covered;
pub(super) use listed::Listed;
pub(super) use member::Member;
pub use placement::{Placement, Spread, choose_ensemble, choose_replacements};
pub use striping::{ENSEMBLE_MAX, Striping};
