//! Protects P1, P2 and P6 where a member of the metadata group has more behind it than an ordinary restart: a clock
//! that stood still while it led, another member's snapshot, or an empty disk.

use std::time::Duration;

use bytes::Bytes;
use seawall::metadata::Expect;
use seawall::metadata::consensus::Role;
use seawall::runtime::sim::ClockFace;
use seawall::simulator::metadata_history::ConsensusFact;
use seawall::simulator::plan::{Plan, Topology};

use crate::support::metadata::{client_of, consensus_held, get, leader, others, put, replace};
use crate::support::{Stage, scenario_with};

/// Long enough for an election and everything around it.
const PATIENCE: Duration = Duration::from_secs(60);
/// As long as nobody is awaited.
const AWAY: Duration = Duration::from_secs(3600);

/// Three members beside bookies and a broker. Who was away while two hundred keys were written needs a snapshot; and
/// its own log is long enough that it takes none itself soon after.
fn three_members(plan: &mut Plan) {
    plan.shape.metadata = 3;
    plan.metadata_log_bytes = 64 * 1024;
    plan.metadata_log_kept = 0;
}

fn pair(key: &str, value: &str) -> Vec<(String, Bytes)> {
    vec![(key.to_owned(), Bytes::copy_from_slice(value.as_bytes()))]
}

fn keep_down(stage: &mut Stage, place: usize) {
    let until = stage.world.now() + AWAY;
    stage.cluster.keep_down(place, until);
}

fn let_start(stage: &mut Stage, place: usize) {
    let now = stage.world.now();
    stage.cluster.keep_down(place, now);
}

/// The leader's clock stands still, so it never notices that nobody has answered it for long. It must not answer
/// from its own memory: what it remembers was changed under another leader.
#[test]
fn a_leader_whose_clock_stands_still_reads_nothing_old() {
    scenario_with(Topology::Cluster, three_members, |mut stage| async move {
        let old = leader(&mut stage).await;
        let others = others(&stage, old);
        put(&mut stage, &[old], PATIENCE, pair("/register", "before")).await.expect("put");
        let machine = stage.cluster.nodes[old].machine.clone();
        assert!(machine.freeze_clock(ClockFace::Monotonic, true));
        for other in &others {
            let other = stage.cluster.nodes[*other].machine.clone();
            assert!(stage.world.cut(&machine, &other));
        }
        put(&mut stage, &others, PATIENCE, pair("/register", "after")).await.expect("put");
        let serving = stage.cluster.nodes[old].serving().expect("it serves");
        let status = serving.metadata_member().expect("a member").status();
        assert_eq!(status.role, Role::Leader, "it has noticed");
        drop(serving);
        // Its client reaches it still. No answer is a good answer.
        if let Ok(read) = get(&mut stage, &[old], Duration::from_secs(6), "/register").await {
            let read = read.expect("the register is there");
            assert_eq!(read.value, "after", "a leader of former times answered");
        }
        machine.freeze_clock(ClockFace::Monotonic, false);
        stage.world.heal_all();
        let read = get(&mut stage, &[old], PATIENCE, "/register").await.expect("read");
        assert_eq!(read.expect("the register is there").value, "after");
        consensus_held(&stage);
    });
}

/// A member that was away is sent a snapshot, and from then on it counts. What it says it has, it must have after a
/// power loss, too.
#[test]
fn a_snapshot_taken_over_outlives_the_power() {
    scenario_with(Topology::Cluster, three_members, |mut stage| async move {
        let first = leader(&mut stage).await;
        let (second, late) = match others(&stage, first)[..] {
            [second, late] => (second, late),
            _ => panic!("a group of three"),
        };
        let late_id = stage.cluster.nodes[late].member_id().expect("a member");
        keep_down(&mut stage, late);
        assert!(stage.cluster.nodes[late].machine.crash());
        let many = (0..200).map(|number| (format!("/many/{number}"), Bytes::from(vec![7; 500])));
        put(&mut stage, &[first, second], PATIENCE, many.collect()).await.expect("put");
        let_start(&mut stage, late);
        let until = stage.world.now() + PATIENCE;
        loop {
            let is_installed = stage.history.lock().metadata.consensus.iter().any(|fact| {
                matches!(fact, ConsensusFact::Installed { member, .. } if *member == late_id)
            });
            if is_installed {
                break;
            }
            assert!(stage.world.now() < until, "no snapshot was needed");
            stage.pass(Duration::from_millis(100)).await;
        }
        // From here on the late one is needed for a quorum.
        keep_down(&mut stage, second);
        assert!(stage.cluster.nodes[second].machine.crash());
        put(&mut stage, &[first, late], PATIENCE, pair("/kept", "yes")).await.expect("put");
        keep_down(&mut stage, first);
        assert!(stage.cluster.nodes[first].machine.power_loss());
        assert!(stage.cluster.nodes[late].machine.power_loss());
        let_start(&mut stage, late);
        let_start(&mut stage, second);
        let kept = get(&mut stage, &[second, late], PATIENCE, "/kept").await;
        let kept = kept.expect("two of three serve");
        assert_eq!(kept.expect("what was acknowledged is there").value, "yes");
        let_start(&mut stage, first);
        stage.wait_until_served().await;
        consensus_held(&stage);
    });
}

/// What a member promised is on its disk. With the disk gone the id must not come back: of these three, one with an
/// empty disk and one that was away could otherwise agree that nothing was ever written.
#[test]
fn a_member_with_an_empty_disk_agrees_to_nothing() {
    scenario_with(Topology::Cluster, three_members, |mut stage| async move {
        let first = leader(&mut stage).await;
        let (wiped, late) = match others(&stage, first)[..] {
            [wiped, late] => (wiped, late),
            _ => panic!("a group of three"),
        };
        keep_down(&mut stage, late);
        assert!(stage.cluster.nodes[late].machine.power_loss());
        put(&mut stage, &[first, wiped], PATIENCE, pair("/kept", "yes")).await.expect("put");
        keep_down(&mut stage, first);
        assert!(stage.cluster.nodes[first].machine.power_loss());
        assert!(stage.cluster.nodes[wiped].machine.crash());
        assert!(stage.cluster.nodes[wiped].machine.wipe_disk());
        let_start(&mut stage, wiped);
        let_start(&mut stage, late);
        let give_up = Duration::from_secs(20);
        let agreed = put(&mut stage, &[wiped, late], give_up, pair("/other", "no")).await;
        assert!(agreed.is_err(), "one that was away and one that knows nothing agreed");
        let_start(&mut stage, first);
        let kept = get(&mut stage, &[first, late], PATIENCE, "/kept").await.expect("read");
        assert_eq!(kept.expect("what was acknowledged is there").value, "yes");
        consensus_held(&stage);
    });
}

/// An operator replaces every member, one after the other, the leader last. The log begins with the founders, of whom none is
/// left: the last one to join reads their membership first, and must answer a leader that is not in it.
#[test]
fn every_member_is_replaced_and_the_last_one_catches_up() {
    let long_log = |plan: &mut Plan| {
        plan.shape.metadata = 3;
        plan.metadata_log_bytes = 16 * 1024 * 1024;
    };
    scenario_with(Topology::Cluster, long_log, |mut stage| async move {
        let many = (0..50).map(|number| (format!("/many/{number}"), Bytes::from(vec![7; 2000])));
        let first = leader(&mut stage).await;
        put(&mut stage, &[first], PATIENCE, many.collect()).await.expect("put");
        let followers = others(&stage, first);
        for (id, place) in (101..).zip(followers.into_iter().chain([first])) {
            replace(&mut stage, place, id).await;
        }
        // Every one of them is needed for what the two others cannot do alone.
        let new = leader(&mut stage).await;
        let [needed, away] = others(&stage, new)[..] else { panic!("a group of three") };
        let away = if away == first { needed } else { away };
        keep_down(&mut stage, away);
        assert!(stage.cluster.nodes[away].machine.crash());
        put(&mut stage, &[new, first], PATIENCE, pair("/kept", "yes")).await.expect("put");
        consensus_held(&stage);
    });
}

/// Nobody could be heard while the only member stood still, so nobody is late when it goes on.
#[test]
fn a_leader_that_stood_still_ends_no_session() {
    scenario_with(
        Topology::Cluster,
        |_| {},
        |mut stage| async move {
            let only = stage.cluster.nodes.iter().position(|node| node.roles.metadata).unwrap();
            let metadata = client_of(&stage, &[only], PATIENCE);
            let asked = metadata.clone();
            let session = stage
                .client(async move {
                    let session = asked.open_session(Duration::from_secs(10)).await?;
                    asked.put("/held", Bytes::new(), Expect::Absent, Some(session)).await?;
                    Ok::<_, seawall::metadata::MetadataError>(session)
                })
                .await
                .expect("a session with a key");
            let machine = stage.cluster.nodes[only].machine.clone();
            assert!(machine.pause());
            stage.pass(Duration::from_secs(60)).await;
            machine.resume();
            let asked = metadata.clone();
            stage.client(async move { asked.keep_alive(session).await }).await.expect("it lives");
            let held = stage.client(async move { metadata.get("/held").await }).await;
            assert!(held.expect("read").is_some(), "what the session holds is gone");
        },
    );
}
