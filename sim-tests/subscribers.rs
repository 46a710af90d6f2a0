//! Protects P6 at a subscription's door: a consumer that nobody waits for any more keeps nobody out.

use std::time::Duration;

use seawall::client::{ClientOptions, ConsumerOptions, PulsarClient, StartPosition};
use seawall::simulator::plan::Topology;

use crate::support::{TOPIC, scenario};

/// Given up after this many milliseconds at most: longer than a subscription takes to be opened.
const GIVEN_UP_AFTER_MAX: u64 = 40;
/// Within this a subscription has no consumer any more that was given up.
const PATIENCE: Duration = Duration::from_secs(2);

fn exclusive() -> ConsumerOptions {
    ConsumerOptions { start: StartPosition::Earliest, ..ConsumerOptions::default() }
}

/// Found by swarm seed 3488: workloads were stopped while one was joining an exclusive subscription, its client stayed
/// connected, and nobody could ever join again.
#[test]
fn joining_can_be_given_up_at_any_moment() {
    scenario(Topology::Cluster, |mut stage| async move {
        stage.publish(3).await;
        let context = stage.context();
        let (opened, given_up) = stage
            .client(async move {
                let options = ClientOptions::default();
                let clock = context.runtime.clock.clone();
                let connect =
                    || PulsarClient::connect(&context.runtime, &context.broker, options.clone());
                let (stays, other) = (connect().await.unwrap(), connect().await.unwrap());
                let (mut opened, mut given_up) = (0, 0);
                for moment in (0..=GIVEN_UP_AFTER_MAX).map(Duration::from_millis) {
                    let joining = stays.consumer(TOPIC, "s", exclusive());
                    match clock.timeout(moment, joining).await {
                        Ok(consumer) => {
                            opened += 1;
                            consumer.unwrap().close().await;
                        }
                        Err(_) => given_up += 1,
                    }
                    let until = clock.now() + PATIENCE;
                    loop {
                        match other.consumer(TOPIC, "s", exclusive()).await {
                            Ok(consumer) => break consumer.close().await,
                            Err(error) => assert!(
                                clock.now() < until,
                                "given up after {moment:?}, and nobody can join: {error}"
                            ),
                        }
                        clock.sleep(Duration::from_millis(20)).await;
                    }
                }
                (opened, given_up)
            })
            .await;
        assert!(opened > 0 && given_up > 0, "{opened} times opened, {given_up} times given up");
    });
}
