//! Words for copies that are made anew and bookies that leave.

use seawall::ledger::repair::{DrainState, Drains};
use seawall::simulator::checkers::full_replication;

use super::play::{PATIENCE, demand};
use super::{Play, Story};
use crate::support::bookies::{bookies, metadata, repaired_without};

impl Story {
    /// Every entry has all its copies now, before anyone can have made new ones.
    pub fn has_every_copy(self) -> Self {
        self.step("every copy is there", async |play| {
            let (metadata, bookies) = (metadata(&play.stage), bookies(&play.stage));
            let found = async move { full_replication(&metadata, &bookies).await };
            play.stage.client(found).await.map(|_| ())
        })
    }

    /// Waits until every entry has all its copies on the bookies that records name, and no record names the bookie that
    /// this machine had first.
    pub fn repaired_without(self, was: &'static str) -> Self {
        let told = format!("every copy is where it must be, and none on {was}");
        self.step(told, async move |play| {
            let gone = play.bookie_called(was)?;
            repaired_without(&mut play.stage, Some(gone)).await;
            Ok(())
        })
    }

    /// An operator asks a bookie to give its copies away.
    pub fn drain(self, bookie: &'static str) -> Self {
        self.step(format!("{bookie} is to be drained"), async move |play| {
            let leaving = play.bookie_called(bookie)?;
            let drains = Drains::new(metadata(&play.stage));
            let asked = play.stage.client(async move { drains.begin(leaving).await }).await;
            asked.map_err(|error| error.to_string())
        })
    }

    /// Waits until it has given everything away.
    pub fn drained(self, bookie: &'static str) -> Self {
        self.step(format!("{bookie} is drained"), async move |play| {
            let leaving = play.bookie_called(bookie)?;
            play.wait(PATIENCE, async |play| {
                let drains = Drains::new(metadata(&play.stage));
                let found = play.stage.client(async move { drains.get(leaving).await }).await;
                let state = found.ok().flatten().map(|record| record.state);
                demand(state == Some(DrainState::Drained), || format!("it is {state:?}"))
            })
            .await
        })
    }
}

impl Play {
    /// The bookie that a machine of this name had first.
    fn bookie_called(&self, name: &str) -> Result<seawall::domain::BookieId, String> {
        let name = self.one(name)?;
        let known = self.known_bookies.get(&name).copied();
        known.ok_or_else(|| format!("{name} never had a bookie"))
    }
}
