//! A writer that does not know it is deposed, two recoverers at once, bookies that lag, fail and rot:
//! whatever was confirmed, before or after, is inside the closed ledger. And it is closed, if need be without some of the
//! bookies.

use proptest::prelude::*;

use seawall::ledger::Quorum;

use crate::ledger_world::{World, add_timeouts, quorums, steps, takeovers};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn a_closed_ledger_holds_everything_confirmed(
        quorum in quorums(),
        spares in 0_u64..4,
        add_timeout in add_timeouts(),
        script in steps(true),
        away in any::<u8>(),
    ) {
        let mut world = World::new(quorum, spares, add_timeout);
        world.run(&script);
        world.take_away(away);
        world.run_out();
        world.check_recovery_is_done();
    }

    #[test]
    fn an_add_on_its_way_during_a_takeover_is_kept_or_fenced_off(
        wide in any::<bool>(),
        add_timeout in add_timeouts(),
        script in takeovers(),
    ) {
        let (ensemble, write) = if wide { (4, 3) } else { (3, 3) };
        let quorum = Quorum { ensemble, write, ack: 2 };
        let mut world = World::new(quorum, 0, add_timeout);
        world.run(&script);
        world.run_out();
        world.check_recovery_is_done();
    }
}
