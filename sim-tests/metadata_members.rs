//! Protects P6 where the only member of the metadata group stood still: it ends no session for that.

use std::time::Duration;

use bytes::Bytes;
use seawall::metadata::Expect;
use seawall::simulator::plan::Topology;

use crate::support::metadata::client_of;
use crate::support::scenario_with;

/// Long enough for an election and everything around it.
const PATIENCE: Duration = Duration::from_secs(60);

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
