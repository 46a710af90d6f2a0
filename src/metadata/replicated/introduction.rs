//! Who a member is beyond its id. An id stands for promises on a disk: votes, and entries said to be durable. A
//! node that comes back under the id with an empty disk would break them, and its own files cannot tell.
//!
//! So each folder gets a random number, its *incarnation*, when it is begun, and before it takes part for the
//! first time the member greets a majority of the others, who write the number down before they answer. A
//! member they know under another number must not take part: any two majorities of the others share one.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use prost::Message as _;
use tokio::sync::Mutex;
use tonic::Code;

use super::ReplicatedConfig;
use crate::metadata::MetadataStartError;
use crate::metadata::consensus::MemberId;
use crate::metadata::durable::LogRecovery;
use crate::rpc::generated::consensus as wire;
use crate::rpc::generated::consensus::consensus_client::ConsensusClient;
use crate::rpc::{Channel, MESSAGE_BYTES_MAX};
use crate::runtime::{Disk, Runtime};
use crate::{mutant, reached};

const FILE_NAME: &str = "identity";
/// Members remembered, for ever; more are not greeted back.
const KNOWN_MAX: usize = 4096;
/// One greeting ends after this.
const GREETING_LIMIT: Duration = Duration::from_secs(1);
/// Between two rounds of greetings.
const PAUSE: Duration = Duration::from_millis(200);

/// A member's identity, and those of the members that greeted it.
#[derive(Clone)]
pub(super) struct Introduction(Arc<Inner>);

struct Inner {
    disk: Disk,
    path: PathBuf,
    /// Held while the file is replaced.
    identity: Mutex<Identity>,
}

#[derive(Clone, Debug, Default)]
struct Identity {
    incarnation: u64,
    introduced: bool,
    known: BTreeMap<MemberId, u64>,
}

impl Identity {
    fn from_bytes(bytes: Bytes) -> Result<Self, String> {
        let file = wire::IdentityFile::decode(bytes).map_err(|error| error.to_string())?;
        if file.incarnation == 0 {
            return Err("it names no incarnation".to_owned());
        }
        let known = file.known.into_iter();
        Ok(Self {
            incarnation: file.incarnation,
            introduced: file.introduced,
            known: known.map(|known| (MemberId(known.member), known.incarnation)).collect(),
        })
    }

    fn to_bytes(&self) -> Bytes {
        let known = self.known.iter();
        let file = wire::IdentityFile {
            incarnation: self.incarnation,
            introduced: self.introduced,
            known: known
                .map(|(member, incarnation)| wire::identity_file::Known {
                    member: member.0,
                    incarnation: *incarnation,
                })
                .collect(),
        };
        Bytes::from(file.encode_to_vec())
    }
}

/// One of the others, until it was greeted.
struct Other {
    id: u64,
    channel: Channel,
}

impl Introduction {
    /// Reads the identity of a folder, or gives it one.
    pub(super) async fn open(
        runtime: &Runtime,
        config: &ReplicatedConfig,
    ) -> Result<Self, MetadataStartError> {
        let disk = runtime.disk.clone();
        LogRecovery::prepare(&disk, &config.directory).await?;
        let path = config.directory.join(FILE_NAME);
        let identity = match disk.read_file(&path).await? {
            Some(bytes) => Identity::from_bytes(bytes)
                .map_err(|detail| MetadataStartError::corrupt(FILE_NAME, detail))?,
            None if !LogRecovery::firsts(&disk, &config.directory).await?.is_empty() => {
                return Err(MetadataStartError::corrupt(FILE_NAME, "it is missing"));
            }
            None => {
                let draws = runtime.random.fork_numbered("metadata incarnation", config.id.0);
                let identity = Identity { incarnation: draws.next().max(1), ..Default::default() };
                disk.replace_file(&path, identity.to_bytes()).await?;
                identity
            }
        };
        Ok(Self(Arc::new(Inner { disk, path, identity: Mutex::new(identity) })))
    }

    /// Remembers a greeter durably. Answers the incarnation it was known by if that is another one, else 0.
    pub(super) async fn get_to_know(
        &self,
        member: MemberId,
        incarnation: u64,
    ) -> Result<u64, String> {
        let mut identity = self.0.identity.lock().await;
        match identity.known.get(&member) {
            Some(known) if *known == incarnation => return Ok(0),
            Some(known) => {
                reached!("metadata: a member came back with another disk");
                return Ok(*known);
            }
            None if identity.known.len() >= KNOWN_MAX => {
                return Err(format!("{KNOWN_MAX} members are remembered already"));
            }
            None => {}
        }
        let mut next = identity.clone();
        next.known.insert(member, incarnation);
        let written = self.0.disk.replace_file(&self.0.path, next.to_bytes()).await;
        written.map_err(|error| error.to_string())?;
        *identity = next;
        Ok(0)
    }

    /// Greets a majority of the others, however long that takes, unless it was done in an earlier life.
    pub(super) async fn introduce(
        &self,
        runtime: Runtime,
        config: ReplicatedConfig,
    ) -> Result<(), String> {
        let incarnation = {
            let identity = self.0.identity.lock().await;
            if identity.introduced || mutant!("M-wiped") {
                return Ok(());
            }
            identity.incarnation
        };
        let mut others = others(&runtime, &config);
        let (mut all, mut greeted) = (others.len(), 0);
        while all > 0 && greeted < all / 2 + 1 {
            let mut left = Vec::new();
            for other in others {
                let greeting = wire::Greeting { from: config.id.0, to: other.id, incarnation };
                match greet(&other, greeting).await {
                    Ok(0) => greeted += 1,
                    Ok(_) => return Err(another_disk(config.id, other.channel.address())),
                    Err(Code::AlreadyExists) => all -= 1,
                    Err(_) => left.push(other),
                }
            }
            others = left;
            if !others.is_empty() {
                runtime.clock.sleep(PAUSE).await;
            }
        }
        let mut identity = self.0.identity.lock().await;
        let next = Identity { introduced: true, ..identity.clone() };
        let written = self.0.disk.replace_file(&self.0.path, next.to_bytes()).await;
        written.map_err(|error| error.to_string())?;
        *identity = next;
        Ok(())
    }
}

fn others(runtime: &Runtime, config: &ReplicatedConfig) -> Vec<Other> {
    let founders = config.founders.addresses.iter();
    let mut others: Vec<(u64, &String)> = founders
        .filter(|(member, _)| **member != config.id)
        .map(|(member, address)| (member.0, address))
        .collect();
    if config.founders.addresses.is_empty() {
        others.extend(config.contacts.iter().map(|address| (0, address)));
    }
    let channel = |address: &str| Channel::new(runtime.clone(), address, config.channel.clone());
    others.into_iter().map(|(id, address)| Other { id, channel: channel(address) }).collect()
}

async fn greet(other: &Other, greeting: wire::Greeting) -> Result<u64, Code> {
    let channel = &other.channel;
    channel.ready().await.map_err(|_| Code::Unavailable)?;
    let mut client =
        ConsensusClient::new(channel.clone()).max_decoding_message_size(MESSAGE_BYTES_MAX);
    let answer = channel
        .bounded(GREETING_LIMIT, async move { Ok(client.greet(greeting).await?.into_inner()) });
    answer.await.map(|greeted| greeted.other).map_err(|status| status.code())
}

fn another_disk(id: MemberId, address: &str) -> String {
    format!(
        "the node at {address} knows member {id} with another disk: what this member promised is lost with \
         it. Remove member {id} from the group and add this node under an id that was never used"
    )
}
