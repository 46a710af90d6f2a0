//! The moment of a fence: an add under way is before it, and then who fenced sees it, or after it, and then it
//! is refused.

use super::*;
use crate::runtime::sim::{SimNode, World, WorldSettings};

pub(super) async fn start(node: &SimNode) -> Bookie {
    let config = BookieConfig {
        checkpoint_interval: Duration::from_secs(1000),
        garbage_interval: Duration::from_secs(1000),
        free_space_low_bytes: 0,
        ..BookieConfig::below(Path::new("/data"))
    };
    Bookie::start(node.runtime(), config, Arc::new(Presences::default())).await.unwrap()
}

/// Whoever fenced counts on it from the answer on, whatever the answer said of entries, and for ever.
#[test]
fn a_fence_outlives_the_power_that_goes_with_its_answer() {
    for seed in 0..10 {
        World::run(seed, WorldSettings::default(), |world| async move {
            let node = world.create_node("bookie", "bookie");
            let bookie = start(&node).await;
            add(&bookie, batch(1, 0..2, 100)).await.unwrap();
            bookie.checkpoint().await.unwrap();
            // An entry that is here, the end alone, ledgers never seen.
            for (ledger, entry) in [(1, Some(0)), (2, None), (3, Some(0)), (4, Some(7))] {
                node.crash();
                let bookie = start(&node).await;
                if let Some(entry) = entry {
                    let fenced = ReadRequest { fence: true, ..request(ledger, entry) };
                    let found = bookie.read(fenced).await;
                    assert!(matches!(found, Ok(_) | Err(ReadError::Absent)), "{found:?}");
                } else {
                    let told = bookie.last_add_confirmed(LedgerId(ledger), CREATOR, true).await;
                    assert!(told.unwrap().fenced);
                }
                node.power_loss();
                let bookie = start(&node).await;
                assert_eq!(add(&bookie, batch(ledger, 5..6, 10)).await, Err(AddError::Fenced));
                // Nothing but the fact is left to be written, and the journal's record of it is let go.
                bookie.checkpoint().await.unwrap();
                node.power_loss();
                let bookie = start(&node).await;
                assert_eq!(add(&bookie, batch(ledger, 5..6, 10)).await, Err(AddError::Fenced));
            }
        });
    }
}

#[test]
fn an_add_under_way_is_seen_by_who_fences_or_is_refused() {
    for seed in 0..10 {
        World::run(seed, WorldSettings::default(), |world| async move {
            let node = world.create_node("bookie", "bookie");
            let bookie = start(&node).await;
            let (mut seen, mut refused) = (0, 0);
            for ledger in 1..20 {
                add(&bookie, batch(ledger, 0..1, 100)).await.unwrap();
                let fencing = bookie.read(ReadRequest { fence: true, ..request(ledger, 1) });
                // Now before, now after the fence takes its place in line.
                let (added, found) = if ledger % 2 == 0 {
                    let added = begin_add(&bookie, batch(ledger, 1..2, 100));
                    (added, fencing.await)
                } else {
                    let mut fencing = Box::pin(fencing);
                    assert!(futures_util::poll!(&mut fencing).is_pending());
                    (begin_add(&bookie, batch(ledger, 1..2, 100)), fencing.await)
                };
                match added.await.unwrap().result {
                    Ok(()) => {
                        seen += 1;
                        assert!(found.is_ok(), "added behind a fence that found nothing");
                    }
                    Err(error) => {
                        refused += 1;
                        assert_eq!(error, AddError::Fenced);
                    }
                }
            }
            assert!(seen > 0 && refused > 0, "{seen} seen, {refused} refused");
        });
    }
}
