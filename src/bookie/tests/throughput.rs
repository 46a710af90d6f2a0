//! How fast, on this machine: run by hand.

use super::*;
use crate::runtime::real::runtime;

struct Count(tokio::sync::Semaphore);

impl AddSink for Count {
    fn answered(&self, answer: AddAnswer) {
        answer.result.unwrap();
        self.0.add_permits(1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement, not a test"]
async fn adds_and_catch_up_reads() {
    let folder = Folder::new(&runtime()).await;
    let clock = folder.runtime.clock.clone();
    let mut config = BookieConfig::below(&folder.path);
    config.free_space_low_bytes = 0;
    let directory = Arc::new(Presences::default());
    // From a task: the future must be movable between threads.
    let (runtime, config) = (folder.runtime.clone(), config);
    let start = folder.runtime.tasks.spawn("starter", Bookie::start(runtime, config, directory));
    let bookie = start.await.unwrap().unwrap();
    let size = 1024;
    let batches: Vec<AddBatch> =
        (0..8000).map(|at| batch(1, at * 64..at * 64 + 64, size)).collect();
    let sink = Arc::new(Count(tokio::sync::Semaphore::new(64)));
    let total = batches.len() * 64;
    let begin = clock.now();
    for batch in batches {
        sink.0.acquire().await.unwrap().forget();
        bookie.add(batch, Arc::clone(&sink) as Arc<dyn AddSink>);
    }
    let _all = sink.0.acquire_many(64).await.unwrap();
    let seconds = clock.now().since(begin).as_secs_f64();
    let stats = bookie.stats();
    println!("{:.0} adds/s, {stats:?}", total as f64 / seconds);
    bookie.checkpoint().await.unwrap();
    let begin = clock.now();
    let (mut next, mut bytes) = (0, 0);
    while let Ok(entries) =
        bookie.read(ReadRequest { bytes_max: 1 << 20, ..request(1, next) }).await
    {
        next += i64::try_from(entries.len()).unwrap();
        bytes += entries.len() * size;
    }
    let seconds = clock.now().since(begin).as_secs_f64();
    println!("{:.0} MB/s read, {next} entries", bytes as f64 / seconds / 1e6);
    bookie.stop().await;
    folder.remove().await;
}
