//! The writer against every order, loss and repetition of answers: nothing is confirmed past a hole or
//! without an ack quorum of the write set metadata names, and nothing hangs.

use proptest::prelude::*;

use crate::ledger_world::{World, add_timeouts, quorums, steps};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn confirmed_means_held_by_an_ack_quorum(
        quorum in quorums(),
        spares in 0_u64..4,
        add_timeout in add_timeouts(),
        script in steps(false),
    ) {
        let mut world = World::new(quorum, spares, add_timeout);
        world.run(&script);
        world.run_out();
        world.check_writer_is_done();
    }
}
