//! The stream API of a whole node against a model: numbers, expected numbers, tokens, trimming, over rollover and
//! loads of the topic. Ledgers hold three entries, so that every few records roll over and trimming frees some.
#![allow(clippy::unwrap_used, reason = "helpers of tests, where a failure is a failed test")]

use bytes::Bytes;
use proptest::prelude::*;
use seawall::bookie::BookieConfig;
use seawall::client::{StreamClient, StreamError};
use seawall::domain::TopicName;
use seawall::node::{Node, NodeConfig};
use seawall::rpc::generated::public::{NewRecord, Reason, StreamFacts, read_stream_request::Start};
use seawall::runtime::real;

use crate::bookie_model::{block_on, new_folder};

#[derive(Clone, Debug)]
enum Step {
    /// Records without terms.
    Append(u64),
    /// Records that expect their numbers, but for one of them, under a token this much above the stream's.
    Expecting { count: u64, wrong_at: u64, token: Option<i64> },
    /// Raises the token by this, or tries to lower it.
    Fence(i64),
    /// Trims up to this far before (or behind) the end.
    Trim(i64),
    /// The topic is closed and loaded again, as by a new owner.
    Load,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let expecting = (1_u64..6, 0_u64..8, proptest::option::of(-2_i64..3));
    let step = prop_oneof![
        3 => (1_u64..5).prop_map(Step::Append),
        4 => expecting.prop_map(|(count, wrong_at, token)| {
            Step::Expecting { count, wrong_at, token }
        }),
        2 => (-1_i64..3).prop_map(Step::Fence),
        2 => (-1_i64..9).prop_map(Step::Trim),
        3 => Just(Step::Load),
    ];
    proptest::collection::vec(step, 4..20)
}

#[derive(Default)]
struct Model {
    records: Vec<Bytes>,
    first: u64,
    token: u64,
}

impl Model {
    fn next(&self) -> u64 {
        self.records.len() as u64
    }

    fn facts(&self) -> StreamFacts {
        StreamFacts { first_number: self.first, next_number: self.next(), token: self.token }
    }

    /// A token this much above the stream's, but one that can be.
    fn token(&self, above: i64) -> u64 {
        self.token.saturating_add_signed(above).max(1)
    }
}

fn check_stale(error: &StreamError, model: &Model) {
    assert_eq!((error.reason(), error.failure.token), (Reason::StaleToken, Some(model.token)));
    assert!(!error.is_unknown());
}

/// Appends records that expect these numbers; what is stored must be what the model stores.
async fn append(
    client: &StreamClient,
    model: &mut Model,
    expected: &[Option<u64>],
    token: Option<u64>,
) {
    let opened = client.append(token).await;
    let mut appender = match (opened, token) {
        (Err(error), Some(token)) if token < model.token => {
            check_stale(&error, model);
            return;
        }
        (opened, _) => opened.unwrap(),
    };
    model.token = model.token.max(token.unwrap_or(0));
    assert_eq!(appender.opened(), model.facts());
    let mut right = Vec::new();
    let mut is_broken = false;
    for expected_number in expected {
        let payload = Bytes::from(format!("record {}", model.next()));
        let record = NewRecord {
            payload: payload.clone(),
            expected_number: *expected_number,
            ..NewRecord::default()
        };
        appender.send(record).await;
        is_broken |= expected_number.is_some_and(|expected| expected != model.next());
        if !is_broken {
            right.push(model.next());
            model.records.push(payload);
        }
    }
    appender.finish();
    let mut numbers = Vec::new();
    let end = loop {
        match appender.next().await {
            Ok(Some(more)) => numbers.extend(more),
            Ok(None) => break None,
            Err(error) => break Some(error),
        }
    };
    assert_eq!(numbers, right);
    match end {
        None => assert!(!is_broken),
        Some(error) => {
            assert!(is_broken && !error.is_unknown(), "{error:?}");
            assert_eq!(error.reason(), Reason::WrongNumber);
            assert_eq!(error.failure.next_number, Some(model.next()));
        }
    }
}

async fn read(client: &StreamClient, start: Start) -> Result<Vec<(u64, Bytes)>, StreamError> {
    let mut reader = client.read(start, 0, false).await?;
    let mut records = Vec::new();
    while let Some(more) = reader.next().await? {
        records.extend(more.into_iter().map(|record| (record.number, record.payload)));
    }
    Ok(records)
}

async fn check(client: &StreamClient, model: &Model) {
    assert_eq!(client.describe().await.unwrap(), model.facts());
    let kept = model.records.iter().enumerate().skip(usize::try_from(model.first).unwrap());
    let kept: Vec<_> = kept.map(|(number, payload)| (number as u64, payload.clone())).collect();
    assert_eq!(read(client, Start::First(true)).await.unwrap(), kept);
    let middle = model.first.midpoint(model.next());
    let from_middle: Vec<_> = kept.into_iter().filter(|(number, _)| *number >= middle).collect();
    assert_eq!(read(client, Start::Number(middle)).await.unwrap(), from_middle);
    let beyond = read(client, Start::Number(model.next() + 1)).await.unwrap_err();
    assert_eq!(beyond.reason(), Reason::BeyondEnd);
    if let Some(below) = model.first.checked_sub(1) {
        let trimmed = read(client, Start::Number(below)).await.unwrap_err();
        assert_eq!(
            (trimmed.reason(), trimmed.failure.first_number),
            (Reason::Trimmed, Some(model.first))
        );
    }
}

async fn play(node: &Node, client: &StreamClient, steps: Vec<Step>) {
    let mut model = Model::default();
    let name = TopicName::parse("stream").unwrap();
    assert_eq!(client.describe().await.unwrap_err().reason(), Reason::NotFound);
    assert_eq!(client.create().await.unwrap(), model.facts());
    for step in steps {
        match step {
            Step::Append(count) => {
                let expected = vec![None; usize::try_from(count).unwrap()];
                append(client, &mut model, &expected, None).await;
            }
            Step::Expecting { count, wrong_at, token } => {
                let next = model.next();
                let expected: Vec<_> = (0..count)
                    .map(|place| Some(next + place + u64::from(place == wrong_at)))
                    .collect();
                let token = token.map(|above| model.token(above));
                append(client, &mut model, &expected, token).await;
            }
            Step::Fence(above) => {
                let token = model.token(above);
                match client.fence(token).await {
                    Ok(facts) => {
                        assert!(token >= model.token);
                        model.token = token;
                        assert_eq!(facts, model.facts());
                    }
                    Err(error) => {
                        assert!(token < model.token, "{error:?}");
                        check_stale(&error, &model);
                    }
                }
            }
            Step::Trim(before_end) => {
                let number = model.next().saturating_add_signed(-before_end);
                match client.trim(number).await {
                    Ok(facts) => {
                        assert!(number <= model.next());
                        model.first = model.first.max(number);
                        assert_eq!(facts, model.facts());
                    }
                    Err(error) => {
                        assert!(number > model.next(), "{error:?}");
                        assert_eq!(error.reason(), Reason::BeyondEnd);
                    }
                }
            }
            Step::Load => {
                let topic = node.broker().unwrap().topic(&name, false).await.unwrap();
                topic.unload().await;
            }
        }
        check(client, &model).await;
    }
}

fn run(steps: Vec<Step>) {
    block_on(async {
        let runtime = real::runtime();
        let folder = new_folder(&runtime).await;
        let mut config = NodeConfig {
            pulsar_listen: "127.0.0.1:0".to_owned(),
            http_listen: "127.0.0.1:0".to_owned(),
            grpc_listen: "127.0.0.1:0".to_owned(),
            bookie: BookieConfig {
                journal_file_bytes: 4 * 1024 * 1024,
                write_cache_bytes: 4 * 1024 * 1024,
                entry_log_bytes: 8 * 1024 * 1024,
                free_space_low_bytes: 0,
                ..BookieConfig::below(&folder)
            },
            ..NodeConfig::standalone(folder.clone())
        };
        config.broker.ledger_entries_max = 3;
        let node = Box::pin(Node::start(runtime.clone(), config)).await.expect("started");
        let address = node.grpc_address().unwrap().to_owned();
        let client = StreamClient::new(&runtime, &[address], "stream").unwrap();
        play(&node, &client, steps).await;
        node.stop().await;
        runtime.disk.remove_directory(&folder).await.expect("removed");
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    #[test]
    fn numbers_and_tokens_outlive_whatever_happens_to_the_topic(steps in steps()) {
        run(steps);
    }
}
