//! The long poll: what ends a wait, and that nothing else does.

use super::fence::start;
use super::*;
use crate::domain::LastAddConfirmed;
use crate::runtime::sim::{SimNode, World, WorldSettings};

const PATIENCE: Duration = Duration::from_secs(20);

/// Begins a wait beyond `beyond` in a task of its own; the answer comes with how long it took.
fn wait(
    node: &SimNode,
    bookie: &Bookie,
    ledger: u64,
    beyond: i64,
) -> oneshot::Receiver<(Result<LastAddConfirmed, ReadError>, Duration)> {
    let (done, answer) = oneshot::channel();
    let (runtime, bookie) = (node.runtime(), bookie.clone());
    let clock = runtime.clock.clone();
    runtime.tasks.spawn("wait", async move {
        let begin = clock.now();
        let (ledger, beyond) = (LedgerId(ledger), EntryId(beyond));
        let end = bookie.wait_last_add_confirmed(ledger, CREATOR, beyond, PATIENCE).await;
        let _ = done.send((end, clock.now().since(begin)));
    });
    answer
}

#[test]
fn a_wait_ends_with_an_entry_a_hint_or_a_fence_and_else_with_patience() {
    World::run(1, WorldSettings::default(), |world| async move {
        let node = world.create_node("bookie", "bookie");
        let bookie = start(&node).await;
        let clock = node.runtime().clock;
        let pause = Duration::from_secs(1);
        add(&bookie, batch(1, 0..2, 100)).await.unwrap();

        // Known already: no wait.
        let (end, took) = wait(&node, &bookie, 1, -1).await.unwrap();
        assert_eq!(end.unwrap().last_add_confirmed, EntryId(0));
        assert!(took < pause, "{took:?}");

        // An entry carries it.
        let waiting = wait(&node, &bookie, 1, 0);
        clock.sleep(pause).await;
        add(&bookie, batch(1, 2..3, 100)).await.unwrap();
        let (end, took) = waiting.await.unwrap();
        assert_eq!(end.unwrap().last_add_confirmed, EntryId(1));
        assert!(took >= pause && took < 2 * pause, "{took:?}");

        // It is told alone; what does not reach beyond ends no wait.
        let waiting = wait(&node, &bookie, 1, 2);
        clock.sleep(pause).await;
        for told in [2, 3] {
            bookie.tell_last_add_confirmed(LedgerId(1), CREATOR, EntryId(told)).await.unwrap();
            clock.sleep(pause).await;
        }
        let (end, took) = waiting.await.unwrap();
        assert_eq!(end.unwrap().last_add_confirmed, EntryId(3));
        assert!(took >= 2 * pause && took < 3 * pause, "{took:?}");

        // A fence ends it once it is durable.
        let waiting = wait(&node, &bookie, 1, 9);
        clock.sleep(pause).await;
        bookie.last_add_confirmed(LedgerId(1), CREATOR, true).await.unwrap();
        let (end, took) = waiting.await.unwrap();
        assert!(end.unwrap().fenced);
        assert!(took < 2 * pause, "{took:?}");

        // Of a ledger never seen here; its first entries are seen soon.
        let waiting = wait(&node, &bookie, 2, -1);
        clock.sleep(pause).await;
        add(&bookie, batch(2, 0..2, 100)).await.unwrap();
        let (end, took) = waiting.await.unwrap();
        assert_eq!(end.unwrap().last_add_confirmed, EntryId(0));
        assert!(took < 2 * pause, "{took:?}");

        // Nothing comes.
        let (end, took) = wait(&node, &bookie, 2, 5).await.unwrap();
        assert_eq!(end.unwrap().last_add_confirmed, EntryId(0));
        assert!(took >= PATIENCE, "{took:?}");
    });
}

#[test]
fn with_too_many_waiting_the_next_is_answered_at_once_and_places_come_back() {
    World::run(1, WorldSettings::default(), |world| async move {
        let node = world.create_node("bookie", "bookie");
        let bookie = start(&node).await;
        let clock = node.runtime().clock;
        add(&bookie, batch(1, 0..2, 100)).await.unwrap();
        let waiting: Vec<_> =
            (0..crate::bookie::wait::WAITING_MAX).map(|_| wait(&node, &bookie, 1, 0)).collect();
        clock.sleep(Duration::from_secs(1)).await;
        let (end, took) = wait(&node, &bookie, 1, 0).await.unwrap();
        assert_eq!(end.unwrap().last_add_confirmed, EntryId(0));
        assert!(took < Duration::from_secs(1), "{took:?}");
        for answer in waiting {
            assert!(answer.await.unwrap().1 >= PATIENCE);
        }
        let (_, took) = wait(&node, &bookie, 1, 0).await.unwrap();
        assert!(took >= PATIENCE, "{took:?}");
    });
}
