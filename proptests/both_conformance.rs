//! Runs one property on the production runtime and on the simulated one.

use std::future::Future;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use seawall::runtime::sim::{World, WorldSettings};
use seawall::runtime::{Runtime, real};

/// What a property is given: a runtime, a folder of its own and a host to listen on.
pub struct Place {
    pub runtime: Runtime,
    pub folder: PathBuf,
    pub host: String,
}

/// Performs `property` on real files, sockets and time.
pub fn on_real<F: Future<Output = ()>>(property: impl FnOnce(Place) -> F) {
    static USED: AtomicU64 = AtomicU64::new(0);
    let number = USED.fetch_add(1, Ordering::Relaxed);
    let name = format!("seawall-conformance-{}-{number}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    let executor =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    executor.block_on(async {
        let runtime = real::runtime();
        runtime.disk.create_directory(&folder).await.unwrap();
        let host = "127.0.0.1".to_owned();
        let place = Place { runtime: runtime.clone(), folder: folder.clone(), host };
        let outcome = runtime.clock.timeout(Duration::from_secs(30), property(place)).await;
        runtime.disk.remove_directory(&folder).await.unwrap();
        outcome.expect("the property ends");
    });
}

/// Performs `property` inside a simulated node, with several seeds.
pub fn on_sim<F: Future<Output = ()> + Send + 'static>(property: impl Fn(Place) -> F) {
    for seed in 0..20 {
        World::run(seed, quick(), |world| {
            let node = world.create_node("subject", "subject");
            let runtime = node.runtime();
            let place = Place {
                runtime: runtime.clone(),
                folder: PathBuf::from("/data"),
                host: "subject".to_owned(),
            };
            let property = property(place);
            async move {
                let disk = runtime.disk.clone();
                disk.create_directory("/data".as_ref()).await.unwrap();
                disk.sync_directory("/".as_ref()).await.unwrap();
                node.spawn("property", property).await.unwrap();
            }
        });
    }
}

/// Settings for short runs with much cut short.
pub fn quick() -> WorldSettings {
    WorldSettings {
        time_limit: Duration::from_secs(600),
        short_io_rate: 0.2,
        ..WorldSettings::default()
    }
}
