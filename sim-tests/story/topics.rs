//! Words for the topic: publishing, subscriptions, and who serves it. Messages are numbered from 1 in the order they
//! are published; what a subscription gets is held against that.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use seawall::broker::SubscriptionType;
use seawall::domain::TopicName;
use seawall::simulator::history::{MessageNumber, decode_body};
use seawall::simulator::workloads::{Received, SessionError, WorkloadClient, WorkloadConsumer};

use super::places::Who;
use super::play::{PATIENCE, demand};
use super::{Outcome, Play, Story};
use crate::support::TOPIC;

/// What a subscription was told.
#[derive(Default)]
pub struct Subscribed {
    /// Acknowledged with a receipt: these never come again.
    acknowledged: BTreeSet<MessageNumber>,
    /// Acknowledged, and perhaps without a receipt: these may come again or not.
    asked: BTreeSet<MessageNumber>,
    /// So many messages were published before it began; those may have been deleted.
    before: usize,
}

type Shared = Arc<Mutex<Subscribed>>;

impl Subscribed {
    fn asked(shared: &Shared, received: &[&Received]) {
        let numbers = received.iter().filter_map(|one| decode_body(&one.message.payload));
        shared.lock().unwrap().asked.extend(numbers);
    }

    fn told(shared: &Shared, received: &[&Received]) {
        let numbers = received.iter().filter_map(|one| decode_body(&one.message.payload));
        shared.lock().unwrap().acknowledged.extend(numbers);
    }
}

/// How long a session of a consumer waits for one message.
const RECEIVE: Duration = Duration::from_secs(10);
/// A session that gets nothing for so long has got everything.
const SILENCE: Duration = Duration::from_secs(3);

impl Story {
    /// Publishes so many messages one after the other, connecting again when that is needed, until all are acknowledged.
    pub fn publishes(self, messages: u64) -> Self {
        self.step(format!("{messages} are published"), async move |play| {
            play.keep_everything().await;
            let wanted = play.acknowledged.len() + messages as usize;
            play.wait(PATIENCE, async |play| {
                let missing = wanted - play.acknowledged.len();
                let acknowledged = play.stage.publish(missing as u64).await;
                play.acknowledged.extend(acknowledged);
                let missing = wanted - play.acknowledged.len();
                demand(missing == 0, || format!("{missing} are not acknowledged"))
            })
            .await
        })
    }

    /// Publishes with one connection: all so many messages are acknowledged at the first attempt.
    pub fn publishes_at_once(self, messages: u64) -> Self {
        self.step(format!("{messages} are published at the first attempt"), async move |play| {
            play.keep_everything().await;
            let acknowledged = play.stage.publish(messages).await;
            let count = acknowledged.len() as u64;
            play.acknowledged.extend(acknowledged);
            demand(count == messages, || format!("{count} were acknowledged"))
        })
    }

    /// Tries to publish so many; those that are acknowledged have to be there in the end.
    pub fn tries_to_publish(self, messages: u64) -> Self {
        self.step(format!("someone tries to publish {messages}"), async move |play| {
            let acknowledged = play.stage.publish(messages).await;
            play.acknowledged.extend(acknowledged);
            Ok(())
        })
    }

    /// Tries to publish, and nothing is acknowledged.
    pub fn cannot_publish(self) -> Self {
        self.step("nothing can be published", async |play| {
            let acknowledged = play.stage.publish(1).await;
            demand(acknowledged.is_empty(), || format!("{acknowledged:?} were acknowledged"))
        })
    }

    /// Begins to publish so many, and waits for nothing.
    pub fn begins_to_publish(self, messages: u64) -> Self {
        self.step(format!("someone begins to publish {messages}"), async move |play| {
            play.keep_everything().await;
            let publishing = play.stage.begin_publishing(messages);
            play.publishing.push(publishing);
            Ok(())
        })
    }

    /// From here on clients know only this broker.
    pub fn clients_ask_only(self, broker: &'static str) -> Self {
        self.step(format!("clients ask only {broker}"), async move |play| {
            let name = play.one(broker)?;
            play.stage.ask_only(Some(&name));
            Ok(())
        })
    }

    /// From here on clients know all brokers again.
    pub fn clients_ask_all(self) -> Self {
        self.step("clients ask all brokers", async |play| {
            play.stage.ask_only(None);
            Ok(())
        })
    }

    /// Waits until the topic is served by another broker than these.
    pub fn served_by_another_than(self, who: impl Into<Who>) -> Self {
        let who = who.into();
        self.step(format!("another than {who} serves the topic"), async move |play| {
            let old = play.names(&who)?;
            play.wait(PATIENCE, async |play| {
                let name = TopicName::parse(TOPIC).map_err(|error| error.to_string())?;
                let nodes = play.stage.cluster.nodes.iter();
                let serving = nodes.filter(|node| {
                    let serving = node.serving();
                    let broker = serving.as_ref().and_then(|node| node.broker());
                    broker.is_some_and(|b| b.loaded_topics().iter().any(|t| *t.name() == name))
                });
                let owners: Vec<&str> = serving.map(|node| node.machine.name()).collect();
                let is_another = owners.iter().any(|owner| !old.iter().any(|old| old == owner));
                demand(is_another, || format!("{owners:?} serve it"))
            })
            .await
        })
    }

    /// This broker serves the topic, now.
    pub fn serves(self, who: &'static str) -> Self {
        self.step(format!("{who} serves the topic"), async move |play| {
            let (wanted, owner) = (play.one(who)?, play.owner());
            demand(owner.as_ref() == Some(&wanted), || format!("{owner:?} serves it"))
        })
    }

    /// Waits until these brokers serve the topic no longer.
    pub fn serves_no_longer(self, who: impl Into<Who>) -> Self {
        let who = who.into();
        self.step(format!("{who} serves the topic no longer"), async move |play| {
            let names = play.names(&who)?;
            play.wait(PATIENCE, async |play| {
                for name in &names {
                    let serving = play.node(name)?.serving();
                    let broker = serving.as_ref().and_then(|node| node.broker());
                    let loaded = broker.map_or(0, |broker| broker.loaded_topics().len());
                    demand(loaded == 0, || format!("{name} still has {loaded} topics"))?;
                }
                Ok(())
            })
            .await
        })
    }

    /// The owner gives the topic's bundle up in order.
    pub fn owner_gives_up(self) -> Self {
        self.step("the owner gives the topic up", async |play| {
            let owner = play.one("owner")?;
            let serving = play.node(&owner)?.serving().ok_or("it does not serve")?;
            let broker = serving.broker().cloned().ok_or("it is no broker")?;
            drop(serving);
            let name = TopicName::parse(TOPIC).map_err(|error| error.to_string())?;
            let giving = play.machine(&owner)?.spawn("give up", async move {
                let bundle = broker.bundle_of(&name).await?;
                broker.release(&bundle).await
            });
            play.join(giving).await?.map_err(|error| error.to_string())
        })
    }

    /// This broker is asked to serve the topic, and begins to; nobody waits for it.
    pub fn begins_to_serve(self, broker: &'static str) -> Self {
        self.step(format!("{broker} begins to serve the topic"), async move |play| {
            let name = play.one(broker)?;
            let serving = play.node(&name)?.serving().ok_or("it does not serve")?;
            let broker = serving.broker().cloned().ok_or("it is no broker")?;
            drop(serving);
            let topic = TopicName::parse(TOPIC).map_err(|error| error.to_string())?;
            drop(play.machine(&name)?.spawn("load", async move {
                broker.locate(&topic, true).await.is_ok()
                    && broker.topic(&topic, false).await.is_ok()
            }));
            Ok(())
        })
    }

    /// A subscription is created, at the first message kept.
    pub fn subscribes(self, subscription: &'static str) -> Self {
        self.step(format!("{subscription} is subscribed"), async move |play| {
            play.session(subscription, async |_, _| Ok(())).await
        })
    }

    /// A subscription is created, which may miss what was published before.
    pub fn subscribes_from_here(self, subscription: &'static str) -> Self {
        self.subscribes(subscription).step("only what comes now counts", async move |play| {
            let before = play.acknowledged.len();
            let told = play.subscriptions.get(subscription).ok_or("it is not subscribed")?;
            told.lock().unwrap().before = before;
            Ok(())
        })
    }

    /// A consumer on a machine of its own gets the next so many messages, acknowledges none, and dies.
    pub fn gets_and_dies(self, subscription: &'static str, messages: usize) -> Self {
        let told = format!("a consumer of {subscription} gets {messages} and dies");
        self.step(told, async move |play| {
            let name = format!("consumer-of-{subscription}");
            let machine = play.stage.world.create_node(&name, &name);
            let mut context = play.stage.context();
            context.runtime = machine.runtime();
            let getting = async {
                let text = |error: SessionError| error.to_string();
                let client = WorkloadClient::connect(&context).await.map_err(text)?;
                let consumer = client.consumer(TOPIC, subscription, SubscriptionType::Exclusive);
                let mut consumer = consumer.await.map_err(text)?;
                receive(&mut consumer, messages).await?;
                // Without a word to the broker.
                machine.crash();
                Ok(())
            };
            play.supervised(getting).await
        })
    }

    /// A consumer gets the next so many messages of the subscription and acknowledges each, with receipts.
    pub fn consumes(self, subscription: &'static str, messages: usize) -> Self {
        self.step(format!("{subscription} consumes {messages}"), async move |play| {
            play.session(subscription, async |consumer, told| {
                for one in receive(consumer, messages).await? {
                    Subscribed::asked(told, &[&one]);
                    consumer.acknowledge(&one).await.map_err(|error| error.to_string())?;
                    Subscribed::told(told, &[&one]);
                }
                Ok(())
            })
            .await
        })
    }

    /// A consumer gets the next so many messages and acknowledges the last of them cumulatively, with a receipt.
    pub fn acknowledges_up_to(self, subscription: &'static str, messages: usize) -> Self {
        let told = format!("{subscription} acknowledges everything up to the next {messages}");
        self.step(told, async move |play| {
            play.session(subscription, async |consumer, told| {
                let received = receive(consumer, messages).await?;
                let all: Vec<&Received> = received.iter().collect();
                let last = received.last().ok_or("it gets nothing")?;
                Subscribed::asked(told, &all);
                let acknowledged = consumer.acknowledge_cumulative(last).await;
                acknowledged.map_err(|error| error.to_string())?;
                Subscribed::told(told, &all);
                Ok(())
            })
            .await
        })
    }

    /// A consumer gets the next so many messages and acknowledges those at these places among them, with receipts.
    pub fn acknowledges_some(
        self,
        subscription: &'static str,
        messages: usize,
        places: &'static [usize],
    ) -> Self {
        let told = format!("{subscription} gets {messages} and acknowledges those at {places:?}");
        self.step(told, async move |play| {
            play.session(subscription, async |consumer, told| {
                let received = receive(consumer, messages).await?;
                for place in places {
                    let one = received.get(*place).ok_or("it gets too few")?;
                    Subscribed::asked(told, &[one]);
                    consumer.acknowledge(one).await.map_err(|error| error.to_string())?;
                    Subscribed::told(told, &[one]);
                }
                Ok(())
            })
            .await
        })
    }

    /// Publishes one batch of so many messages.
    pub fn publishes_a_batch(self, messages: u64) -> Self {
        self.step(format!("a batch of {messages} is published"), async move |play| {
            play.keep_everything().await;
            let acknowledged = play.stage.publish_batch(messages).await;
            let count = acknowledged.len() as u64;
            play.acknowledged.extend(acknowledged);
            demand(count == messages, || format!("{count} were acknowledged"))
        })
    }

    /// A fresh consumer gets everything that the subscription has not acknowledged, in order, and nothing that it has.
    pub fn has_the_rest(self, subscription: &'static str) -> Self {
        self.step(format!("{subscription} has exactly the rest"), async move |play| {
            play.has_the_rest(subscription).await
        })
    }
}

async fn receive(
    consumer: &mut WorkloadConsumer,
    messages: usize,
) -> Result<Vec<Received>, String> {
    let mut received = Vec::new();
    while received.len() < messages {
        let next = consumer.receive(RECEIVE).await.map_err(|error| error.to_string())?;
        received.push(next.ok_or_else(|| format!("it gets only {}", received.len()))?);
    }
    Ok(received)
}

impl Play {
    async fn keep_everything(&mut self) {
        if !self.trims && !std::mem::replace(&mut self.is_kept, true) {
            self.stage.keep_everything().await;
        }
    }

    /// One session of a consumer; tried again until it succeeds.
    async fn session<T>(
        &mut self,
        subscription: &str,
        work: impl AsyncFn(&mut WorkloadConsumer, &Shared) -> Result<T, String>,
    ) -> Result<T, String> {
        let told = self.subscriptions.entry(subscription.to_owned()).or_default().clone();
        let until = self.stage.world.now() + PATIENCE;
        loop {
            let context = self.stage.context();
            let session = async {
                let text = |error: SessionError| error.to_string();
                let client = WorkloadClient::connect(&context).await.map_err(text)?;
                let consumer = client.consumer(TOPIC, subscription, SubscriptionType::Exclusive);
                let mut consumer = consumer.await.map_err(text)?;
                let done = work(&mut consumer, &told).await;
                consumer.close().await;
                done
            };
            match self.supervised(session).await {
                Ok(done) => return Ok(done),
                Err(why) if self.stage.world.now() > until => return Err(why),
                Err(_) => self.stage.pass(Duration::from_millis(200)).await,
            }
        }
    }

    async fn has_the_rest(&mut self, subscription: &str) -> Outcome {
        let rest = self
            .session(subscription, async |consumer, _| {
                let mut rest = Vec::new();
                loop {
                    let next = consumer.receive(SILENCE).await;
                    let Some(next) = next.map_err(|error| error.to_string())? else {
                        return Ok(rest);
                    };
                    let number = decode_body(&next.message.payload).ok_or("not one of ours")?;
                    rest.push((next.place, number));
                }
            })
            .await?;
        let told = self.subscriptions.entry(subscription.to_owned()).or_default().clone();
        let told = told.lock().unwrap();
        let is_in_order = rest.is_sorted_by(|(one, _), (two, _)| one < two);
        demand(is_in_order, || format!("out of order: {rest:?}"))?;
        let rest: BTreeSet<MessageNumber> = rest.into_iter().map(|(_, number)| number).collect();
        let again: Vec<_> = rest.intersection(&told.acknowledged).collect();
        demand(again.is_empty(), || format!("{again:?} were acknowledged and come again"))?;
        let published = self.acknowledged.iter().skip(told.before).map(|(number, _)| *number);
        let mut due = published.filter(|number| !told.asked.contains(number));
        let missing: Vec<_> = due.by_ref().filter(|number| !rest.contains(number)).collect();
        demand(missing.is_empty(), || format!("{missing:?} never came"))
    }

    /// What was acknowledged is where its receipt said, and every subscription has exactly the rest.
    pub(super) async fn judge_topic(&mut self) -> Outcome {
        for publishing in std::mem::take(&mut self.publishing) {
            let acknowledged = self.join(publishing).await?;
            self.acknowledged.extend(acknowledged);
        }
        if self.is_kept {
            let acknowledged = self.acknowledged.clone();
            self.stage.all_there(&acknowledged).await;
            let log = self.stage.read_all().await;
            let is_in_order = log.is_sorted_by(|(_, one), (_, two)| one <= two);
            demand(is_in_order, || format!("the log is out of order: {log:?}"))?;
            let numbers: BTreeSet<MessageNumber> = log.iter().map(|(number, _)| *number).collect();
            demand(numbers.len() == log.len(), || format!("something is twice in {log:?}"))?;
        }
        let subscriptions: Vec<String> = self.subscriptions.keys().cloned().collect();
        for name in subscriptions {
            let rest = self.has_the_rest(&name).await;
            rest.map_err(|why| format!("subscription {name}: {why}"))?;
        }
        Ok(())
    }
}
