//! A writer that does not know it is deposed, two recoverers at once, bookies that lag, fail and rot:
//! whatever was confirmed, before or after, is inside the closed ledger.

use proptest::prelude::*;

use crate::ledger_world::{World, quorums, steps};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn a_closed_ledger_holds_everything_confirmed(
        quorum in quorums(),
        spares in 0_u64..4,
        script in steps(true),
    ) {
        let mut world = World::new(quorum, spares);
        world.run(&script);
        world.run_out();
        world.check_recovery_is_done();
    }
}
