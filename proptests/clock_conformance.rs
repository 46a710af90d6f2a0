//! Clocks and tasks: what both runtimes promise, and what only a simulated clock can show.

use std::time::Duration;

use seawall::domain::Instant;
use seawall::runtime::sim::{ClockFace, World};

use crate::both_conformance::{Place, on_real, on_sim, quick};

async fn sleeps_are_long_enough(place: Place) {
    let clock = place.runtime.clock;
    for milliseconds in [0, 1, 3, 20] {
        let before = clock.now();
        clock.sleep(Duration::from_millis(milliseconds)).await;
        assert!(clock.now().since(before) >= Duration::from_millis(milliseconds));
    }
    clock.sleep_until(Instant(0)).await;
    let waiting = std::future::pending::<()>();
    assert!(clock.timeout(Duration::from_millis(5), waiting).await.is_err());
    assert_eq!(clock.timeout(Duration::from_secs(5), async { 7 }).await, Ok(7));
    assert!(clock.wall().0 > 1_600_000_000_000);
}

async fn tasks_give_their_output(place: Place) {
    let runtime = place.runtime;
    let tasks: Vec<_> = (0..20_u64)
        .map(|number| {
            let clock = runtime.clock.clone();
            runtime.tasks.spawn("number", async move {
                clock.sleep(Duration::from_millis(20 - number)).await;
                number
            })
        })
        .collect();
    for (number, task) in tasks.into_iter().enumerate() {
        assert_eq!(task.await, Ok(number as u64));
    }
    let endless = runtime.tasks.spawn("endless", std::future::pending::<()>());
    endless.abort();
    assert!(endless.await.is_err());
}

#[test]
fn sleeps_are_long_enough_on_both() {
    on_real(sleeps_are_long_enough);
    on_sim(sleeps_are_long_enough);
}

#[test]
fn tasks_give_their_output_on_both() {
    on_real(tasks_give_their_output);
    on_sim(tasks_give_their_output);
}

#[test]
fn timers_follow_the_drift_and_the_freeze_of_their_node() {
    World::run(1, quick(), |world| async move {
        let node = world.create_node("fast", "fast");
        let clock = node.runtime().clock;
        node.set_clock_drift(ClockFace::Monotonic, 1_000_000);
        let before = world.now();
        clock.sleep(Duration::from_secs(10)).await;
        let passed = world.now() - before;
        assert!(passed >= Duration::from_secs(5) && passed < Duration::from_millis(5_010));
        let frozen_at = clock.now();
        node.freeze_clock(ClockFace::Monotonic, true);
        let sleep = node.spawn("sleep", clock.sleep(Duration::from_secs(1)));
        world.sleep(Duration::from_secs(60)).await;
        assert_eq!(clock.now().since(frozen_at), Duration::ZERO);
        node.set_clock_drift(ClockFace::Monotonic, -500_000);
        node.freeze_clock(ClockFace::Monotonic, false);
        let before = world.now();
        sleep.await.unwrap();
        let passed = world.now() - before;
        assert!(passed >= Duration::from_secs(2) && passed < Duration::from_millis(2_010));
        let wall = clock.wall().0;
        node.step_wall_clock(-5_000);
        assert_eq!(clock.wall().0, wall - 5_000);
        node.correct_wall_clock();
        assert!(clock.wall().0 >= 1_767_225_600_000 + 67_000);
    });
}

#[test]
fn a_panic_in_a_task_fails_the_run_and_kills_the_node() {
    let report = World::run_report(3, quick(), |world| async move {
        let node = world.create_node("bad", "bad");
        node.start(|_| async { panic!("on purpose") });
        world.sleep(Duration::from_secs(100)).await;
    });
    assert!(report.output.is_none() && !report.timed_out);
    assert_eq!(report.panics.len(), 1);
    assert_eq!(report.panics[0].text, "on purpose");
}

#[test]
fn the_time_limit_ends_a_run_that_waits_for_ever() {
    let report = World::run_report(3, quick(), |_| std::future::pending::<()>());
    assert!(report.timed_out);
}

#[test]
fn crash_pause_and_restart_act_on_all_tasks_of_a_node() {
    World::run(5, quick(), |world| async move {
        let node = world.create_node("node", "node");
        let (sender, mut ticks) = tokio::sync::mpsc::channel(1000);
        let tick = move |runtime: seawall::runtime::Runtime| async move {
            loop {
                runtime.clock.sleep(Duration::from_millis(10)).await;
                let _ = sender.send(runtime.random.next()).await;
            }
        };
        let mut drain = || std::iter::from_fn(|| ticks.try_recv().ok()).collect::<Vec<_>>();
        assert!(node.start(tick.clone()));
        assert!(!node.start(tick.clone()));
        world.sleep(Duration::from_millis(105)).await;
        let first = drain();
        assert!(first.len() > 5);
        node.pause();
        world.sleep(Duration::from_millis(100)).await;
        assert!(drain().len() <= 1);
        node.resume();
        world.sleep(Duration::from_millis(100)).await;
        assert!(drain().len() > 5);
        assert!(node.crash() && !node.is_running());
        drain();
        world.sleep(Duration::from_millis(100)).await;
        assert!(drain().is_empty());
        assert!(node.start(tick));
        world.sleep(Duration::from_millis(105)).await;
        let second = drain();
        assert!(second.len() > 5 && second[0] != first[0]);
    });
}
