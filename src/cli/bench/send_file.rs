//! The limit of a catch-up read: the operating system sends a cached file to a loopback socket by itself.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

use super::BenchError;

/// Bytes a call.
const STEP: usize = 1024 * 1024;

/// Sends a file of this many bytes, written just before so that it is cached; the time it took.
pub(super) fn send_file(folder: &Path, bytes: u64) -> Result<Duration, BenchError> {
    std::fs::create_dir_all(folder).map_err(BenchError::io("create the data folder"))?;
    let path = folder.join("sendfile.data");
    let step = vec![0x5a_u8; STEP];
    let mut file = std::fs::File::create(&path).map_err(BenchError::io("create a file"))?;
    let mut written = 0;
    while written < bytes {
        file.write_all(&step).map_err(BenchError::io("write a file"))?;
        written += STEP as u64;
    }
    drop(file);
    let file = std::fs::File::open(&path).map_err(BenchError::io("open a file"))?;
    let listener = TcpListener::bind("127.0.0.1:0").map_err(BenchError::io("listen"))?;
    let address = listener.local_addr().map_err(BenchError::io("listen"))?;
    let receiving = std::thread::spawn(move || receive(&listener));
    let stream = TcpStream::connect(address).map_err(BenchError::io("connect"))?;
    let began = Instant::now();
    let mut sent = 0_u64;
    while sent < written {
        let step = rustix::fs::sendfile(&stream, &file, None, STEP)
            .map_err(|error| BenchError::io("sendfile")(error.into()))?;
        if step == 0 {
            break;
        }
        sent += step as u64;
    }
    drop(stream);
    let received = match receiving.join() {
        Ok(received) => received.map_err(BenchError::io("receive"))?,
        Err(_) => 0,
    };
    let time = began.elapsed();
    if received != written {
        return Err(BenchError::Server(format!("sendfile moved {received} of {written} bytes")));
    }
    // Scaled to exactly what was asked for.
    Ok(time.mul_f64(bytes as f64 / written as f64))
}

fn receive(listener: &TcpListener) -> std::io::Result<u64> {
    let (mut stream, _) = listener.accept()?;
    let mut buffer = vec![0; STEP];
    let mut received = 0;
    loop {
        match stream.read(&mut buffer)? {
            0 => return Ok(received),
            read => received += read as u64,
        }
    }
}
