//! Clients of metadata itself: reads, compare-and-set and watches on a few registers, numbers of a counter.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;

use super::WorkloadContext;
use crate::metadata::{
    Expect, Metadata, MetadataError, RemoteMetadata, RemoteMetadataConfig, Revision, WatchEvent,
};
use crate::reached;
use crate::runtime::Random;
use crate::runtime::sim::Note;
use crate::simulator::metadata_history::{
    NumberCall, RegisterAnswer, RegisterCall, RegisterExpect, RegisterQuestion, WatchSight,
};
use crate::simulator::noted::Noted;

/// Registers of a run: few, so that clients meet.
const REGISTERS: u64 = 3;
const PREFIX: &str = "/simulator/registers/";
const COUNTER: &str = "/simulator/numbers";
/// A client that got no answer asks again after this.
const PAUSE: Duration = Duration::from_millis(300);

fn key(register: u32) -> String {
    format!("{PREFIX}{register}")
}

fn decode(value: &[u8]) -> Option<u64> {
    Some(u64::from_be_bytes(value.try_into().ok()?))
}

fn metadata(context: &WorkloadContext) -> Metadata {
    let config = RemoteMetadataConfig {
        call_timeout: Duration::from_secs(2),
        give_up: Duration::from_secs(4),
        ..RemoteMetadataConfig::default()
    };
    let addresses = &context.metadata_addresses;
    std::sync::Arc::new(RemoteMetadata::new(context.runtime.clone(), addresses, config))
}

/// A client that reads and changes registers until told to stop, or as often as the plan allows.
pub async fn use_registers(context: WorkloadContext, number: u64) {
    let random = context.runtime.random.fork_numbered("registers", number);
    let metadata = metadata(&context);
    let mut versions: BTreeMap<u32, u64> = BTreeMap::new();
    let is_made = |call| {
        let calls = context.plan.register_calls.as_ref();
        calls.is_none_or(|calls| calls.has(number, call))
    };
    let mut call = 0;
    while !context.stop.is_triggered() && call < context.plan.register_calls_max {
        call += 1;
        if !is_made(call - 1) {
            // Only the time passes that a call would have begun in.
        } else if random.chance(0.1) {
            draw_number(&context, &metadata).await;
        } else {
            let register = random.below(REGISTERS) as u32;
            let version = versions.get(&register).copied();
            let question = draw_question(&context, &random, version);
            match ask(&context, &metadata, register, question).await {
                Some(RegisterAnswer::Written(version))
                | Some(RegisterAnswer::Read(Some((_, version)))) => {
                    versions.insert(register, version);
                }
                // Likelier to be right the next time.
                Some(RegisterAnswer::Read(None) | RegisterAnswer::Deleted) => {
                    versions.remove(&register);
                }
                _ => {}
            }
        }
        let pause = Duration::from_millis(5 + random.below(150));
        context.runtime.clock.sleep(pause).await;
    }
}

fn draw_question(
    context: &WorkloadContext,
    random: &Random,
    version: Option<u64>,
) -> RegisterQuestion {
    let expect = version.map_or(RegisterExpect::Absent, RegisterExpect::Version);
    match random.below(20) {
        0..8 => RegisterQuestion::Read,
        8..10 => RegisterQuestion::Delete { expect },
        10..12 => {
            let value = context.history.lock().metadata.new_value();
            RegisterQuestion::Write { value, expect: RegisterExpect::Any }
        }
        _ => {
            let value = context.history.lock().metadata.new_value();
            RegisterQuestion::Write { value, expect }
        }
    }
}

/// Asks and writes down what was told. `None`: nothing was done, and nothing was told.
async fn ask(
    context: &WorkloadContext,
    metadata: &Metadata,
    register: u32,
    question: RegisterQuestion,
) -> Option<RegisterAnswer> {
    let asked_at = context.stamp();
    let call = context.history.lock().metadata.new_call();
    context.history.lock().note_question(Noted::Ask, call, || {
        let note = Note::from(Noted::Ask).facts([call as i64, i64::from(register), 0]);
        note.text(format!("{question:?}"))
    });
    let key = key(register);
    let answer = match question {
        RegisterQuestion::Read => match metadata.get(&key).await {
            Ok(None) => Ok(RegisterAnswer::Read(None)),
            Ok(Some(found)) => {
                let value = decode(&found.value).unwrap_or(u64::MAX);
                Ok(RegisterAnswer::Read(Some((value, found.version.0))))
            }
            Err(_) => return None,
        },
        RegisterQuestion::Write { value, expect } => {
            let bytes = Bytes::copy_from_slice(&value.to_be_bytes());
            let written = metadata.put(&key, bytes, condition(expect), None).await;
            written.map(|version| RegisterAnswer::Written(version.0))
        }
        RegisterQuestion::Delete { expect } => {
            metadata.delete(&key, condition(expect)).await.map(|()| RegisterAnswer::Deleted)
        }
    };
    let answer = match answer {
        Ok(answer) => answer,
        Err(MetadataError::VersionMismatch { found, .. }) => {
            RegisterAnswer::Mismatch(found.map(|version| version.0))
        }
        Err(MetadataError::OutcomeUnknown(_)) => {
            reached!("workload: a register's change is of unknown outcome");
            RegisterAnswer::Unknown
        }
        Err(_) => return None,
    };
    let answered_at = match answer {
        RegisterAnswer::Unknown => u64::MAX,
        _ => context.stamp(),
    };
    context.history.lock().note_answer(Noted::Ask, call, |_| {
        let note = Note::from(Noted::Answered).facts([call as i64, i64::from(register), 0]);
        note.text(format!("{answer:?}"))
    });
    let call = RegisterCall { key: register, asked_at, answered_at, question, answer };
    context.history.lock().metadata.registers.push(call);
    Some(answer)
}

fn condition(expect: RegisterExpect) -> Expect {
    match expect {
        RegisterExpect::Any => Expect::Any,
        RegisterExpect::Absent => Expect::Absent,
        RegisterExpect::Version(version) => Expect::Version(Revision(version)),
    }
}

async fn draw_number(context: &WorkloadContext, metadata: &Metadata) {
    let asked_at = context.stamp();
    let Ok(number) = metadata.next_number(COUNTER).await else { return };
    let call = NumberCall { asked_at, answered_at: context.stamp(), number };
    context.history.lock().metadata.numbers.push(call);
}

/// A client that watches all registers until told to stop.
pub async fn watch_registers(context: WorkloadContext) {
    let metadata = metadata(&context);
    while !context.stop.is_triggered() {
        if let Ok(mut watch) = metadata.watch(PREFIX).await {
            let stream = context.history.lock().metadata.new_stream();
            let mut is_first_state = true;
            while let Some(events) = watch.next().await {
                // The first state ends with an empty batch.
                is_first_state &= !events.is_empty();
                for event in events {
                    see(&context, stream, is_first_state, event);
                }
            }
        }
        context.runtime.clock.sleep(PAUSE).await;
    }
}

fn see(context: &WorkloadContext, stream: u32, is_first_state: bool, event: WatchEvent) {
    let (key, version) = match event {
        WatchEvent::Put { key, value } => (key, value.version),
        WatchEvent::Deleted { key, revision } => (key, revision),
    };
    let Some(Ok(key)) = key.strip_prefix(PREFIX).map(str::parse) else { return };
    let sight = WatchSight { stream, is_first_state, key, version: version.0 };
    context.history.lock().metadata.sights.push(sight);
}

/// Reads every register once more, when everything works again.
pub async fn read_registers(context: &WorkloadContext) -> Result<(), String> {
    let metadata = metadata(context);
    for register in 0..REGISTERS as u32 {
        if ask(context, &metadata, register, RegisterQuestion::Read).await.is_none() {
            return Err(format!("register {register} cannot be read"));
        }
    }
    Ok(())
}
