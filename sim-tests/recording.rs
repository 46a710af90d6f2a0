//! Protects what a recording says of causes: a page that blames the wrong event costs more than none.

use seawall::runtime::sim::{
    Happening, Record, Recorder, Recording, RecordingLimits, World, WorldSettings,
};
use seawall::simulator::noted::Noted;
use seawall::simulator::plan::Topology;
use seawall::simulator::profile::Profile;
use seawall::simulator::trial::Trial;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// What led to a record, nearest first, itself included.
fn chain(recording: &Recording, record: Record) -> Vec<Record> {
    let cause = |record: &Record| {
        let at = recording.records.binary_search_by_key(&record.cause, |record| record.number);
        at.ok().map(|at| recording.records[at])
    };
    std::iter::successors(Some(record), cause).collect()
}

fn kinds(recording: &Recording, record: Record) -> Vec<(u8, u32)> {
    chain(recording, record).iter().map(|record| (record.kind, record.node)).collect()
}

fn of(recording: &Recording, kind: u8) -> Vec<Record> {
    recording.records.iter().filter(|record| record.kind == kind).copied().collect()
}

/// On a thread of its own, as every world.
fn record<Fut: Future<Output = ()>>(main: impl FnOnce(World) -> Fut + Send + 'static) -> Recording {
    let run = std::thread::spawn(move || {
        let recorder = Recorder::within(RecordingLimits::default());
        let settings = WorldSettings { recorder, short_io_rate: 0.0, ..WorldSettings::default() };
        let report = World::run_report(1, settings, main);
        assert!(report.output.is_some(), "{:?}", report.panics);
        report.recording
    });
    run.join().unwrap()
}

#[test]
fn an_answer_is_owed_to_its_question() {
    let recording = record(|world| async move {
        let (server, client) = (world.create_node("s", "s"), world.create_node("c", "c"));
        server.start(|runtime| async move {
            let listener = runtime.network.listen("s:1").await.unwrap();
            let mut stream = listener.accept().await.unwrap().stream;
            let mut question = [0; 1];
            while stream.read_exact(&mut question).await.is_ok() {
                // By another task, which only a channel leads to.
                let (tell, told) = tokio::sync::oneshot::channel();
                runtime.tasks.spawn("think", async move { tell.send(question) });
                stream.write_all(&told.await.unwrap()).await.unwrap();
            }
        });
        let runtime = client.runtime();
        let ask = async move {
            let mut stream = runtime.network.connect("s:1").await.unwrap();
            for question in [1, 2] {
                stream.write_all(&[question]).await.unwrap();
                stream.read_exact(&mut [0; 1]).await.unwrap();
            }
        };
        client.spawn("ask", ask).await.unwrap();
    });
    let [sends, arrives] = [Happening::Send as u8, Happening::Arrive as u8];
    let (server, client) = (1, 2);
    let last = of(&recording, arrives).into_iter().rfind(|record| record.node == client).unwrap();
    let way = kinds(&recording, last);
    let once = [(arrives, client), (sends, server), (arrives, server), (sends, client)];
    assert_eq!(way[..4], once);
    assert_eq!(way[4..8], once);
}

#[test]
fn a_start_is_owed_to_the_end_before() {
    let recording = record(|world| async move {
        let node = world.create_node("one", "one");
        node.start(|_| async {});
        node.crash();
        node.start(|_| async {});
    });
    let [first, second] = of(&recording, Happening::Start as u8)[..] else { panic!("two starts") };
    assert_eq!(first.cause, 0);
    let way = kinds(&recording, second);
    assert_eq!(way, [(Happening::Start as u8, 1), (Happening::Crash as u8, 1)]);
}

#[test]
fn a_receipt_is_owed_to_a_bookies_disk_and_to_the_message() {
    let trial = Trial { profile: Profile::Calm, ..Trial::new(1, Topology::Cluster) };
    let run = std::thread::spawn(move || {
        let recorder = Recorder::within(RecordingLimits::default());
        seawall::simulator::run_recorded(&trial, false, recorder).1.recording
    });
    let recording = run.join().unwrap();
    let is_sync_of_bookie = |record: &Record| {
        record.kind == Happening::Disk as u8
            && recording.texts[record.text as usize].starts_with("sync ")
            && recording.nodes[record.node as usize - 1].starts_with("bookie-")
    };
    // Those that the workload awaited; others it looked at when it next did something.
    let awaited: Vec<Vec<Record>> = of(&recording, Noted::Committed as u8)
        .into_iter()
        .map(|record| chain(&recording, record))
        .filter(|way| way.get(1).is_some_and(|record| record.kind == Happening::Arrive as u8))
        .collect();
    let explained = awaited.iter().filter(|way| {
        let sync = way.iter().position(is_sync_of_bookie);
        let sent = way.iter().position(|record| record.kind == Noted::Publish as u8);
        sync.is_some() && sync < sent
    });
    let explained = explained.count();
    assert!(awaited.len() > 20, "{}", awaited.len());
    assert!(explained * 10 > awaited.len() * 9, "{explained} of {}", awaited.len());
}
