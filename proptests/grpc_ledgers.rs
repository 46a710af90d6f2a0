//! The ledger API of a whole node, through its gRPC port: a ledger's life, its one writer deposed by recovery,
//! and what is refused and how.
#![allow(clippy::unwrap_used, reason = "helpers of tests, where a failure is a failed test")]

use std::time::Duration;

use bytes::Bytes;
use seawall::rpc::generated::public::{
    self as wire, Failure, Outcome, Reason, ledgers_client, write_answer, write_request,
};
use seawall::rpc::{Channel, ChannelConfig, ReceiverStream, failure_of_status};
use tokio::sync::mpsc;
use tonic::{Code, Status, Streaming};

use crate::node_place::{Place, on_node};

type Client = ledgers_client::LedgersClient<Channel>;

fn client(place: &Place) -> Client {
    let address = place.node.grpc_address().unwrap();
    let channel = Channel::new(place.runtime.clone(), address, ChannelConfig::default());
    ledgers_client::LedgersClient::new(channel).max_decoding_message_size(64 * 1024 * 1024)
}

/// A write under way.
struct Write {
    requests: mpsc::Sender<wire::WriteRequest>,
    answers: Streaming<wire::WriteAnswer>,
    ledger: u64,
}

fn create(replication: Option<(u32, u32, u32)>, purpose: &str) -> write_request::Item {
    let replication =
        replication.map(|(ensemble, write, ack)| wire::Replication { ensemble, write, ack });
    write_request::Item::Create(wire::CreateLedger { replication, purpose: purpose.to_owned() })
}

fn append(payload: &[u8]) -> write_request::Item {
    write_request::Item::Append(wire::AppendEntry { payload: Bytes::copy_from_slice(payload) })
}

fn close() -> write_request::Item {
    write_request::Item::Close(wire::CloseLedger {})
}

/// Sends these requests and no more; answers what came, and how it ended.
async fn talk(
    client: &mut Client,
    items: Vec<write_request::Item>,
) -> (Vec<write_answer::Item>, Result<(), Status>) {
    let (requests, receiver) = mpsc::channel(items.len().max(1));
    for item in items {
        requests.send(wire::WriteRequest { item: Some(item) }).await.unwrap();
    }
    drop(requests);
    let mut answers = match client.write(ReceiverStream::new(receiver)).await {
        Ok(answers) => answers.into_inner(),
        Err(status) => return (Vec::new(), Err(status)),
    };
    let mut received = Vec::new();
    loop {
        match answers.message().await {
            Ok(Some(answer)) => received.push(answer.item.unwrap()),
            Ok(None) => return (received, Ok(())),
            Err(status) => return (received, Err(status)),
        }
    }
}

impl Write {
    async fn begin(client: &mut Client) -> Self {
        let (requests, receiver) = mpsc::channel(16);
        let first = wire::WriteRequest { item: Some(create(None, "test")) };
        requests.send(first).await.unwrap();
        let mut answers = client.write(ReceiverStream::new(receiver)).await.unwrap().into_inner();
        let created = answers.message().await.unwrap().unwrap().item.unwrap();
        let write_answer::Item::Created(created) = created else { panic!("{created:?}") };
        Self { requests, answers, ledger: created.ledger }
    }

    async fn send(&self, item: write_request::Item) {
        self.requests.send(wire::WriteRequest { item: Some(item) }).await.unwrap();
    }

    async fn confirmed_up_to(&mut self, entry: i64) {
        loop {
            match self.answers.message().await.unwrap().unwrap().item.unwrap() {
                write_answer::Item::Confirmed(confirmed) if confirmed.last_entry >= entry => return,
                write_answer::Item::Confirmed(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }
}

async fn read(client: &mut Client, ledger: u64, first: i64) -> Result<Vec<Bytes>, Status> {
    let request = wire::ReadLedgerRequest { ledger, first_entry: first, ..Default::default() };
    let mut answers = client.read_ledger(request).await?.into_inner();
    let mut entries = Vec::new();
    while let Some(answer) = answers.message().await? {
        for entry in answer.entries {
            assert_eq!(entry.entry, first + entries.len() as i64, "dense");
            entries.push(entry.payload);
        }
    }
    Ok(entries)
}

fn told(status: &Status) -> Failure {
    failure_of_status(status).unwrap_or_else(|| panic!("no detail in {status:?}"))
}

#[test]
fn a_ledger_is_written_read_closed_and_deleted() {
    on_node(async |place| {
        let mut client = client(place);
        let mut items = vec![create(Some((1, 1, 1)), "a purpose")];
        let big = vec![7; 300 * 1024];
        items.extend((0..50_u8).map(|number| append(&[number])));
        items.extend([append(&big), append(&big), append(b""), close()]);
        let (answers, end) = talk(&mut client, items).await;
        end.unwrap();
        let Some(write_answer::Item::Created(created)) = answers.first() else {
            panic!("{answers:?}")
        };
        let Some(write_answer::Item::Closed(closed)) = answers.last() else {
            panic!("{answers:?}")
        };
        assert_eq!((closed.last_entry, closed.ledger), (52, created.ledger));
        assert_eq!(closed.length, 50 + 2 * big.len() as u64);
        let entries = read(&mut client, created.ledger, 0).await.unwrap();
        assert_eq!(entries.len(), 53);
        assert_eq!((&entries[3][..], &entries[51][..], entries[52].len()), (&[3][..], &big[..], 0));
        assert_eq!(read(&mut client, created.ledger, 52).await.unwrap().len(), 1);
        // Read from behind the end: nothing, not an error, since a reader asks for what may come.
        assert!(read(&mut client, created.ledger, 53).await.unwrap().is_empty());
        let delete = wire::DeleteLedgerRequest { ledger: created.ledger };
        for _ in 0..2 {
            client.delete_ledger(delete).await.unwrap();
        }
        let status = read(&mut client, created.ledger, 0).await.unwrap_err();
        assert_eq!((status.code(), told(&status).reason()), (Code::NotFound, Reason::NotFound));
    });
}

#[test]
fn a_recovered_ledger_deposes_its_writer() {
    on_node(async |place| {
        let mut client = client(place);
        let mut write = Write::begin(&mut client).await;
        for number in 0..10_u8 {
            write.send(append(&[number])).await;
        }
        write.confirmed_up_to(9).await;
        let describe = wire::DescribeLedgerRequest { ledger: write.ledger };
        let open = client.describe_ledger(describe).await.unwrap().into_inner();
        assert_eq!(open.state(), wire::LedgerState::Open);
        // Somebody else fences and closes it; twice is as good as once.
        for _ in 0..2 {
            let request = wire::RecoverRequest { ledger: write.ledger };
            let closed = client.recover(request).await.unwrap().into_inner();
            assert_eq!((closed.state(), closed.last_entry), (wire::LedgerState::Closed, 9));
        }
        write.send(append(b"late")).await;
        let status = loop {
            match write.answers.message().await {
                Ok(Some(_)) => {}
                Ok(None) => panic!("the writer was not told"),
                Err(status) => break status,
            }
        };
        let failure = told(&status);
        assert_eq!(status.code(), Code::FailedPrecondition, "{status:?}");
        assert_eq!(failure.reason(), Reason::LedgerFenced);
        // The writer cannot know; the reader can.
        assert_eq!((failure.outcome(), failure.last_confirmed), (Outcome::Unknown, Some(9)));
        assert_eq!(read(&mut client, write.ledger, 0).await.unwrap().len(), 10);
    });
}

#[test]
fn a_writer_that_goes_away_leaves_the_ledger_to_recovery() {
    on_node(async |place| {
        let mut client = client(place);
        let mut write = Write::begin(&mut client).await;
        write.send(append(b"kept")).await;
        write.confirmed_up_to(0).await;
        let ledger = write.ledger;
        drop(write);
        // A follower waits for what is recovered, and ends with the ledger.
        let request =
            wire::ReadLedgerRequest { ledger, follow: true, ..wire::ReadLedgerRequest::default() };
        let mut following = client.read_ledger(request).await.unwrap().into_inner();
        let closed = client.recover(wire::RecoverRequest { ledger }).await.unwrap().into_inner();
        assert_eq!(closed.last_entry, 0);
        let wait = Duration::from_secs(20);
        let next = place.runtime.clock.timeout(wait, following.message()).await.unwrap();
        assert_eq!(next.unwrap().unwrap().entries.len(), 1);
        let end = place.runtime.clock.timeout(wait, following.message()).await.unwrap();
        assert!(end.unwrap().is_none());
    });
}

#[test]
fn what_breaks_a_rule_is_refused_and_what_was_good_is_kept() {
    on_node(async |place| {
        let mut client = client(place);
        for (replication, purpose) in [
            (Some((1, 2, 1)), "more copies than bookies".to_owned()),
            (Some((0, 0, 0)), "none".to_owned()),
            (Some((1000, 1, 1)), "many".to_owned()),
            (None, "x".repeat(10_000)),
        ] {
            let (_, end) = talk(&mut client, vec![create(replication, &purpose)]).await;
            let status = end.unwrap_err();
            assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
            assert_eq!(told(&status).reason(), Reason::Invalid);
        }
        for items in [vec![], vec![append(b"x")], vec![close()]] {
            let (_, end) = talk(&mut client, items).await;
            assert_eq!(end.unwrap_err().code(), Code::InvalidArgument);
        }
        let (_, end) = talk(&mut client, vec![create(Some((3, 3, 2)), "")]).await;
        assert_eq!(end.unwrap_err().code(), Code::Unavailable, "there is one bookie");
        // A second `create` and a payload beyond the limit end the call; the entry before them is committed.
        for bad in [create(None, ""), append(&vec![0; 5 * 1024 * 1024 + 1])] {
            let (answers, end) =
                talk(&mut client, vec![create(None, ""), append(b"good"), bad]).await;
            let failure = told(&end.unwrap_err());
            assert_eq!((failure.outcome(), failure.last_confirmed), (Outcome::Rejected, Some(0)));
            let Some(write_answer::Item::Created(created)) = answers.first() else { panic!() };
            client.recover(wire::RecoverRequest { ledger: created.ledger }).await.unwrap();
            assert_eq!(read(&mut client, created.ledger, 0).await.unwrap().len(), 1);
            let status = read(&mut client, created.ledger, -1).await.unwrap_err();
            assert_eq!(status.code(), Code::InvalidArgument);
        }
    });
}

#[test]
fn ledgers_of_topics_are_out_of_reach() {
    on_node(async |place| {
        let options = seawall::client::ClientOptions::default();
        let url = place.node.pulsar_address().unwrap();
        let pulsar = seawall::client::PulsarClient::connect(&place.runtime, url, options);
        let pulsar = pulsar.await.unwrap();
        let options = seawall::client::ProducerOptions::default();
        let producer = pulsar.producer("topic", options).await.unwrap();
        let payload = Bytes::from_static(b"x");
        let message = seawall::client::OutgoingMessage { payload, ..Default::default() };
        let id = producer.send(message).await.unwrap().await.unwrap();
        let ledger = id.position.ledger.0;
        let mut client = client(place);
        let refused = [
            client.recover(wire::RecoverRequest { ledger }).await.map(drop),
            client.delete_ledger(wire::DeleteLedgerRequest { ledger }).await.map(drop),
            client.describe_ledger(wire::DescribeLedgerRequest { ledger }).await.map(drop),
            read(&mut client, ledger, 0).await.map(drop),
        ];
        for result in refused {
            let status = result.unwrap_err();
            assert_eq!(status.code(), Code::PermissionDenied);
            assert_eq!(told(&status).reason(), Reason::NotYours);
        }
        let missing = client.recover(wire::RecoverRequest { ledger: u64::MAX }).await;
        assert_eq!(missing.unwrap_err().code(), Code::NotFound);
        pulsar.close().await;
    });
}
