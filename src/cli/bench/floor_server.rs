//! The floor: what every durable log server must do and nothing else. One network thread frames and checks,
//! one commit thread appends whatever has gathered to a growing file, syncs, and only then acknowledges.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use clap::Args;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::OwnedWriteHalf;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

use super::{BenchError, floor_wire};
use crate::cli::output::{complain, say};
use crate::cli::{FAILED, GOOD};

/// The floor server, started by `seawall bench`.
#[derive(Debug, Args)]
pub(in crate::cli) struct FloorServerCommand {
    /// Folder of its one file.
    #[arg(long)]
    data: PathBuf,
}

/// What waits for the commit thread.
#[derive(Default)]
struct Gathered {
    records: Vec<u8>,
    answers: Vec<(Arc<Outbox>, u64, u64)>,
}

/// What waits to be written to one connection.
#[derive(Default)]
struct Outbox {
    pending: Mutex<Pending>,
    filled: Notify,
}

#[derive(Default)]
struct Pending {
    acknowledgements: BytesMut,
    records: Vec<Bytes>,
}

#[derive(Default)]
struct Shared {
    gathered: Mutex<Gathered>,
    arrived: Condvar,
    subscribers: Mutex<Vec<Arc<Outbox>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Serves until killed.
pub(in crate::cli) fn serve(command: &FloorServerCommand) -> u8 {
    match serve_in(&command.data) {
        Ok(()) => GOOD,
        Err(error) => {
            complain(&error);
            FAILED
        }
    }
}

fn serve_in(data: &Path) -> Result<(), BenchError> {
    std::fs::create_dir_all(data).map_err(BenchError::io("create the data folder"))?;
    let file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(data.join("floor.log"))
        .map_err(BenchError::io("open the log"))?;
    let shared = Arc::new(Shared::default());
    let committing = Arc::clone(&shared);
    std::thread::spawn(move || {
        if let Err(error) = commit(&committing, file) {
            // Nothing more will be acknowledged; the generator reports that it is stuck.
            complain(&format!("the floor's file: {error}"));
        }
    });
    let executor = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(BenchError::io("start the executor"))?;
    executor.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(BenchError::io("listen"))?;
        let address = listener.local_addr().map_err(BenchError::io("listen"))?;
        say(&format!("floor    {address}"));
        say(&"ready");
        loop {
            let (stream, _) = listener.accept().await.map_err(BenchError::io("accept"))?;
            stream.set_nodelay(true).map_err(BenchError::io("set TCP_NODELAY"))?;
            drop(tokio::spawn(connection(Arc::clone(&shared), stream)));
        }
    })
}

/// Appends, syncs, acknowledges, for ever: a group is whatever came during the sync before.
fn commit(shared: &Shared, mut file: File) -> std::io::Result<()> {
    // Two buffers change places, so that none is allocated while serving.
    let mut group = Gathered::default();
    loop {
        group.records.clear();
        {
            let mut gathered = lock(&shared.gathered);
            while gathered.records.is_empty() {
                gathered =
                    shared.arrived.wait(gathered).unwrap_or_else(|poisoned| poisoned.into_inner());
            }
            std::mem::swap(&mut *gathered, &mut group);
        }
        file.write_all(&group.records)?;
        file.sync_data()?;
        for (outbox, first, count) in group.answers.drain(..) {
            let mut pending = lock(&outbox.pending);
            for number in first..first + count {
                pending.acknowledgements.put_u64(number);
            }
            drop(pending);
            outbox.filled.notify_one();
        }
        let subscribers = lock(&shared.subscribers);
        if !subscribers.is_empty() {
            let records = Bytes::copy_from_slice(&group.records);
            for outbox in subscribers.iter() {
                lock(&outbox.pending).records.push(records.clone());
                outbox.filled.notify_one();
            }
        }
    }
}

async fn connection(shared: Arc<Shared>, mut stream: TcpStream) {
    let Ok(kind) = stream.read_u8().await else { return };
    let outbox = Arc::new(Outbox::default());
    let (mut reader, mut writer) = stream.into_split();
    if kind == floor_wire::SUBSCRIBER {
        lock(&shared.subscribers).push(Arc::clone(&outbox));
        if writer.write_all(&[floor_wire::SUBSCRIBER]).await.is_ok() {
            write_outbox(&outbox, writer).await;
        }
        lock(&shared.subscribers).retain(|other| !Arc::ptr_eq(other, &outbox));
        return;
    }
    drop(tokio::spawn({
        let outbox = Arc::clone(&outbox);
        async move { write_outbox(&outbox, writer).await }
    }));
    let mut input = BytesMut::with_capacity(256 * 1024);
    loop {
        input.reserve(128 * 1024);
        match reader.read_buf(&mut input).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let Some(received) = floor_wire::receive(&input) else { return };
        if received.numbers.is_empty() {
            continue;
        }
        let mut gathered = lock(&shared.gathered);
        gathered.records.extend_from_slice(input.get(..received.length).unwrap_or_default());
        for (first, count) in received.numbers {
            gathered.answers.push((Arc::clone(&outbox), first, count));
        }
        drop(gathered);
        input.advance(received.length);
        shared.arrived.notify_one();
    }
}

async fn write_outbox(outbox: &Outbox, mut writer: OwnedWriteHalf) {
    loop {
        outbox.filled.notified().await;
        let pending = std::mem::take(&mut *lock(&outbox.pending));
        let mut buffer = pending.acknowledgements;
        for records in pending.records {
            buffer.extend_from_slice(&records);
        }
        if writer.write_all(&buffer).await.is_err() {
            return;
        }
    }
}
