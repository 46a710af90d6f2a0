//! The metadata of a single node: log and snapshot.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;

use super::SubjectName;
use super::explore::{Started, Subject};
use super::record::Record;
use crate::metadata::{Expect, MetadataClient, SingleNodeConfig, SingleNodeMetadata};
use crate::runtime::Runtime;
use crate::runtime::sim::{SimNode, World};

const COUNTER: &str = "/counter";

/// Something asked of the store, or answered by it.
pub(super) enum Fact {
    /// A change of a key was asked for; no value: its removal.
    Asked(String, Option<Bytes>),
    /// The last change asked for of the key is made.
    Done(String),
    /// A number was asked for.
    NumberAsked,
    /// It was given.
    Number(u64),
}

fn config() -> SingleNodeConfig {
    SingleNodeConfig { log_bytes: 1_500, ..SingleNodeConfig::below(Path::new("/data")) }
}

struct Life {
    store: SingleNodeMetadata,
    node: SimNode,
    record: Record<Fact>,
}

type Work = Result<(), String>;

impl Life {
    async fn begin(node: &SimNode, record: &Record<Fact>) -> Result<Self, String> {
        let started = SingleNodeMetadata::start(node.runtime(), config()).await;
        let store = started.map_err(|error| error.to_string())?;
        Ok(Self { store, node: node.clone(), record: record.clone() })
    }

    async fn change(&self, key: &str, bytes: Option<usize>, round: u64) -> Work {
        let value = bytes.map(|bytes| {
            let mut value = format!("{key} {round};").into_bytes();
            value.resize(bytes.max(value.len()), round as u8);
            Bytes::from(value)
        });
        self.record.asked(Fact::Asked(key.to_owned(), value.clone()));
        let done = match value {
            Some(value) => self.store.put(key, value, Expect::Any, None).await.map(|_| ()),
            None => self.store.delete(key, Expect::Any).await,
        };
        done.map_err(|error| error.to_string())?;
        self.record.promised(&self.node, Fact::Done(key.to_owned()));
        Ok(())
    }

    async fn number(&self) -> Work {
        self.record.asked(Fact::NumberAsked);
        let number = self.store.next_number(COUNTER).await.map_err(|error| error.to_string())?;
        self.record.promised(&self.node, Fact::Number(number));
        Ok(())
    }

    async fn rounds(&self, rounds: std::ops::Range<u64>) -> Work {
        for round in rounds {
            let (one, two) = (format!("/one/{}", round % 3), format!("/two/{}", round % 2));
            let bytes = 20 + (round as usize * 173) % 900;
            // Two at a time, so that groups hold several.
            let (first, second) = futures_util::future::join(
                self.change(&one, Some(bytes), round),
                self.change(&two, (round % 4 != 3).then_some(30), round),
            )
            .await;
            first.and(second)?;
            self.number().await?;
        }
        Ok(())
    }
}

async fn lives(node: SimNode, record: Record<Fact>) -> Work {
    let life = Life::begin(&node, &record).await?;
    life.rounds(0..7).await?;
    node.crash();
    let life = Life::begin(&node, &record).await?;
    life.rounds(7..12).await?;
    life.store.stop().await;
    node.crash();
    let life = Life::begin(&node, &record).await?;
    life.rounds(12..14).await
}

/// The values a key may have: the last one promised, and those asked for since.
#[derive(Default)]
struct Key {
    promised: Option<Bytes>,
    asked: Vec<Option<Bytes>>,
}

#[derive(Default)]
struct Expected {
    keys: BTreeMap<String, Key>,
    number: u64,
    numbers_asked: u64,
}

impl Expected {
    fn of(facts: &[Fact]) -> Self {
        let mut all = Self::default();
        for fact in facts {
            match fact {
                Fact::Asked(key, value) => {
                    all.keys.entry(key.clone()).or_default().asked.push(value.clone());
                }
                Fact::Done(key) => {
                    let key = all.keys.entry(key.clone()).or_default();
                    key.promised = key.asked.pop().flatten();
                    key.asked.clear();
                }
                Fact::NumberAsked => all.numbers_asked += 1,
                Fact::Number(number) => all.number = all.number.max(*number),
            }
        }
        all
    }

    async fn hold(&self, store: &SingleNodeMetadata) -> Result<u64, String> {
        for (key, expected) in &self.keys {
            let found = store.get(key).await.map_err(|error| error.to_string())?;
            let found = found.map(|found| found.value);
            if found != expected.promised && !expected.asked.contains(&found) {
                let length = found.map(|value| value.len());
                return Err(format!("key {key} has not what was promised: {length:?} bytes"));
            }
        }
        let number = store.next_number(COUNTER).await.map_err(|error| error.to_string())?;
        if number <= self.number || number > self.numbers_asked + 1 {
            return Err(format!("number {number} is given, the last one was {}", self.number));
        }
        Ok(self.keys.len() as u64 + 1)
    }
}

pub(super) struct SingleNodeSubject;

impl Subject for SingleNodeSubject {
    type Fact = Fact;

    fn name(&self) -> SubjectName {
        SubjectName::SingleNode
    }

    fn work(&self, world: World, record: Record<Fact>) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            let node = world.create_node("metadata", "metadata");
            record.watch(&node, 0);
            let worked = lives(node, record).await;
            assert_eq!(worked, Ok(()), "the work of metadata");
        })
    }

    fn recover(
        &self,
        runtime: Runtime,
        _place: u64,
        facts: Arc<Vec<Fact>>,
        count: usize,
        started: Started,
    ) -> BoxFuture<'static, Result<u64, String>> {
        Box::pin(async move {
            let store = SingleNodeMetadata::start(runtime, config()).await;
            let store = store.map_err(|error| format!("the start fails: {error}"))?;
            if started.watched {
                started.call();
                return Ok(0);
            }
            Expected::of(&facts[..count]).hold(&store).await
        })
    }
}
