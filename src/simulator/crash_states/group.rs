//! The files of each member of a metadata group: consensus log with term and vote, snapshot, identity.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;

use super::SubjectName;
use super::explore::{Started, Subject};
use super::member::{Member, MemberState};
use super::record::Record;
use crate::metadata::consensus::{
    AppendResult, Body, Entry, HardState, Index, Machine, MemberId, Membership, Message, Role,
    SnapshotMark, Term, Write,
};
use crate::metadata::{
    Expect, MemberLimits, MemberObserver, MembersService, MetadataClient, MetadataService,
    Observer, RemoteMetadata, RemoteMetadataConfig, ReplicatedConfig, ReplicatedMetadata,
};
use crate::rpc::{Routes, ServerConfig, serve};
use crate::runtime::sim::{SimNode, World};
use crate::runtime::{Runtime, Shutdown};

const MEMBERS: u64 = 3;

/// Something a member is going to write, or has told another.
pub(super) enum Fact {
    /// A start found this.
    Restored(MemberId, MemberState),
    /// It is going to write this.
    Writes(MemberId, Write),
    /// It is going to take this state in place of its own.
    Installs(MemberId, Index, HardState, Vec<Entry>),
    /// It is in this term.
    InTerm(MemberId, Term),
    /// It votes for another, or itself.
    Voted(MemberId, Term, MemberId),
    /// It has all entries up to this one.
    Matched(MemberId, Index),
}

impl Fact {
    pub(super) fn member(&self) -> MemberId {
        match self {
            Self::Restored(member, _)
            | Self::Writes(member, _)
            | Self::Installs(member, ..)
            | Self::InTerm(member, _)
            | Self::Voted(member, ..)
            | Self::Matched(member, _) => *member,
        }
    }
}

fn host(member: u64) -> String {
    format!("meta-{member}")
}

fn address(member: u64) -> String {
    format!("meta-{member}:9090")
}

fn config(member: u64, observer: Observer) -> ReplicatedConfig {
    let founders = Membership::of_voters((1..=MEMBERS).map(|id| (MemberId(id), address(id))));
    let limits = MemberLimits { log_bytes: 3_000, log_kept: 3, snapshot_part: 700 };
    let below = ReplicatedConfig::below(Path::new("/data"), MemberId(member), founders);
    ReplicatedConfig { limits, observer, ..below }
}

/// Writes down what a member is going to write and what it says.
struct Listener {
    record: Record<Fact>,
    node: SimNode,
}

impl MemberObserver for Listener {
    fn leads(&self, _machine: &Machine) {}

    fn applied(&self, _machine: &Machine, _entry: &Entry) {}

    fn installed(&self, _member: MemberId, _mark: &SnapshotMark) {}

    fn restored(&self, machine: &Machine) {
        self.record.asked(Fact::Restored(machine.id(), MemberState::of(machine)));
    }

    fn writes(&self, member: MemberId, write: &Write) {
        self.record.asked(Fact::Writes(member, write.clone()));
    }

    fn installs(
        &self,
        member: MemberId,
        mark: &SnapshotMark,
        hard_state: HardState,
        entries: &[Entry],
    ) {
        self.record.asked(Fact::Installs(member, mark.index, hard_state, entries.to_vec()));
    }

    fn says(&self, member: MemberId, to: MemberId, message: &Message) {
        let promised = match &message.body {
            Body::PreVote { .. } | Body::PreVoteAnswer { .. } => return,
            Body::Vote { .. } => Some(Fact::Voted(member, message.term, member)),
            Body::VoteAnswer { granted: true } => Some(Fact::Voted(member, message.term, to)),
            Body::AppendAnswer(answer) => match answer.result {
                AppendResult::Matched(index) => Some(Fact::Matched(member, index)),
                AppendResult::Conflict { .. } => None,
            },
            Body::SnapshotAnswer { index, done: true, .. } => Some(Fact::Matched(member, *index)),
            _ => None,
        };
        self.record.asked(Fact::InTerm(member, message.term));
        if let Some(promised) = promised {
            let is_vote = matches!(promised, Fact::Voted(..));
            let word = if is_vote { "vote" } else { "promise" };
            self.record.promised_as(word, &self.node, promised);
        }
    }
}

type Handles = Arc<Mutex<BTreeMap<u64, ReplicatedMetadata>>>;

async fn serve_member(runtime: Runtime, id: u64, observer: Observer, handles: Handles) {
    let store = ReplicatedMetadata::start(runtime.clone(), config(id, observer)).await;
    let store = store.expect("a member starts");
    let listener = runtime.network.listen(&address(id)).await.expect("it listens");
    handles.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).insert(id, store.clone());
    let routes = Routes::new()
        .with(store.service())
        .with(MembersService::server(Some(store.clone())))
        .with(MetadataService::server(Arc::new(store)));
    let never = Shutdown::new();
    serve(runtime, listener, routes, ServerConfig::default(), never.signal()).await;
}

/// The group at work.
struct Group {
    world: World,
    record: Record<Fact>,
    nodes: Vec<SimNode>,
    handles: Handles,
    client: RemoteMetadata,
}

impl Group {
    fn begin(world: World, record: Record<Fact>) -> Self {
        let nodes: Vec<SimNode> =
            (1..=MEMBERS).map(|id| world.create_node(&host(id), &host(id))).collect();
        for (node, id) in nodes.iter().zip(1..) {
            record.watch(node, id);
        }
        let addresses: Vec<String> = (1..=MEMBERS).map(address).collect();
        let settings = RemoteMetadataConfig {
            call_timeout: Duration::from_secs(1),
            give_up: Duration::from_secs(10),
            ..RemoteMetadataConfig::default()
        };
        let runtime = world.create_node("client", "client").runtime();
        let client = RemoteMetadata::new(runtime, &addresses, settings);
        let group = Self { world, record, nodes, handles: Handles::default(), client };
        (1..=MEMBERS).for_each(|id| group.start(id));
        group
    }

    fn node(&self, id: u64) -> &SimNode {
        &self.nodes[id as usize - 1]
    }

    fn start(&self, id: u64) {
        let node = self.node(id);
        let listener = Listener { record: self.record.clone(), node: node.clone() };
        let observer = Observer(Some(Arc::new(listener)));
        let handles = Arc::clone(&self.handles);
        node.start(|runtime| serve_member(runtime, id, observer, handles));
    }

    async fn leader(&self) -> u64 {
        loop {
            let leader = {
                let handles = self.handles.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                let leads = |id: &u64| self.node(*id).is_running();
                let mut all = handles.iter().filter(|(id, _)| leads(id));
                all.find(|(_, store)| store.status().role == Role::Leader).map(|(id, _)| *id)
            };
            match leader {
                Some(leader) => return leader,
                None => self.world.sleep(Duration::from_millis(50)).await,
            }
        }
    }

    async fn changes(&self, changes: std::ops::Range<u64>) {
        for change in changes {
            let mut value = format!("change {change};").into_bytes();
            value.resize(60 + (change as usize * 131) % 500, change as u8);
            let key = format!("/key/{}", change % 4);
            let done = self.client.put(&key, Bytes::from(value), Expect::Any, None).await;
            done.expect("a change is made");
        }
    }
}

/// Elections, replication, snapshots of one's own and of another, kills and power losses.
async fn lives(world: World, record: Record<Fact>) {
    let group = Group::begin(world, record);
    group.leader().await;
    group.changes(0..6).await;
    // A new term, and a vote on each disk.
    let leader = group.leader().await;
    group.node(leader).crash();
    group.changes(6..9).await;
    group.start(leader);
    // One is away until its entries are only in the snapshot.
    let away = group.leader().await % MEMBERS + 1;
    group.node(away).power_loss();
    group.changes(9..22).await;
    group.start(away);
    group.world.sleep(Duration::from_secs(2)).await;
    group.changes(22..25).await;
    let leader = group.leader().await;
    group.node(leader).power_loss();
    group.changes(25..28).await;
    group.start(leader);
    group.world.sleep(Duration::from_secs(1)).await;
    group.changes(28..30).await;
}

pub(super) struct GroupSubject;

impl Subject for GroupSubject {
    type Fact = Fact;

    fn name(&self) -> SubjectName {
        SubjectName::Group
    }

    fn work(&self, world: World, record: Record<Fact>) -> BoxFuture<'static, ()> {
        Box::pin(lives(world, record))
    }

    fn recover(
        &self,
        runtime: Runtime,
        place: u64,
        facts: Arc<Vec<Fact>>,
        count: usize,
        started: Started,
    ) -> BoxFuture<'static, Result<u64, String>> {
        Box::pin(async move {
            let found = Arc::new(Found::default());
            let observer = Observer(Some(Arc::clone(&found) as Arc<dyn MemberObserver>));
            let store = ReplicatedMetadata::start(runtime, config(place, observer)).await;
            store.map_err(|error| format!("the start fails: {error}"))?;
            if started.watched {
                started.call();
                return Ok(0);
            }
            let state = found.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take();
            let state = state.ok_or("a started member found nothing")?;
            Member::of(MemberId(place), &facts[..count]).hold(&state)
        })
    }
}

/// Keeps what a start found.
#[derive(Default)]
struct Found(Mutex<Option<MemberState>>);

impl MemberObserver for Found {
    fn leads(&self, _machine: &Machine) {}

    fn applied(&self, _machine: &Machine, _entry: &Entry) {}

    fn installed(&self, _member: MemberId, _mark: &SnapshotMark) {}

    fn restored(&self, machine: &Machine) {
        let state = MemberState::of(machine);
        *self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(state);
    }
}
