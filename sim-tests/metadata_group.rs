//! Protects P1 and P6 where metadata is a group's: a member can be replaced while it works.

use seawall::metadata::{MembershipAdmin, RemoteMetadataConfig};
use seawall::simulator::plan::{Plan, Topology};

use crate::support::brokers::publish_on;
use crate::support::metadata::{consensus_held, leader};
use crate::support::scenario_with;

/// Three members beside three bookies and two brokers.
fn apart(plan: &mut Plan) {
    plan.shape.metadata = 3;
    plan.shape.brokers = 2;
    plan.metadata_log_bytes = 8 * 1024;
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
