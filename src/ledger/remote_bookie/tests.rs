//! A fake bookie service on loopback: answers in another order, breaks off, refuses.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use tokio::sync::Notify;
use tonic::{Request, Response, Status, Streaming};

use super::{RemoteBookie, RemoteBookieConfig};
use crate::domain::{
    AddAnswer, AddBatch, AddError, AddSink, BookieId, CreatorToken, Entry, EntryId, LedgerId,
    ReadError, ReadRequest,
};
use crate::ledger::BookieClient;
use crate::rpc::bookie_messages::{batch_from_wire, entry_to_wire};
use crate::rpc::generated::bookie as wire;
use crate::rpc::generated::bookie::bookie_server;
use crate::rpc::{Routes, ServerConfig, serve};
use crate::runtime::{Runtime, Shutdown, real};

const BOOKIE: BookieId = BookieId(7);

/// Breaks the stream at a batch of ledger 666; stores nothing; answers each message backwards.
struct Fake;

#[tonic::async_trait]
impl bookie_server::Bookie for Fake {
    type AddStream = BoxStream<'static, Result<wire::AddAnswers, Status>>;
    type ReadStream = BoxStream<'static, Result<wire::ReadAnswer, Status>>;

    async fn add(
        &self,
        request: Request<Streaming<wire::AddRequests>>,
    ) -> Result<Response<Self::AddStream>, Status> {
        let answers = request.into_inner().map(|requests| {
            let requests = requests?;
            let mut answers = Vec::new();
            for batch in requests.batches.into_iter().rev() {
                let (number, batch) = batch_from_wire(batch);
                for entry in &batch.entries {
                    entry.verify(batch.ledger, entry.entry).unwrap();
                }
                if batch.ledger == LedgerId(666) {
                    return Err(Status::aborted("broken on purpose"));
                }
                let result = wire::AddResult::Stored.into();
                answers.push(wire::AddAnswer { number, result, detail: String::new() });
            }
            Ok(wire::AddAnswers { answers })
        });
        Ok(Response::new(answers.boxed()))
    }

    async fn read(
        &self,
        request: Request<wire::ReadRequest>,
    ) -> Result<Response<Self::ReadStream>, Status> {
        let request = request.into_inner();
        let answers = if request.first < 0 {
            let failure = wire::ReadFailure::Absent.into();
            vec![wire::ReadAnswer { failure, ..Default::default() }]
        } else {
            (0..i64::from(request.entries_max))
                .map(|step| {
                    let entry = entry(LedgerId(request.ledger), request.first + step, 10);
                    wire::ReadAnswer { entries: vec![entry_to_wire(entry)], ..Default::default() }
                })
                .collect()
        };
        Ok(Response::new(stream::iter(answers).map(Ok).boxed()))
    }

    async fn last_add_confirmed(
        &self,
        request: Request<wire::LastAddConfirmedRequest>,
    ) -> Result<Response<wire::LastAddConfirmedAnswer>, Status> {
        Ok(Response::new(wire::LastAddConfirmedAnswer {
            last_add_confirmed: -1,
            last_entry: 3,
            fenced: request.into_inner().fence,
            ..Default::default()
        }))
    }

    async fn tell_last_add_confirmed(
        &self,
        _request: Request<wire::TellRequest>,
    ) -> Result<Response<wire::TellAnswer>, Status> {
        let failure = wire::ReadFailure::WrongCreator.into();
        Ok(Response::new(wire::TellAnswer { failure, detail: String::new() }))
    }
}

#[derive(Default)]
struct Sink {
    answers: Mutex<Vec<AddAnswer>>,
    changed: Notify,
}

impl AddSink for Sink {
    fn answered(&self, answer: AddAnswer) {
        self.answers.lock().unwrap().push(answer);
        self.changed.notify_one();
    }
}

impl Sink {
    async fn wait_for(&self, count: usize) -> Vec<AddAnswer> {
        loop {
            let changed = self.changed.notified();
            if self.answers.lock().unwrap().len() >= count {
                return std::mem::take(&mut *self.answers.lock().unwrap());
            }
            changed.await;
        }
    }
}

fn entry(ledger: LedgerId, entry: i64, bytes: usize) -> Entry {
    let payload = Bytes::from(vec![5; bytes]);
    Entry::seal(ledger, EntryId(entry), EntryId(entry - 1), bytes as u64, payload)
}

fn batch(ledger: u64, first: i64, count: i64, bytes: usize) -> AddBatch {
    let ledger = LedgerId(ledger);
    let entries = (first..first + count).map(|id| entry(ledger, id, bytes)).collect();
    AddBatch { ledger, creator: CreatorToken(1), recovery: false, entries }
}

async fn fake(runtime: &Runtime) -> (String, Shutdown) {
    let listener = runtime.network.listen("127.0.0.1:0").await.unwrap();
    let address = listener.local_address();
    let stop = Shutdown::new();
    let routes = Routes::new().with(bookie_server::BookieServer::new(Fake));
    let served = serve(runtime.clone(), listener, routes, ServerConfig::default(), stop.signal());
    runtime.tasks.spawn("fake bookie", served);
    (address, stop)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_batch_is_answered_once_and_a_broken_stream_is_reopened() {
    let runtime = real::runtime();
    let (address, _stop) = fake(&runtime).await;
    let bookie = RemoteBookie::new(runtime, BOOKIE, &address, RemoteBookieConfig::default());
    let sink = Arc::new(Sink::default());
    for round in 0..3 {
        for number in 0..200 {
            bookie.add(batch(1, number * 3, 3, 1000), Arc::clone(&sink) as Arc<dyn AddSink>);
        }
        let mut seen = BTreeMap::new();
        for answer in sink.wait_for(200).await {
            assert_eq!((answer.bookie, answer.ledger), (BOOKIE, LedgerId(1)));
            assert_eq!(answer.result, Ok(()), "round {round}");
            assert!(seen.insert(answer.entries[0], answer.entries.len()).is_none());
        }
        assert_eq!(seen.len(), 200);
        for _ in 0..5 {
            bookie.add(batch(666, 0, 1, 10), Arc::clone(&sink) as Arc<dyn AddSink>);
        }
        for answer in sink.wait_for(5).await {
            assert!(matches!(answer.result, Err(AddError::Unreachable(_))), "{answer:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_there_and_too_much_are_answered_too() {
    let runtime = real::runtime();
    let listener = runtime.network.listen("127.0.0.1:0").await.unwrap();
    let address = listener.local_address();
    drop(listener);
    let config = RemoteBookieConfig { in_flight_bytes: 10_000, ..Default::default() };
    let bookie = RemoteBookie::new(runtime, BOOKIE, &address, config);
    let sink = Arc::new(Sink::default());
    bookie.add(batch(1, 0, 1, 20_000), Arc::clone(&sink) as Arc<dyn AddSink>);
    assert_eq!(sink.wait_for(1).await[0].result, Err(AddError::Overloaded));
    for _ in 0..3 {
        bookie.add(batch(1, 0, 1, 9_000), Arc::clone(&sink) as Arc<dyn AddSink>);
        let answer = sink.wait_for(1).await.remove(0);
        assert!(matches!(answer.result, Err(AddError::Unreachable(_))), "{answer:?}");
    }
    let known = bookie.last_add_confirmed(LedgerId(1), CreatorToken(1), true).await;
    assert!(matches!(known, Err(ReadError::Unreachable(_))));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn single_calls_carry_answers_and_refusals() {
    let runtime = real::runtime();
    let (address, _stop) = fake(&runtime).await;
    let config = RemoteBookieConfig { call_timeout: Duration::from_secs(5), ..Default::default() };
    let bookie = RemoteBookie::new(runtime, BOOKIE, &address, config);
    let mut request = ReadRequest {
        ledger: LedgerId(4),
        creator: CreatorToken(1),
        first: EntryId(10),
        entries_max: 3,
        bytes_max: 1000,
        fence: false,
    };
    let entries = bookie.read(request).await.unwrap();
    assert_eq!(entries.len(), 3);
    for (step, entry) in entries.iter().enumerate() {
        entry.verify(LedgerId(4), EntryId(10 + step as i64)).unwrap();
    }
    request.first = EntryId(-5);
    assert_eq!(bookie.read(request).await, Err(ReadError::Absent));
    let known = bookie.last_add_confirmed(LedgerId(4), CreatorToken(1), true).await.unwrap();
    assert_eq!((known.last_entry, known.fenced), (EntryId(3), true));
    let told = bookie.tell_last_add_confirmed(LedgerId(4), CreatorToken(1), EntryId(0)).await;
    assert_eq!(told, Err(ReadError::WrongCreator));
}
