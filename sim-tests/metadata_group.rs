//! Protects P1 and P6 where metadata is a group's: it goes on without any one member, and a member can be replaced
//! while it works.

use std::time::Duration;

use seawall::domain::Position;
use seawall::metadata::{MembershipAdmin, RemoteMetadataConfig};
use seawall::simulator::history::MessageNumber;
use seawall::simulator::plan::{Plan, Topology};

use crate::support::metadata::{consensus_held, leader};
use crate::support::{Stage, scenario_with};

/// Three members beside three bookies and two brokers.
fn apart(plan: &mut Plan) {
    plan.shape.metadata = 3;
    plan.shape.brokers = 2;
    plan.metadata_log_bytes = 8 * 1024;
}

/// Three nodes with every role.
fn together(plan: &mut Plan) {
    plan.shape.metadata = 3;
    plan.shape.brokers = 3;
    plan.shape.shares_nodes = true;
}

/// Publishes until so many were acknowledged in all, as a client that connects again would.
async fn publish_on(stage: &mut Stage, count: usize) -> Vec<(MessageNumber, Position)> {
    let mut acknowledged = Vec::new();
    for _ in 0..200 {
        acknowledged.extend(stage.publish(5).await);
        if acknowledged.len() >= count {
            return acknowledged;
        }
        stage.pass(Duration::from_millis(200)).await;
    }
    panic!("only {} of {count} were acknowledged", acknowledged.len());
}

#[test]
fn publishing_goes_on_without_any_one_leader() {
    scenario_with(Topology::Cluster, apart, |mut stage| async move {
        stage.keep_everything().await;
        let mut acknowledged = publish_on(&mut stage, 10).await;
        for _ in 0..3 {
            let leader = leader(&mut stage).await;
            let machine = stage.cluster.nodes[leader].machine.clone();
            let name = machine.name().to_owned();
            stage.keep_down(&name, Duration::from_secs(30));
            assert!(machine.power_loss());
            // A broker that restarts needs metadata to take its topics over.
            let broker = stage.machine("broker-0");
            broker.crash();
            acknowledged.extend(publish_on(&mut stage, 10).await);
            stage.pass(Duration::from_secs(31)).await;
            stage.wait_until_served().await;
        }
        stage.all_there(&acknowledged).await;
        consensus_held(&stage);
    });
}

#[test]
fn three_nodes_with_every_role_go_on_without_any_one() {
    scenario_with(Topology::Cluster, together, |mut stage| async move {
        stage.keep_everything().await;
        let mut acknowledged = publish_on(&mut stage, 10).await;
        for node in 0..3 {
            let name = format!("node-{node}");
            stage.keep_down(&name, Duration::from_secs(40));
            assert!(stage.machine(&name).crash());
            acknowledged.extend(publish_on(&mut stage, 10).await);
            stage.pass(Duration::from_secs(41)).await;
            stage.wait_until_served().await;
        }
        stage.all_there(&acknowledged).await;
        consensus_held(&stage);
    });
}

#[test]
fn a_member_is_replaced_while_the_cluster_works() {
    scenario_with(Topology::Cluster, apart, |mut stage| async move {
        stage.keep_everything().await;
        let mut acknowledged = publish_on(&mut stage, 10).await;
        let leader = leader(&mut stage).await;
        let (old, address) = {
            let node = &stage.cluster.nodes[leader];
            (node.member_id().expect("a member"), node.rpc_address())
        };
        let runtime = stage.client_runtime();
        let addresses = stage.cluster.metadata_addresses();
        let admin = MembershipAdmin::new(runtime, &addresses, RemoteMetadataConfig::default());
        let removing = admin.clone();
        stage.client(async move { removing.remove_member(old).await }).await.expect("removed");
        let machine = stage.cluster.nodes[leader].machine.clone();
        machine.crash();
        machine.wipe_disk();
        stage.cluster.nodes[leader].become_member(9);
        let adding = admin.clone();
        stage.client(async move { adding.add_member(9, &address).await }).await.expect("added");
        let group = stage.client(async move { admin.members().await }).await.expect("listed");
        let ids: Vec<u64> = group.members.iter().map(|member| member.id).collect();
        assert!(ids.len() == 3 && ids.contains(&9) && !ids.contains(&old), "{group:?}");
        assert!(group.members.iter().all(|member| member.votes), "{group:?}");
        acknowledged.extend(publish_on(&mut stage, 10).await);
        stage.all_there(&acknowledged).await;
        consensus_held(&stage);
    });
}
