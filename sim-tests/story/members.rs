//! Words for the metadata group: pairs that a client sets and reads through members of its choice.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use seawall::metadata::consensus::Role;
use seawall::metadata::{
    Expect, Metadata, MetadataError, RemoteMetadata, RemoteMetadataConfig, Revision,
};
use seawall::runtime::Task;
use seawall::simulator::metadata_history::ConsensusFact;

use super::places::Who;
use super::play::{PATIENCE, demand};
use super::{Outcome, Play, Story};
use crate::support::metadata::{get, put, replace};

/// What was set, and what is being created.
#[derive(Default)]
pub struct Pairs {
    /// To be read in the end: the value acknowledged last for each key.
    set: BTreeMap<&'static str, &'static str>,
    /// A client that has changed something before, and so is known to the group.
    known: Option<Metadata>,
    creating: Option<Task<Result<Revision, MetadataError>>>,
}

/// How long a client tries where it is expected to fail.
const SHORT: Duration = Duration::from_secs(20);

impl Story {
    /// A client that knows only these members sets a key, and is answered.
    pub fn sets(self, who: impl Into<Who>, key: &'static str, value: &'static str) -> Self {
        let who = who.into();
        self.step(format!("{key} is set to {value:?} through {who}"), async move |play| {
            let places = play.places(&who)?;
            let pair = vec![(key.to_owned(), Bytes::from_static(value.as_bytes()))];
            let set = put(&mut play.stage, &places, PATIENCE, pair).await;
            set.map_err(|error| error.to_string())?;
            play.pairs.set.insert(key, value);
            Ok(())
        })
    }

    /// So many keys are set through these members, each with half a kilobyte: the log grows.
    pub fn sets_many(self, who: impl Into<Who>, count: u32) -> Self {
        let who = who.into();
        self.step(format!("{count} keys are set through {who}"), async move |play| {
            let places = play.places(&who)?;
            let pairs = (0..count).map(|n| (format!("/many/{n}"), Bytes::from(vec![7; 500])));
            let set = put(&mut play.stage, &places, PATIENCE, pairs.collect()).await;
            set.map_err(|error| error.to_string())
        })
    }

    /// A client that knows only these members cannot set a key; nothing says it is not done later.
    pub fn cannot_set(self, who: impl Into<Who>, key: &'static str, value: &'static str) -> Self {
        let who = who.into();
        self.step(format!("{key} cannot be set to {value:?} through {who}"), async move |play| {
            let places = play.places(&who)?;
            let pair = vec![(key.to_owned(), Bytes::from_static(value.as_bytes()))];
            let set = put(&mut play.stage, &places, SHORT, pair).await;
            demand(set.is_err(), || "it was set".to_owned())
        })
    }

    /// A client that knows only these members reads this value.
    pub fn gets(self, who: impl Into<Who>, key: &'static str, value: &'static str) -> Self {
        let who = who.into();
        self.step(format!("{key} is read as {value:?} through {who}"), async move |play| {
            let places = play.places(&who)?;
            play.reads(&places, key, value).await
        })
    }

    /// A client that knows only these members reads this value or gets no answer, but nothing older.
    pub fn gets_or_nothing(
        self,
        who: impl Into<Who>,
        key: &'static str,
        value: &'static str,
    ) -> Self {
        let who = who.into();
        self.step(format!("{key} is read through {who} as {value:?} or not"), async move |play| {
            let places = play.places(&who)?;
            let read = get(&mut play.stage, &places, SHORT, key).await;
            let Ok(Some(read)) = read else { return Ok(()) };
            demand(read.value == value, || format!("{:?} was read", read.value))
        })
    }

    /// A client that knows all members has set something, so that the group knows it.
    pub fn has_a_known_client(self) -> Self {
        self.step("a client has made itself known", async move |play| {
            let config = RemoteMetadataConfig { give_up: PATIENCE, ..Default::default() };
            let addresses = play.stage.cluster.metadata_addresses();
            let runtime = play.stage.client_runtime();
            let metadata: Metadata = Arc::new(RemoteMetadata::new(runtime, &addresses, config));
            play.pairs.known = Some(Arc::clone(&metadata));
            let setting = async move {
                metadata.put("/known", Bytes::from_static(b"yes"), Expect::Any, None).await
            };
            play.supervised(setting).await.map(|_| ()).map_err(|error| error.to_string())
        })
    }

    /// That client begins to create a key.
    pub fn begins_to_create(self, key: &'static str, value: &'static str) -> Self {
        self.step(format!("the client begins to create {key}"), async move |play| {
            let metadata = play.pairs.known.clone().ok_or("no client is known")?;
            play.pairs.creating = Some(play.stage.begin(async move {
                metadata.put(key, Bytes::from(value), Expect::Absent, None).await
            }));
            Ok(())
        })
    }

    /// The client is told that it has created the key, not that somebody has.
    pub fn has_created(self, key: &'static str, value: &'static str) -> Self {
        self.step(format!("the client has created {key}"), async move |play| {
            let creating = play.pairs.creating.take().ok_or("nobody creates it")?;
            play.join(creating).await?.map_err(|error| error.to_string())?;
            play.pairs.set.insert(key, value);
            Ok(())
        })
    }

    /// An operator takes this member out of the group, empties its disk, and adds its node as another member.
    pub fn replaces_member(self, who: &'static str, id: u64) -> Self {
        self.step(format!("{who} is replaced by member {id}"), async move |play| {
            let place = *play.places(&who.into())?.first().ok_or("it is no node")?;
            replace(&mut play.stage, place, id).await;
            Ok(())
        })
    }

    /// This member takes itself for the leader, now.
    pub fn believes_it_leads(self, who: &'static str) -> Self {
        self.step(format!("{who} takes itself for the leader"), async move |play| {
            let name = play.one(who)?;
            let serving = play.node(&name)?.serving().ok_or("it does not serve")?;
            let member = serving.metadata_member().ok_or("it is no member")?;
            demand(member.status().role == Role::Leader, || "it has noticed".to_owned())
        })
    }

    /// Waits until this member has taken over a snapshot of the leader's.
    pub fn takes_a_snapshot_over(self, who: &'static str) -> Self {
        self.step(format!("{who} takes a snapshot over"), async move |play| {
            let name = play.one(who)?;
            play.wait(PATIENCE, async |play| {
                let id = play.node(&name)?.member_id().ok_or("it is no member")?;
                let history = play.stage.history.lock();
                let mut facts = history.metadata.consensus.iter();
                let has_taken = facts.any(
                    |fact| matches!(fact, ConsensusFact::Installed { member, .. } if *member == id),
                );
                demand(has_taken, || "it needed none".to_owned())
            })
            .await
        })
    }

    /// Waits until a member of the group leads that is none of these.
    pub fn leads_another_than(self, who: impl Into<Who>) -> Self {
        let who = who.into();
        self.step(format!("another than {who} leads"), async move |play| {
            let old = play.names(&who)?;
            play.wait(PATIENCE, async |play| {
                let nodes = play.stage.cluster.nodes.iter();
                let leads = nodes.filter(|node| {
                    let serving = node.serving();
                    let member = serving.as_ref().and_then(|node| node.metadata_member());
                    member.is_some_and(|member| member.status().role == Role::Leader)
                });
                let leads: Vec<&str> = leads.map(|node| node.machine.name()).collect();
                let is_another = leads.iter().any(|name| !old.iter().any(|old| old == name));
                demand(is_another, || format!("{leads:?} lead"))
            })
            .await
        })
    }

    /// Waits until some member leads.
    pub fn someone_leads(self) -> Self {
        self.step("someone leads", async |play| {
            play.wait(PATIENCE, async |play| play.names(&"leader".into()).map(|_| ())).await
        })
    }
}

impl Play {
    fn places(&self, who: &Who) -> Result<Vec<usize>, String> {
        let names = self.names(who)?;
        let nodes = self.stage.cluster.nodes.iter().enumerate();
        let meant = nodes.filter(|(_, node)| names.iter().any(|name| name == node.machine.name()));
        Ok(meant.map(|(place, _)| place).collect())
    }

    async fn reads(&mut self, places: &[usize], key: &'static str, value: &str) -> Outcome {
        let read = get(&mut self.stage, places, PATIENCE, key).await;
        let read = read.map_err(|error| error.to_string())?.ok_or("it is not there")?;
        demand(read.value == value, || format!("{:?} was read", read.value))
    }

    /// What was set last is there.
    pub(super) async fn judge_pairs(&mut self) -> Outcome {
        let places = self.places(&"metadata".into())?;
        for (key, value) in std::mem::take(&mut self.pairs.set) {
            self.reads(&places, key, value).await.map_err(|why| format!("{key}: {why}"))?;
        }
        Ok(())
    }
}
