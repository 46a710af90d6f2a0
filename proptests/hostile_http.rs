//! Hostile peers of a whole node's HTTP port: whatever they send, others are served, memory stays where it
//! was, and whoever is refused is told why.
#![allow(clippy::unwrap_used, reason = "helpers of tests, where a failure is a failed test")]

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::node_place::{Place, on_node};

const LIMIT: Duration = Duration::from_secs(10);
const TOPICS: &str = "/admin/v2/persistent/public/default";

/// Sends bytes, then reads until the node closes the connection.
async fn exchange(place: &Place, sent: &[u8]) -> Vec<u8> {
    let address = place.node.http_address();
    let talking = async {
        let mut stream = place.runtime.network.connect(address).await.unwrap();
        let mut received = Vec::new();
        // The node may answer and close before it has read everything: both errors are ends.
        let _ = stream.write_all(sent).await;
        let _ = stream.read_to_end(&mut received).await;
        received
    };
    place.runtime.clock.timeout(LIMIT, talking).await.expect("answered or closed in time")
}

fn request(method: &str, path: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

/// Status and body of an answer.
fn parsed(answer: &[u8]) -> (u16, String) {
    let text = String::from_utf8_lossy(answer);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text}"));
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

async fn ask(place: &Place, method: &str, path: &str, body: &[u8]) -> (u16, String) {
    parsed(&exchange(place, &request(method, path, body)).await)
}

/// A refusal says why.
fn check_reason(status: u16, body: &str, asked: &str) {
    assert!((400..500).contains(&status), "{asked}: {status} {body}");
    let json: serde_json::Value =
        serde_json::from_str(body).unwrap_or_else(|error| panic!("{asked}: {error}: {body:?}"));
    let reason = json["reason"].as_str().unwrap_or_default();
    assert!(reason.len() > 3, "{asked}: {body}");
}

async fn is_served(place: &Place) {
    assert_eq!(ask(place, "GET", "/health/ready", b"").await.0, 200);
    let (status, body) = ask(place, "GET", "/metrics", b"").await;
    assert!(status == 200 && body.contains("# TYPE"), "{status} {body}");
}

#[test]
fn every_refusal_says_why() {
    on_node(async |place| {
        let deep = [vec![b'['; 100_000], vec![b']'; 100_000]].concat();
        let (bodies, partitions): ([&[u8]; 18], _) = (
            [
                b"",
                b"{",
                b"nul",
                b"0",
                b"-1",
                b"1.5",
                b"1e400",
                b"10001",
                b"99999999999999999999",
                b"\"\"",
                b"\"x\"",
                b"[]",
                b"{}",
                b"{\"partitions\":{}}",
                b"{\"partitions\":-2}",
                b"\xff\xfe\x00",
                b"2 2",
                &deep,
            ],
            format!("{TOPICS}/t/partitions"),
        );
        for body in bodies {
            let (status, answer) = ask(place, "PUT", &partitions, body).await;
            let asked = String::from_utf8_lossy(&body[..body.len().min(30)]).into_owned();
            check_reason(status, &answer, &asked);
        }
        let (status, answer) = ask(place, "PUT", &partitions, &vec![b'2'; 3 << 20]).await;
        assert_eq!(status, 413);
        check_reason(status, &answer, "a body of 3 MiB");
        for (method, path) in [
            ("POST", "/metrics"),
            ("DELETE", "/health/live"),
            ("BREW", "/metrics"),
            ("PATCH", &partitions),
            ("GET", "/"),
            ("GET", "/admin"),
            ("GET", "/admin/v2/persistent/public/default/%FF/stats"),
            ("GET", "/admin/v2/persistent/public/default/%00/stats"),
            ("GET", "/admin/v2/persistent/public/default/%2F%2E%2E/stats"),
            ("GET", "/admin/v2/persistent/public/default/%zz/stats"),
            ("GET", "/admin/v2/persistent/public/default/%/stats"),
            ("GET", "/admin/v2/persistent/%C0%AE/default/t/stats"),
            ("GET", "/admin/v2/persistent/public/default/../../../stats"),
            ("GET", "/admin/v2/persistent/public/default//stats"),
            ("GET", "/admin/v2/persistent/public/default/missing/stats"),
            ("DELETE", "/admin/v2/persistent/public/default/missing"),
            ("DELETE", "/admin/v2/persistent/public/default/missing/subscription/s"),
            ("DELETE", "/admin/v2/persistent/public/default/missing/subscription/%FF"),
            ("GET", "/admin/v2/namespaces/%FF"),
            ("GET", "/admin/v2/namespaces/a/%20b/topics"),
            ("GET", "/lookup/v2/topic/none/public/default/t"),
            ("GET", "/lookup/v2/topic/persistent/public/default/%FF"),
        ] {
            let (status, answer) = ask(place, method, path, b"").await;
            check_reason(status, &answer, &format!("{method} {path}"));
        }
        let long = format!("{TOPICS}/{}/stats", "x".repeat(20_000));
        let (status, answer) = ask(place, "GET", &long, b"").await;
        check_reason(status, &answer, "a name of 20,000 letters");
        let long = format!("{TOPICS}/{}", "x".repeat(5_000));
        let (status, answer) = ask(place, "PUT", &long, b"").await;
        check_reason(status, &answer, "a new name of 5,000 letters");
        is_served(place).await;
        assert_eq!(ask(place, "PUT", &partitions, b"3").await.0, 204);
        assert_eq!(
            ask(place, "GET", &partitions, b"").await,
            (200, "{\"partitions\":3}".to_owned())
        );
    });
}

/// KiB of memory this process has.
#[allow(clippy::disallowed_methods, reason = "a fact of this process, not of a node")]
fn resident_kib() -> usize {
    let facts = std::fs::read_to_string("/proc/self/statm").unwrap();
    facts.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4
}

#[test]
fn thousands_of_hostile_connections_leave_nothing_behind() {
    on_node(async |place| {
        let random = place.runtime.random.fork("hostile http");
        let good = request("PUT", &format!("{TOPICS}/t/partitions"), b"{\"partitions\": \"x\"}");
        let mut before = 0;
        for round in 0..3_000_u64 {
            let noise =
                |length: u64| -> Vec<u8> { (0..length).map(|_| random.next() as u8).collect() };
            let bytes = match round % 6 {
                0 => noise(random.below(2_000)),
                1 => good[..random.below(good.len() as u64) as usize].to_vec(),
                2 => {
                    let mut damaged = good.clone();
                    for _ in 0..5 {
                        let at = random.below(damaged.len() as u64) as usize;
                        damaged[at] = random.next() as u8;
                    }
                    damaged
                }
                // Headers beyond the limit in bytes, then in number.
                3 => [b"GET / HTTP/1.1\r\nx: ".as_slice(), &vec![b'y'; 100 * 1024]].concat(),
                4 => [b"GET / HTTP/1.1\r\n".to_vec(), b"a: b\r\n".repeat(5_000)].concat(),
                // A body that is promised, begun and never finished.
                _ => {
                    let mut begun = request("PUT", &format!("{TOPICS}/t"), &vec![b' '; 900 * 1024]);
                    begun.truncate(64 * 1024);
                    begun
                }
            };
            let address = place.node.http_address();
            let mut stream = place.runtime.network.connect(address).await.unwrap();
            let _ = stream.write_all(&bytes).await;
            if round % 4 == 0 {
                // Some wait for what comes, most just go.
                let mut answer = [0_u8; 512];
                let waiting = stream.read(&mut answer);
                let _ = place.runtime.clock.timeout(Duration::from_millis(20), waiting).await;
            }
            drop(stream);
            if round == 500 {
                before = resident_kib();
            }
            if round % 500 == 0 {
                is_served(place).await;
            }
        }
        is_served(place).await;
        let after = resident_kib();
        // What was sent in the meantime is about 100 MiB; other tests run in this process too.
        assert!(after < before + 64 * 1024, "{before} KiB before, {after} KiB after");
    });
}
