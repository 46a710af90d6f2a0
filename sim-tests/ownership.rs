//! Protects P5 and P6 where topics move: a hand-over in order, an owner that does not know it is deposed, what brokers
//! say of one another. Nothing acknowledged is lost, nothing is told twice under one position, and it goes on.

use std::time::Duration;

use seawall::domain::TopicName;
use seawall::simulator::checkers::final_chain;
use seawall::simulator::history::{MessageNumber, encode_body};
use seawall::simulator::plan::Topology;
use seawall::simulator::workloads::{Told, WorkloadClient};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::brokers::{owner, publish_on};
use crate::support::{Stage, TOPIC, scenario_with};

#[test]
fn a_broker_that_stops_hands_over_first() {
    scenario_with(
        Topology::Cluster,
        |plan| plan.shape.brokers = 2,
        |mut stage| async move {
            stage.keep_everything().await;
            let mut acknowledged = Vec::new();
            for _ in 0..4 {
                acknowledged.extend(publish_on(&mut stage, 10).await);
                let (name, _) = owner(&mut stage).await;
                let leaving = stage.cluster.nodes.iter().find(|node| node.machine.name() == name);
                leaving.unwrap().stop_in_order();
                // Far less than a session: nobody waits for one to run out.
                let began = stage.world.now();
                acknowledged.extend(publish_on(&mut stage, 1).await);
                let took = stage.world.now() - began;
                assert!(took < Duration::from_secs(2), "a hand-over took {took:?}");
                stage.wait_until_served().await;
            }
            stage.all_there(&acknowledged).await;
        },
    );
}

/// One HTTP request at a broker: status line, headers and body as text.
async fn http(stage: &mut Stage, host: &str, method: &str, path: &str) -> String {
    let runtime = stage.client_runtime();
    let (address, request) = (
        format!("{host}:8080"),
        format!("{method} {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n"),
    );
    stage
        .client(async move {
            let mut stream = runtime.network.connect(&address).await.unwrap();
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).await.unwrap();
            String::from_utf8(answer).unwrap()
        })
        .await
}

#[test]
fn every_broker_names_the_owner_and_sends_there() {
    scenario_with(
        Topology::Cluster,
        |plan| plan.shape.brokers = 3,
        |mut stage| async move {
            publish_on(&mut stage, 5).await;
            let (owner_host, _) = owner(&mut stage).await;
            let topic = "persistent/public/default/scenario";
            for number in 0..3 {
                let host = format!("broker-{number}");
                let found =
                    http(&mut stage, &host, "GET", &format!("/lookup/v2/topic/{topic}")).await;
                let url = format!("\"brokerUrl\":\"pulsar://{owner_host}:6650\"");
                assert!(
                    found.starts_with("HTTP/1.1 200") && found.contains(&url),
                    "{host}: {found}"
                );
                let path = format!("/admin/v2/{topic}/stats?x=1");
                let stats = http(&mut stage, &host, "GET", &path).await;
                if host == owner_host {
                    assert!(stats.starts_with("HTTP/1.1 200"), "{stats}");
                } else {
                    let there =
                        format!("location: http://{owner_host}:8080{path}&authoritative=false");
                    assert!(stats.starts_with("HTTP/1.1 307") && stats.contains(&there), "{stats}");
                }
                let brokers = http(&mut stage, &host, "GET", "/admin/v2/brokers").await;
                assert!(brokers.contains("broker-0:8080") && brokers.contains("broker-2:8080"));
            }
            // Whoever is asked to unload the namespace, its bundles are given up wherever they are.
            let unload = "/admin/v2/namespaces/public/default/unload";
            let done = http(&mut stage, "broker-1", "PUT", unload).await;
            assert!(done.starts_with("HTTP/1.1 204"), "{done}");
            let loaded = stage.cluster.nodes.iter().filter_map(|node| node.serving());
            assert!(
                loaded
                    .filter_map(|node| node.broker().cloned())
                    .all(|b| b.loaded_topics().is_empty())
            );
            publish_on(&mut stage, 5).await;
        },
    );
}

#[test]
fn partitions_on_several_brokers_are_one_topic_to_administrators() {
    scenario_with(
        Topology::Cluster,
        |plan| plan.shape.brokers = 3,
        |mut stage| async move {
            let topic = "/admin/v2/persistent/public/default/parts";
            let body = "HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 1\r\n\r\n8";
            let runtime = stage.client_runtime();
            let request = format!("PUT {topic}/partitions {body}");
            stage
                .client(async move {
                    let mut stream = runtime.network.connect("broker-0:8080").await.unwrap();
                    stream.write_all(request.as_bytes()).await.unwrap();
                    let mut answer = Vec::new();
                    stream.read_to_end(&mut answer).await.unwrap();
                    assert!(answer.starts_with(b"HTTP/1.1 204"));
                })
                .await;
            let stats =
                http(&mut stage, "broker-1", "GET", &format!("{topic}/partitioned-stats")).await;
            assert!(stats.starts_with("HTTP/1.1 200"), "{stats}");
            for number in 0..8 {
                assert!(stats.contains(&format!("parts-partition-{number}")), "{stats}");
            }
            let holders = stage.cluster.nodes.iter().filter_map(|node| node.serving());
            let busy =
                holders.filter(|node| node.broker().is_some_and(|b| !b.loaded_topics().is_empty()));
            assert!(busy.count() > 1, "the partitions are on several brokers");
            let gone = http(&mut stage, "broker-2", "DELETE", &format!("{topic}/partitions")).await;
            assert!(gone.starts_with("HTTP/1.1 204"), "{gone}");
            let names =
                http(&mut stage, "broker-0", "GET", "/admin/v2/persistent/public/default").await;
            assert!(names.ends_with("[]"), "{names}");
        },
    );
}

/// The epochs under which a topic's ledgers were listed, in order.
async fn epochs(stage: &mut Stage) -> Vec<u64> {
    let serving = stage.cluster.nodes.iter().find_map(|node| node.serving());
    let metadata = serving.expect("a node").metadata();
    let chain = stage.client(async move { final_chain(&metadata, TOPIC).await }).await;
    chain.expect("a record").ledgers.iter().map(|ledger| ledger.epoch).collect()
}

#[test]
fn an_owner_that_does_not_know_it_is_deposed_confirms_nothing() {
    scenario_with(
        Topology::Cluster,
        |plan| plan.shape.brokers = 2,
        |mut stage| async move {
            stage.keep_everything().await;
            let mut acknowledged = publish_on(&mut stage, 5).await;
            let (old, broker) = owner(&mut stage).await;
            let context = stage.context();
            let before = stage
                .client(async move {
                    let client = WorkloadClient::connect(&context).await.unwrap();
                    let producer = client.producer(TOPIC, 1).await.unwrap();
                    (client, producer)
                })
                .await;
            // The owner hears bookies and clients, but no longer metadata: its session runs out. The other broker
            // is asked by a client that does not hear the owner.
            let (metadata, machine) = (stage.machine("metadata-0"), stage.machine(&old));
            assert!(stage.world.cut(&machine, &metadata));
            stage.pass(Duration::from_secs(8)).await;
            let other = stage.machine(if old == "broker-0" { "broker-1" } else { "broker-0" });
            let second = stage.world.create_node("client-9", "client-9");
            assert!(stage.world.cut(&second, &machine));
            let mut context = stage.context();
            context.runtime = second.runtime();
            context.broker = format!("{}:6650", other.host());
            let taking = second.spawn("second", async move {
                let client = WorkloadClient::connect(&context).await.unwrap();
                let producer = client.producer(TOPIC, 1).await.unwrap();
                let body = encode_body(MessageNumber(1000), 100);
                match producer.send(body).await.unwrap().told().await.unwrap() {
                    Told::Committed(place) => (MessageNumber(1000), place.position),
                    Told::Rejected | Told::Closed => panic!("rejected"),
                }
            });
            acknowledged.push(taking.await.expect("another broker took the topic"));
            // The first producer goes on at the old owner. What it is told must be true.
            let told = stage
                .client(async move {
                    let (_client, producer) = before;
                    let mut told = Vec::new();
                    for number in (2000..2010).map(MessageNumber) {
                        let Ok(receipt) = producer.send(encode_body(number, 100)).await else {
                            break;
                        };
                        match receipt.told().await {
                            Ok(Told::Committed(place)) => told.push((number, place.position)),
                            Ok(Told::Rejected | Told::Closed) | Err(_) => break,
                        }
                    }
                    told
                })
                .await;
            acknowledged.extend(told);
            stage.world.heal_all();
            stage.world.heal(&machine, &metadata);
            stage.pass(Duration::from_secs(15)).await;
            let (next, _) = owner(&mut stage).await;
            assert_eq!(next, other.name());
            assert!(broker.loaded_topics().is_empty(), "the old owner was told");
            stage.all_there(&acknowledged).await;
            let epochs = epochs(&mut stage).await;
            assert!(epochs.len() >= 2 && epochs.is_sorted_by(|one, two| one < two), "{epochs:?}");
        },
    );
}

#[test]
fn a_topic_loaded_after_its_bundle_was_given_up_is_not_served() {
    scenario_with(
        Topology::Cluster,
        |plan| plan.shape.brokers = 2,
        |mut stage| async move {
            stage.keep_everything().await;
            let acknowledged = publish_on(&mut stage, 5).await;
            let (old, _) = owner(&mut stage).await;
            stage.keep_down(&old, Duration::from_secs(120));
            assert!(stage.machine(&old).crash());
            let next = if old == "broker-0" { "broker-1" } else { "broker-0" };
            stage.pass(Duration::from_secs(6)).await;
            // The next owner cannot recover the last ledger while two bookies stand still.
            let bookies = [stage.machine("bookie-0"), stage.machine("bookie-1")];
            assert!(bookies.iter().all(|bookie| bookie.pause()));
            let node = stage.cluster.nodes.iter().find(|node| node.machine.name() == next).unwrap();
            let broker = node.serving().and_then(|node| node.broker().cloned()).expect("it serves");
            let name = TopicName::parse(TOPIC).unwrap();
            let machine = stage.machine(next);
            let (loading, given) = (broker.clone(), name.clone());
            let load = machine.spawn("load", async move {
                loading.locate(&given, true).await.unwrap();
                loading.topic(&given, false).await.is_ok()
            });
            stage.pass(Duration::from_secs(2)).await;
            let releasing = broker.clone();
            let release = machine.spawn("release", async move {
                let bundle = releasing.bundle_of(&name).await.unwrap();
                releasing.release(&bundle).await
            });
            stage.pass(Duration::from_secs(1)).await;
            for bookie in &bookies {
                bookie.resume();
            }
            assert!(!load.await.unwrap(), "whoever waited for it is told to look up again");
            release.await.unwrap().unwrap();
            stage.pass(Duration::from_secs(5)).await;
            assert!(broker.loaded_topics().is_empty(), "a bundle that was given up is not served");
            stage.all_there(&acknowledged).await;
        },
    );
}
