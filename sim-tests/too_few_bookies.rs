//! Protects P1 and P6: with fewer bookies than a ledger needs nothing is acknowledged that has too few copies, what
//! was acknowledged is read all the same, and everything goes on by itself once bookies are back. Five bookies
//! of which two are away are enough for three copies: new ledgers are spread over three.

use std::collections::BTreeSet;
use std::time::Duration;

use seawall::client::{ClientOptions, OutgoingMessage, ProducerOptions, PulsarClient, SendError};
use seawall::domain::{BookieId, Position};
use seawall::ledger::{LedgerRecord, Quorum};
use seawall::metadata::Pages;
use seawall::simulator::history::{MessageNumber, encode_body};
use seawall::simulator::plan::Topology;
use seawall::simulator::workloads::WorkloadContext;

use crate::support::bookies::{id_of, metadata, on_bookies, repaired_without};
use crate::support::brokers::publish_on;
use crate::support::{Stage, TOPIC, scenario_with};

/// Longer than a session lives: who is away this long is not registered any more.
const UNREGISTERED: Duration = Duration::from_secs(20);
const LONG: Duration = Duration::from_secs(36_000);

/// Messages of this file that scenarios count on not being acknowledged.
const REFUSED_FROM: u64 = 1_000_000;
const WAITING: u64 = 2_000_000;

fn take_away(stage: &mut Stage, names: &[&str]) {
    for name in names {
        stage.keep_down(name, LONG);
        assert!(stage.machine(name).crash());
    }
}

async fn bring_back(stage: &mut Stage, names: &[&str]) {
    for name in names {
        stage.keep_down(name, Duration::ZERO);
    }
    stage.pass(Duration::from_secs(5)).await;
}

/// Sends one message and waits so long for each answer, connecting again if `patient`.
async fn send(
    context: WorkloadContext,
    number: u64,
    limit: Duration,
    patient: bool,
) -> Result<Position, SendError> {
    let rejected = SendError::Rejected;
    let options = ClientOptions { operation_limit: limit, ..ClientOptions::default() };
    let client = PulsarClient::connect(&context.runtime, &context.broker, options);
    let client = client.await.map_err(rejected)?;
    let options =
        ProducerOptions { reconnect: patient, send_limit: limit, ..ProducerOptions::default() };
    let producer = client.producer(TOPIC, options).await.map_err(rejected)?;
    let body = encode_body(MessageNumber(number), 100);
    let sent = producer.send(OutgoingMessage::new(body)).await.map_err(rejected)?;
    sent.await.map(|id| id.position)
}

/// For a minute nothing is acknowledged. Answers what clients were told.
async fn refuses(stage: &mut Stage) -> Vec<SendError> {
    let until = stage.world.now() + Duration::from_secs(60);
    let mut refusals = Vec::new();
    while stage.world.now() < until {
        let number = REFUSED_FROM + refusals.len() as u64;
        let sent = send(stage.context(), number, Duration::from_secs(10), false);
        refusals.push(stage.client(sent).await.expect_err("it has too few copies"));
        stage.pass(Duration::from_secs(2)).await;
    }
    refusals
}

/// With all bookies back messages are taken, copies are made anew, and everything acknowledged is there.
async fn goes_on(stage: &mut Stage, mut acknowledged: Vec<(MessageNumber, Position)>) {
    acknowledged.extend(publish_on(stage, 30).await);
    repaired_without(stage, None).await;
    stage.all_there(&acknowledged).await;
}

async fn records(stage: &mut Stage) -> Vec<LedgerRecord> {
    let metadata = metadata(stage);
    stage
        .client(async move {
            let mut records = Vec::new();
            let mut pages = Pages::new(&metadata, LedgerRecord::PREFIX);
            while let Some(page) = pages.next().await.unwrap() {
                let values = page.iter().map(|(_, versioned)| &versioned.value);
                records.extend(values.map(|value| serde_json::from_slice(value).unwrap()));
            }
            records
        })
        .await
}

#[test]
fn with_one_of_three_away_the_next_ledger_waits() {
    scenario_with(
        Topology::Swarm,
        |plan| on_bookies(plan, 3),
        |mut stage| async move {
            stage.keep_everything().await;
            let mut acknowledged = stage.publish(5).await;
            take_away(&mut stage, &["bookie-2"]);
            stage.pass(UNREGISTERED).await;
            // Two are enough for an acknowledgement, and not for the ledger after this one.
            acknowledged.extend(stage.publish(50).await);
            assert!((6..50).contains(&acknowledged.len()), "{}", acknowledged.len());
            let ledgers = records(&mut stage).await.len();
            let refusals = refuses(&mut stage).await;
            let waits = |refusal: &SendError| matches!(refusal, SendError::Unknown(_));
            assert!(refusals.iter().all(waits), "{refusals:?}");
            assert_eq!(records(&mut stage).await.len(), ledgers);
            stage.all_there(&acknowledged).await;
            // One who waits long enough need not do anything.
            let limit = Duration::from_secs(300);
            let waiting = stage.begin(send(stage.context(), WAITING, limit, true));
            stage.pass(Duration::from_secs(70)).await;
            bring_back(&mut stage, &["bookie-2"]).await;
            let position = waiting.await.unwrap().expect("acknowledged in the end");
            acknowledged.push((MessageNumber(WAITING), position));
            goes_on(&mut stage, acknowledged).await;
        },
    );
}

#[test]
fn with_two_of_three_away_nothing_is_acknowledged() {
    scenario_with(
        Topology::Swarm,
        |plan| on_bookies(plan, 3),
        |mut stage| async move {
            stage.keep_everything().await;
            let acknowledged = stage.publish(5).await;
            take_away(&mut stage, &["bookie-0", "bookie-2"]);
            // The end of the open ledger cannot be found: the topic is not loaded, and clients are told why.
            let refusals = refuses(&mut stage).await;
            let why = refusals.last().unwrap();
            assert!(matches!(why, SendError::Rejected(error) if error.is_not_ready()), "{why}");
            assert!(why.to_string().contains("is not registered"), "{why}");
            // With two it can be found, and what is before it can be read.
            bring_back(&mut stage, &["bookie-0"]).await;
            refuses(&mut stage).await;
            stage.all_there(&acknowledged).await;
            bring_back(&mut stage, &["bookie-2"]).await;
            goes_on(&mut stage, acknowledged).await;
        },
    );
}

#[test]
fn with_two_of_five_away_new_ledgers_are_spread_over_three() {
    scenario_with(
        Topology::Swarm,
        |plan| {
            on_bookies(plan, 5);
            plan.shape.quorum = Quorum { ensemble: 5, write: 3, ack: 2 };
        },
        |mut stage| async move {
            let away = ["bookie-1", "bookie-3"];
            let living: BTreeSet<BookieId> =
                ["bookie-0", "bookie-2", "bookie-4"].map(|name| id_of(&stage, name)).into();
            take_away(&mut stage, &away);
            stage.pass(UNREGISTERED).await;
            stage.keep_everything().await;
            let mut acknowledged = publish_on(&mut stage, 45).await;
            let made = records(&mut stage).await;
            assert!(made.len() > 4, "ledgers were rolled");
            for record in &made {
                assert_eq!(record.quorum, Quorum { ensemble: 3, write: 3, ack: 2 });
                for fragment in &record.fragments {
                    assert_eq!(fragment.ensemble.iter().copied().collect::<BTreeSet<_>>(), living);
                }
            }
            let compared = repaired_without(&mut stage, None).await;
            assert!(compared >= 3 * 40, "only {compared} copies");
            stage.all_there(&acknowledged).await;

            bring_back(&mut stage, &away).await;
            acknowledged.extend(publish_on(&mut stage, 20).await);
            let wide = |record: &LedgerRecord| record.quorum.ensemble == 5;
            assert!(
                records(&mut stage).await.iter().any(wide),
                "five bookies share the load again"
            );
            repaired_without(&mut stage, None).await;
            stage.all_there(&acknowledged).await;
        },
    );
}
