//! What a client leaves behind at a broker that is only a script: nothing.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::scripted_broker::{self, BROKER};
use super::{
    ClientError, ClientOptions, ConsumerOptions, OutgoingMessage, ProducerOptions, PulsarClient,
};
use crate::frontend::pulsar::codec::Command;
use crate::runtime::Runtime;
use crate::runtime::sim::{World, WorldSettings};

/// The names of the commands that came, one after the other.
type Heard = Arc<Mutex<Vec<&'static str>>>;

/// A client does `work` at a broker that leaves these commands unanswered; the commands that came, and how many
/// connections are open some seconds later.
fn heard<F, Fut>(unanswered: &'static [&'static str], work: F) -> (Vec<&'static str>, usize)
where
    F: FnOnce(Runtime, PulsarClient) -> Fut + Send + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    World::run(1, WorldSettings::default(), move |world| async move {
        let node = world.create_node("broker", "broker");
        let heard = Heard::default();
        let (ears, open) = (Arc::clone(&heard), scripted_broker::Open::default());
        let script = move |command: &Command| {
            ears.lock().unwrap().push(command.name());
            (unanswered.contains(&command.name())).then(Vec::new)
        };
        let counted = open.clone();
        node.start(move |runtime| scripted_broker::serve(runtime, script, counted));
        let client_node = world.create_node("client", "client");
        let runtime = client_node.runtime();
        let working = async move {
            // Without PINGs in between.
            let keep_alive = Duration::from_secs(3600);
            let options = ClientOptions { keep_alive, ..ClientOptions::default() };
            let client = PulsarClient::connect(&runtime, BROKER, options).await.unwrap();
            work(runtime, client).await;
        };
        client_node.spawn("client", working).await.unwrap();
        world.sleep(Duration::from_secs(5)).await;
        let heard = std::mem::take(&mut *heard.lock().unwrap());
        (heard, open.count())
    })
}

#[test]
fn a_consumer_nobody_waits_for_is_closed() {
    let (heard, open) = heard(&["Subscribe"], |runtime, client| async move {
        let opening = client.consumer("topic", "s", ConsumerOptions::default());
        let soon = Duration::from_millis(100);
        assert!(runtime.clock.timeout(soon, opening).await.is_err());
        // The connection goes on.
        runtime.clock.sleep(soon).await;
        client.lookup("topic").await.unwrap();
    });
    assert_eq!(heard[2..], ["Subscribe", "CloseConsumer", "Lookup"]);
    assert_eq!(open, 0);
}

#[test]
fn a_producer_nobody_waits_for_is_closed() {
    let (heard, _) = heard(&["Producer"], |runtime, client| async move {
        let opening = client.producer("topic", ProducerOptions::default());
        let soon = Duration::from_millis(100);
        assert!(runtime.clock.timeout(soon, opening).await.is_err());
        runtime.clock.sleep(soon).await;
        client.lookup("topic").await.unwrap();
    });
    assert_eq!(heard[2..], ["Producer", "CloseProducer", "Lookup"]);
}

#[test]
fn a_consumer_the_broker_does_not_answer_for_is_closed() {
    let (heard, _) = heard(&["Subscribe"], |runtime, client| async move {
        let opened = client.consumer("topic", "s", ConsumerOptions::default()).await;
        assert!(matches!(opened, Err(ClientError::Elapsed { .. })), "{:?}", opened.err());
        runtime.clock.sleep(Duration::from_millis(100)).await;
        client.lookup("topic").await.unwrap();
    });
    assert_eq!(heard[2..], ["Subscribe", "CloseConsumer", "Lookup"]);
}

/// What it has to tell the broker is still written.
#[test]
fn a_client_that_is_gone_has_closed_its_consumer() {
    let (heard, open) = heard(&["Subscribe"], |runtime, client| async move {
        let opening = client.consumer("topic", "s", ConsumerOptions::default());
        assert!(runtime.clock.timeout(Duration::from_millis(100), opening).await.is_err());
    });
    assert_eq!(heard[2..], ["Subscribe", "CloseConsumer"]);
    assert_eq!(open, 0);
}

#[test]
fn the_connections_of_a_client_that_is_gone_are_closed() {
    let (heard, open) = heard(&[], |_, client| async move {
        let send_limit = Duration::from_secs(1);
        let options = ProducerOptions { send_limit, ..ProducerOptions::default() };
        let producer = client.producer("topic", options).await.unwrap();
        drop(client);
        // Nobody waits for its outcome, which does not come.
        drop(producer.send(OutgoingMessage::new(vec![1])).await.unwrap());
        drop(producer);
    });
    assert_eq!(heard[2..], ["Producer", "Send", "CloseProducer"]);
    assert_eq!(open, 0);
}
