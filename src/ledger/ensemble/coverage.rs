//! The one formula to get right: when can no ack quorum consist only of bookies we know nothing of?

use crate::ledger::Quorum;
use crate::mutant;

/// True when, in every write set of the ensemble, fewer than `Qa` positions are not `known`: then every
/// set of `Qa` bookies that could complete an entry contains a known one. Silence is "not known".
pub fn every_write_set_covered(quorum: Quorum, known: impl Fn(usize) -> bool) -> bool {
    let size = quorum.ensemble as usize;
    (0..size).all(|start| {
        let unknown = (0..quorum.write as usize).filter(|k| !known((start + k) % size)).count();
        unknown < if mutant!("L19") { 1 } else { quorum.ack as usize }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coverage_leaves_no_ack_quorum_of_strangers() {
        let three = Quorum::new(3, 3, 2).unwrap();
        assert!(!every_write_set_covered(three, |position| position == 0));
        assert!(every_write_set_covered(three, |position| position < 2));
        let both = Quorum::new(2, 2, 2).unwrap();
        // Qw = Qa: one bookie is enough, a dead one must not block (L19).
        assert!(every_write_set_covered(both, |position| position == 1));
        let wide = Quorum::new(5, 3, 2).unwrap();
        assert!(!every_write_set_covered(wide, |position| position % 2 == 0 && position < 4));
        assert!(every_write_set_covered(wide, |position| position != 1));
    }
}
