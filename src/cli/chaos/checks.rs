//! After the storm: the cluster comes back, every copy comes to be where it must be, and the history holds.

use std::sync::Arc;

use http::Method;
use serde_json::Value;

use super::stage::RealStage;
use crate::cli::local_cluster::{Layout, Reach};
use crate::domain::{BookieId, TopicName};
use crate::frontend::admin::{exchange_for, topic_path};
use crate::ledger::{BookiePool, RemoteBookieConfig};
use crate::metadata::{Metadata, Pages, RemoteMetadata, RemoteMetadataConfig};
use crate::node::bookie_registry::{BOOKIES_PREFIX, BookieRecord, RegisteredBookies};
use crate::runtime::{Runtime, Shutdown};
use crate::simulator::awaited::REPLICATION;
use crate::simulator::checkers::{Holder, final_chain, full_replication};
use crate::simulator::clients::{Clients, Outcome, SETUP_LIMIT};
use crate::simulator::workloads::property;

/// Everything is healed.
pub(super) async fn come_back_and_check(
    clients: &mut Clients<RealStage>,
    layout: &Layout,
    reach: &[Reach],
    outcome: &mut Outcome,
) {
    let runtime = clients.stage.runtime.clone();
    let addresses: Vec<String> = layout.metadata_nodes().map(|node| node.rpc_address()).collect();
    let config = RemoteMetadataConfig::default();
    let metadata: Metadata = Arc::new(RemoteMetadata::new(runtime.clone(), &addresses, config));
    let stop = Shutdown::new();
    let pool = RegisteredBookies::start(
        &runtime,
        Arc::clone(&metadata),
        None,
        RemoteBookieConfig::default(),
        stop.signal(),
    );
    let is_back = match clients.come_back(outcome).await {
        Ok(()) => true,
        Err(detail) => {
            outcome.fail("P6", "liveness", detail);
            false
        }
    };
    if is_back {
        await_replication(clients, &metadata, &pool, reach.len(), outcome).await;
    }
    clients.stop_all();
    if is_back {
        look_at_properties(clients, layout).await;
        clients.look_at_the_rest(outcome).await;
    }
    let (topics, history) = (clients.topics.clone(), clients.history.clone());
    let work = async move {
        for topic in topics {
            if let Some(chain) = final_chain(&metadata, &topic).await {
                history.lock().final_chains.insert(topic, chain);
            }
        }
    };
    // Without an answer nothing is compared, which the verdict tells.
    let _ = clients.while_supervised("read chains", work, SETUP_LIMIT).await;
    clients.judge(outcome);
    stop.trigger();
}

async fn await_replication(
    clients: &mut Clients<RealStage>,
    metadata: &Metadata,
    pool: &Arc<RegisteredBookies>,
    expected: usize,
    outcome: &mut Outcome,
) {
    let look = |_: &RealStage| {
        let (metadata, pool) = (Arc::clone(metadata), Arc::clone(pool));
        Some(async move {
            let holders = holders(&metadata, &pool).await?;
            if holders.len() < expected {
                return Err(format!("{} of {expected} bookies are registered", holders.len()));
            }
            full_replication(&metadata, &holders).await
        })
    };
    let finding = clients.await_finding(&REPLICATION, look).await;
    outcome.findings.push((REPLICATION.checker.to_owned(), finding));
}

/// Every bookie that is registered now.
async fn holders(
    metadata: &Metadata,
    pool: &Arc<RegisteredBookies>,
) -> Result<Vec<Holder>, String> {
    let mut found: Vec<BookieId> = Vec::new();
    let mut pages = Pages::new(metadata, BOOKIES_PREFIX);
    while let Some(page) = pages.next().await.map_err(|error| error.to_string())? {
        found.extend(page.iter().filter_map(|(key, _)| BookieRecord::bookie_of(key)));
    }
    Ok(found.into_iter().map(|bookie| (bookie, pool.bookie(bookie))).collect())
}

/// Asks the brokers what their subscriptions have kept.
async fn look_at_properties(clients: &mut Clients<RealStage>, layout: &Layout) {
    let (topics, history) = (clients.topics.clone(), clients.history.clone());
    let runtime = clients.stage.runtime.clone();
    let nodes: Vec<String> = layout.nodes.iter().map(|node| node.http_url()).collect();
    let work = async move {
        for topic in topics {
            let Some(stats) = statistics(&runtime, &nodes, &topic).await else { continue };
            let subscriptions = stats.get("subscriptions").and_then(Value::as_object);
            let (key, value) = property();
            for (name, subscription) in subscriptions.into_iter().flatten() {
                if subscription.get("isDurable").and_then(Value::as_bool) == Some(false) {
                    continue;
                }
                let kept = subscription.get("subscriptionProperties").and_then(|all| all.get(&key));
                let mut history = history.lock();
                history.properties_seen += 1;
                if kept.and_then(Value::as_str) != Some(value.as_str()) {
                    history.properties_lost.push(format!("{topic}/{name}"));
                }
            }
        }
    };
    let _ = clients.while_supervised("ask for statistics", work, SETUP_LIMIT).await;
}

/// A topic's statistics from whichever broker serves it.
async fn statistics(runtime: &Runtime, nodes: &[String], topic: &str) -> Option<Value> {
    let path = format!("/admin/v2/{}/stats", topic_path(&TopicName::parse(topic).ok()?));
    for http in nodes {
        let Ok(answer) = exchange_for(runtime, Method::GET, http, &path).await else { continue };
        if answer.status.is_success() {
            return serde_json::from_slice(&answer.body).ok();
        }
    }
    None
}
