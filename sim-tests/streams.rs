//! Protects the numbers of the stream API where brokers die: conditional appends stay a register that is written
//! one value at a time (no gap, no duplicate, no number told twice), and a fenced token stays fenced.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use seawall::client::{StreamClient, StreamError};
use seawall::domain::TopicName;
use seawall::rpc::generated::public::ledgers_client::LedgersClient;
use seawall::rpc::generated::public::{
    self as wire, NewRecord, Outcome, Reason, read_stream_request::Start, write_answer,
    write_request,
};
use seawall::rpc::{Channel, ChannelConfig, ReceiverStream, failure_of_status};
use seawall::runtime::Runtime;
use seawall::simulator::plan::Topology;
use tokio::sync::mpsc;

use crate::support::{Stage, scenario_with};

const STREAM: &str = "persistent://public/default/stream";
/// How long a client waits for one append.
const PATIENCE: Duration = Duration::from_secs(20);

fn client(stage: &Stage) -> StreamClient {
    let addresses = stage.cluster.grpc_addresses();
    StreamClient::new(&stage.client_runtime(), &addresses, STREAM).unwrap()
}

/// The machine that serves the stream.
async fn owner(stage: &mut Stage) -> String {
    let name = TopicName::parse(STREAM).unwrap();
    for _ in 0..600 {
        for node in &stage.cluster.nodes {
            let serving = node.serving();
            let Some(broker) = serving.as_ref().and_then(|node| node.broker()) else { continue };
            if broker.loaded_topics().iter().any(|topic| *topic.name() == name) {
                return node.machine.name().to_owned();
            }
        }
        stage.pass(Duration::from_millis(100)).await;
    }
    panic!("nobody serves the stream");
}

/// Appends one record.
async fn append(
    client: &StreamClient,
    payload: &str,
    expected_number: Option<u64>,
    token: Option<u64>,
) -> Result<u64, StreamError> {
    let mut appender = client.append(token).await?;
    let payload = Bytes::from(payload.to_owned());
    appender.send(NewRecord { payload, expected_number, ..NewRecord::default() }).await;
    appender.finish();
    let numbers = appender.next().await?.unwrap_or_default();
    Ok(numbers[0])
}

/// The whole stream; tries until it can be read.
async fn read_all(stage: &mut Stage) -> Vec<(u64, String)> {
    let client = client(stage);
    let runtime = stage.client_runtime();
    stage
        .client(async move {
            for _ in 0..100 {
                let reading = async {
                    let mut reader = client.read(Start::First(true), 0, false).await?;
                    let mut records = Vec::new();
                    while let Some(more) = reader.next().await? {
                        records.extend(more);
                    }
                    Ok::<_, StreamError>(records)
                };
                if let Ok(Ok(records)) = runtime.clock.timeout(PATIENCE, reading).await {
                    let text = |bytes: Bytes| String::from_utf8(bytes.to_vec()).unwrap();
                    return records.into_iter().map(|r| (r.number, text(r.payload))).collect();
                }
                runtime.clock.sleep(Duration::from_millis(500)).await;
            }
            panic!("the stream cannot be read");
        })
        .await
}

/// What the writers were told.
#[derive(Default)]
struct Told {
    committed: Vec<(u64, String)>,
    rejected: Vec<String>,
    unknown: Vec<String>,
}

/// One writer of the register: looks where the end is and tries to be the next.
async fn write(
    runtime: Runtime,
    client: StreamClient,
    name: &str,
    told: Arc<Mutex<Told>>,
    stop: Arc<AtomicBool>,
) {
    let mut attempt = 0;
    while !stop.load(Ordering::Relaxed) {
        attempt += 1;
        let payload = format!("{name}-{attempt}");
        let appending = async {
            let next = client.describe().await?.next_number;
            let number = append(&client, &payload, Some(next), None).await?;
            assert_eq!(number, next, "the number that was asked for");
            Ok::<_, StreamError>(number)
        };
        let outcome = runtime.clock.timeout(PATIENCE, appending).await;
        {
            let mut told = told.lock().unwrap();
            match outcome {
                Ok(Ok(number)) => told.committed.push((number, payload)),
                // Asking where the end is may end without a word of ours too, and then nothing was sent; that
                // is counted as unknown all the same.
                Ok(Err(error)) if error.is_unknown() => told.unknown.push(payload),
                Ok(Err(_)) => told.rejected.push(payload),
                Err(_) => told.unknown.push(payload),
            }
        }
        runtime.clock.sleep(Duration::from_millis(20)).await;
    }
}

#[test]
fn conditional_appends_are_one_register_through_owners_that_die() {
    scenario_with(
        Topology::Cluster,
        |plan| {
            plan.shape.brokers = 3;
            plan.ledger_entries_max = 7;
        },
        |mut stage| async move {
            let creating = client(&stage);
            stage.client(async move { creating.create().await }).await.unwrap();
            let (told, stop) =
                (Arc::new(Mutex::new(Told::default())), Arc::new(AtomicBool::new(false)));
            let writers = ["a", "b", "c"].map(|name| {
                let (told, stop) = (Arc::clone(&told), Arc::clone(&stop));
                stage.begin(write(stage.client_runtime(), client(&stage), name, told, stop))
            });
            for round in 0..4 {
                stage.pass(Duration::from_secs(4)).await;
                let name = owner(&mut stage).await;
                if round % 2 == 0 {
                    stage.keep_down(&name, Duration::from_secs(6));
                    assert!(stage.machine(&name).crash());
                    stage.pass(Duration::from_secs(8)).await;
                } else {
                    // It does not know that it is deposed.
                    let machine = stage.machine(&name);
                    stage.world.isolate(&machine);
                    stage.pass(Duration::from_secs(8)).await;
                    stage.world.heal_all();
                }
            }
            stage.pass(Duration::from_secs(5)).await;
            stop.store(true, Ordering::Relaxed);
            for writer in writers {
                writer.await.unwrap();
            }
            let log = read_all(&mut stage).await;
            let told = std::mem::take(&mut *told.lock().unwrap());
            assert!(told.committed.len() > 50, "only {} committed", told.committed.len());
            assert!(!told.rejected.is_empty(), "nobody was ever in another's way");
            // No gap.
            assert!(log.iter().map(|(number, _)| *number).eq(0..log.len() as u64), "{log:?}");
            for record in &told.committed {
                assert!(log.contains(record), "{record:?} was committed and is not there");
            }
            for payload in &told.rejected {
                assert!(log.iter().all(|(_, there)| there != payload), "{payload} was rejected");
            }
            let mut payloads: Vec<_> = log.iter().map(|(_, payload)| payload).collect();
            payloads.sort();
            payloads.dedup();
            assert_eq!(payloads.len(), log.len(), "something is there twice");
            let accounted = |payload: &String| {
                told.committed.iter().any(|(_, there)| there == payload)
                    || told.unknown.contains(payload)
            };
            assert!(payloads.into_iter().all(accounted), "a record nobody appended");
        },
    );
}

#[test]
fn a_fenced_token_is_refused_by_every_later_owner() {
    scenario_with(
        Topology::Cluster,
        |plan| plan.shape.brokers = 2,
        |mut stage| async move {
            let writing = client(&stage);
            let next = stage
                .client(async move {
                    assert_eq!(append(&writing, "old", None, Some(1)).await, Ok(0));
                    let fenced = writing.fence(2).await.unwrap();
                    assert_eq!((fenced.token, fenced.next_number), (2, 1));
                    fenced.next_number
                })
                .await;
            for round in 0..4_u64 {
                let name = owner(&mut stage).await;
                stage.keep_down(&name, Duration::from_secs(5));
                let machine = stage.machine(&name);
                assert!(if round % 2 == 0 { machine.crash() } else { machine.power_loss() });
                let client = client(&stage);
                stage
                    .client(async move {
                        let stale = loop {
                            match append(&client, "stale", None, Some(1)).await {
                                Ok(number) => panic!("a stale token appended number {number}"),
                                Err(error) if error.reason() == Reason::StaleToken => break error,
                                Err(_) => {}
                            }
                        };
                        assert_eq!((stale.failure.token, stale.is_unknown()), (Some(2), false));
                        let number = append(&client, "new", Some(next + round), Some(2)).await;
                        assert_eq!(number, Ok(next + round));
                    })
                    .await;
                stage.pass(Duration::from_secs(6)).await;
            }
            let log = read_all(&mut stage).await;
            assert_eq!(log.len(), 5);
            assert!(log.iter().all(|(_, payload)| payload != "stale"));
        },
    );
}

#[test]
fn a_ledger_recovered_elsewhere_keeps_what_its_writer_was_told() {
    scenario_with(
        Topology::Cluster,
        |plan| plan.shape.brokers = 2,
        |mut stage| async move {
            let runtime = stage.client_runtime();
            let addresses = stage.cluster.grpc_addresses();
            let ledgers = move |broker: usize| {
                let config = ChannelConfig::default();
                LedgersClient::new(Channel::new(runtime.clone(), &addresses[broker], config))
            };
            let (requests, receiver) = mpsc::channel(64);
            let append = |number: u8| {
                let payload = Bytes::from(vec![number]);
                let item = Some(write_request::Item::Append(wire::AppendEntry { payload }));
                wire::WriteRequest { item }
            };
            let create = write_request::Item::Create(wire::CreateLedger::default());
            requests.try_send(wire::WriteRequest { item: Some(create) }).unwrap();
            (0..30).for_each(|number| requests.try_send(append(number)).unwrap());
            let mut writing = ledgers(0);
            let (ledger, mut answers) = stage
                .client(async move {
                    let answers = writing.write(ReceiverStream::new(receiver)).await.unwrap();
                    let mut answers = answers.into_inner();
                    let first = answers.message().await.unwrap().unwrap().item;
                    let Some(write_answer::Item::Created(created)) = first else { panic!() };
                    loop {
                        let next = answers.message().await.unwrap().unwrap().item;
                        let Some(write_answer::Item::Confirmed(confirmed)) = next else { panic!() };
                        if confirmed.last_entry == 29 {
                            return (created.ledger, answers);
                        }
                    }
                })
                .await;
            // The writer's broker is cut off from everything but the client, and appends meanwhile.
            let (broker, other) = (stage.machine("broker-0"), stage.machine("broker-1"));
            for node in &stage.cluster.nodes {
                if node.machine.name() != "broker-0" {
                    stage.world.cut(&broker, &node.machine);
                }
            }
            drop(other);
            (30..40).for_each(|number| requests.try_send(append(number)).unwrap());
            let mut recovering = ledgers(1);
            let closed = stage
                .client(async move {
                    let request = wire::RecoverRequest { ledger };
                    recovering.recover(request).await.unwrap().into_inner()
                })
                .await;
            assert!(closed.last_entry >= 29, "{closed:?}");
            stage.world.heal_all();
            let status = stage
                .client(async move {
                    loop {
                        match answers.message().await {
                            Ok(Some(answer)) => match answer.item {
                                Some(write_answer::Item::Confirmed(confirmed)) => {
                                    assert!(confirmed.last_entry <= closed.last_entry);
                                }
                                other => panic!("{other:?}"),
                            },
                            Ok(None) => panic!("the writer was not told"),
                            Err(status) => return status,
                        }
                    }
                })
                .await;
            let failure = failure_of_status(&status).expect("a word of ours");
            assert_eq!(failure.outcome(), Outcome::Unknown, "{status:?}");
            let mut reading = ledgers(1);
            let entries = stage
                .client(async move {
                    let request = wire::ReadLedgerRequest { ledger, ..Default::default() };
                    let mut answers = reading.read_ledger(request).await.unwrap().into_inner();
                    let mut entries = Vec::new();
                    while let Some(answer) = answers.message().await.unwrap() {
                        entries.extend(answer.entries.into_iter().map(|entry| entry.payload[0]));
                    }
                    entries
                })
                .await;
            let expected: Vec<u8> = (0..=u8::try_from(closed.last_entry).unwrap()).collect();
            assert_eq!(entries, expected);
        },
    );
}
