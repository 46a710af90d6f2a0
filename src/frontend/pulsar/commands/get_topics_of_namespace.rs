//! GET_TOPICS_OF_NAMESPACE: names of topics, partitions included, system topics left out. Patterns are
//! left to the client (`filtered` is false), which all clients can do.

use std::fmt::Write;
use std::sync::Arc;

use crate::domain::{Domain, NamespaceName, TopicName};
use crate::frontend::pulsar::codec::{Command, proto};
use crate::frontend::pulsar::connection::{Connection, ConnectionEnd};

use proto::command_get_topics_of_namespace::Mode;

pub(super) async fn handle(
    connection: &Arc<Connection>,
    command: proto::CommandGetTopicsOfNamespace,
) -> Result<(), ConnectionEnd> {
    let request_id = command.request_id;
    let namespace = match NamespaceName::parse(&command.namespace) {
        Ok(namespace) => namespace,
        Err(error) => {
            connection.refuse_name(request_id, &error);
            return Ok(());
        }
    };
    let asking = Arc::clone(connection);
    connection
        .spawn_request("pulsar-topics", async move {
            match asking.broker.topics(&namespace).await {
                Ok(topics) => asking.answer(&listing(&command, &topics)),
                Err(error) => asking.refuse(request_id, &error),
            }
        })
        .await
}

fn is_wanted(topic: &TopicName, mode: Mode) -> bool {
    let kind = match mode {
        Mode::Persistent => topic.domain() == Domain::Persistent,
        Mode::NonPersistent => topic.domain() == Domain::NonPersistent,
        Mode::All => true,
    };
    kind && !topic.local().starts_with("__")
}

fn listing(command: &proto::CommandGetTopicsOfNamespace, topics: &[TopicName]) -> Command {
    let mode = command.mode();
    let mut names: Vec<String> =
        topics.iter().filter(|topic| is_wanted(topic, mode)).map(ToString::to_string).collect();
    names.sort();
    let hash = topics_hash(&names);
    let changed = command.topics_hash.as_ref() != Some(&hash);
    if !changed {
        names.clear();
    }
    Command::GetTopicsOfNamespaceResponse(proto::CommandGetTopicsOfNamespaceResponse {
        request_id: command.request_id,
        topics: names,
        filtered: Some(false),
        topics_hash: Some(hash),
        changed: Some(changed),
    })
}

/// CRC-32C of the names joined by commas, its bytes in little-endian order, in hex.
fn topics_hash(sorted: &[String]) -> String {
    let checksum = crc32c::crc32c(sorted.join(",").as_bytes());
    checksum.to_le_bytes().iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_agrees_with_captured_values() {
        let names =
            ["persistent://public/default/a", "persistent://public/default/b"].map(str::to_owned);
        assert_eq!(topics_hash(&names), "c7559e98");
        assert_eq!(topics_hash(&[]), "00000000");
    }
}
