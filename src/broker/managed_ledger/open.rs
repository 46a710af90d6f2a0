//! Takeover: read the record, fix the end of the last ledger (which fences any writer still alive), and
//! claim the record at the version read. Whoever loses the claim starts over.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;

use super::chain::{Chain, ChainLedger};
use super::claim::TopicClaim;
use super::compare_and_set::{CasError, compare_and_set};
use super::contract::{ManagedLedgerError, ManagedLedgerEvents};
use super::driver::Driver;
use super::handle::{HeldRecord, ManagedLedger, Shared};
use super::machine::{Machine, MachineLimits};
use super::record::TopicRecord;
use super::{ManagedLedgerEnvironment, roll};
use crate::broker::EntryHeader;
use crate::broker::cursor::recover_cursors;
use crate::domain::EntryId;
use crate::ledger::{ClosedLedger, LedgerReadError};
use crate::metadata::Expect;
use crate::runtime::mailbox;
use crate::{mutant, reached};

/// Claims lost in a row before opening fails.
const CLAIMS_MAX: u32 = 5;
/// Nominal size of the inbox: appends are bounded by the machine, news by the writer's window.
const INBOX: usize = 1024;

pub(super) async fn open(
    environment: ManagedLedgerEnvironment,
    name: &str,
    create: bool,
    events: Arc<dyn ManagedLedgerEvents>,
) -> Result<ManagedLedger, ManagedLedgerError> {
    for _ in 0..CLAIMS_MAX {
        let Some((chain, next_index, claim, held)) = claim(&environment, name, create).await?
        else {
            reached!("managed ledger: lost a claim");
            continue;
        };
        let limits = MachineLimits {
            pending_max: environment.config.topic_pending_max,
            entries_max: environment.config.ledger_entries_max.max(1),
            bytes_max: environment.config.ledger_bytes_max.max(1),
            age_max: environment.config.ledger_age_max,
        };
        let next_number = chain.next_number();
        let token = chain.stream.map_or(0, |stream| stream.token);
        let (inputs, receiver) = mailbox(INBOX);
        let shared = Arc::new(Shared {
            environment,
            name: name.to_owned(),
            claim,
            chain: Arc::new(Mutex::new(chain)),
            grown: Notify::new(),
            cursors: Mutex::new(BTreeMap::new()),
            record: tokio::sync::Mutex::new(held),
            next_index: AtomicU64::new(next_index),
            pending: AtomicU64::new(0),
            closed: AtomicBool::new(false),
            readers: Mutex::new(VecDeque::new()),
            read_ahead: Mutex::new(VecDeque::new()),
            inputs,
        });
        let cursors = recover_cursors(&shared.cursor_place()).await?;
        *super::handle::lock(&shared.cursors) = cursors;
        let machine = Machine::new(limits, next_index)
            .numbered(next_number, token)
            .writing(shared.environment.config.formats.writes);
        let driver = Driver::new(Arc::clone(&shared), machine, events);
        shared.environment.runtime.tasks.spawn("managed-ledger", driver.run(receiver));
        return Ok(ManagedLedger::new(shared));
    }
    Err(ManagedLedgerError::Fenced)
}

type Claim = (Chain, u64, TopicClaim, HeldRecord);

/// One try; `None` if another owner was faster.
async fn claim(
    environment: &ManagedLedgerEnvironment,
    name: &str,
    create: bool,
) -> Result<Option<Claim>, ManagedLedgerError> {
    let metadata_failed = |error: String| ManagedLedgerError::Metadata(error);
    let key = Shared::key(name);
    let found =
        environment.metadata.get(&key).await.map_err(|error| metadata_failed(error.to_string()))?;
    let mut stream = None;
    let (ledgers, next_index, epoch, properties, expect) = match found {
        None if !create => return Err(ManagedLedgerError::NotFound),
        None => (Vec::new(), 0, 0, Vec::new(), Expect::Absent),
        Some(found) => {
            let record = TopicRecord::decode(&found.value).map_err(metadata_failed)?;
            stream = record.stream;
            let mut ledgers = record.chain();
            let mut next_index = record.next_index;
            if let Some(last) = ledgers.last_mut()
                && !last.closed
            {
                next_index = find_end(environment, last).await?;
            }
            (ledgers, next_index, record.epoch, record.properties, Expect::Version(found.version))
        }
    };
    let mut chain = Chain::new(ledgers);
    chain.stream = stream;
    let epoch = if mutant!("B-epoch") { epoch.max(1) } else { epoch + 1 };
    let expect = if mutant!("B-claim") { Expect::Any } else { expect };
    let owner = environment.runtime.random.next();
    let record = TopicRecord::new((epoch, owner), &chain, next_index, properties.clone());
    let clock = &environment.runtime.clock;
    match compare_and_set(&environment.metadata, clock, &key, record.encode(), expect).await {
        Ok(version) => {
            let (metadata, clock) = (Arc::clone(&environment.metadata), clock.clone());
            let claim = TopicClaim { metadata, clock, key, epoch, owner };
            Ok(Some((chain, next_index, claim, HeldRecord { version, properties })))
        }
        Err(CasError::Conflict) => Ok(None),
        Err(CasError::Unknown(error)) => Err(ManagedLedgerError::Metadata(error)),
    }
}

/// Recovers the last ledger; answers the index after its last message.
async fn find_end(
    environment: &ManagedLedgerEnvironment,
    last: &mut ChainLedger,
) -> Result<u64, ManagedLedgerError> {
    let storage = |error: String| ManagedLedgerError::Storage(error);
    // A listed ledger that is missing is an error, never silently dropped.
    let closed = if mutant!("B-fence") {
        let read = |error: LedgerReadError| storage(error.to_string());
        let reader = environment.ledgers.open(last.id).await.map_err(read)?;
        let last_entry = reader.last_add_confirmed().await.map_err(read)?;
        ClosedLedger { ledger: last.id, last_entry, length: 0 }
    } else {
        environment.ledgers.recover(last.id).await.map_err(|error| storage(error.to_string()))?
    };
    last.entries = roll::count_up_to(closed.last_entry);
    last.bytes = closed.length;
    last.closed = true;
    if closed.last_entry == EntryId::NONE {
        return Ok(last.first_index);
    }
    let reader =
        environment.ledgers.open(last.id).await.map_err(|error| storage(error.to_string()))?;
    let run = reader
        .read(closed.last_entry, 1, u32::MAX, closed.last_entry)
        .await
        .map_err(|error| storage(error.to_string()))?;
    let entry = run.first().ok_or_else(|| storage("the last entry is missing".to_owned()))?;
    let (header, _) = EntryHeader::split(&entry.payload, environment.config.formats.reads_up_to)
        .map_err(|error| storage(error.to_string()))?;
    Ok(header.first_index + u64::from(header.message_count))
}
