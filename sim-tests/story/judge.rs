//! What has to hold after any story, whatever happened in it: everything works again, and all that anyone was told is
//! true.

use std::time::Duration;

use seawall::runtime::sim::ClockFace;

use super::{Outcome, Play, Story};
use crate::support::metadata::consensus_held;

impl Story {
    pub(super) fn judged(self) -> Self {
        self.step("everything works again and what was told is true", async |play| {
            play.heal_everything();
            play.all_serve().await?;
            play.judge_ledgers().await?;
            play.judge_topic().await?;
            play.judge_pairs().await?;
            if play.stage.plan.shape.metadata > 1 {
                consensus_held(&play.stage);
            }
            Ok(())
        })
    }
}

impl Play {
    fn heal_everything(&mut self) {
        self.stage.world.heal_all();
        for machine in self.stage.world.nodes() {
            machine.resume();
            machine.heal_disk();
            machine.set_clock_drift(ClockFace::Monotonic, 0);
            machine.freeze_clock(ClockFace::Monotonic, false);
            machine.correct_wall_clock();
            if !self.gone.contains(machine.name()) {
                self.keep_down(machine.name(), Duration::ZERO);
            }
        }
        for actor in self.actors.values() {
            actor.gate.open();
        }
    }

    /// Every ledger can be recovered; its end is where it was found before and not before what was confirmed, also
    /// by a writer that lived on until now; and every entry is what its writer wrote.
    async fn judge_ledgers(&mut self) -> Outcome {
        let writers: Vec<String> = self.writings.keys().cloned().collect();
        for writer in &writers {
            let told = |why: String| format!("{writer}'s ledger: {why}");
            self.begin_recovery("judge", writer)?;
            let closed =
                self.end_recovery("judge").await?.map_err(|error| told(error.to_string()))?;
            self.found(writer, closed).map_err(told)?;
            let ledger = closed.ledger;
            let entries = u64::try_from(closed.last_entry.0 + 1).unwrap_or(0);
            let ledgers = self.actor("judge").ledgers.clone();
            let name = writer.clone();
            let reading =
                async move { super::ledgers::read_all(&ledgers, ledger, &name, entries).await };
            self.at("judge", reading).await?.map_err(told)?;
        }
        // A writer that lives until now was told of the end, or says nothing false about it.
        self.stage.pass(Duration::from_secs(1)).await;
        for writer in &writers {
            let writing = self.writing(writer)?;
            let end = writing.end.ok_or("nobody found its end")?;
            self.found(writer, end).map_err(|why| format!("{writer}'s ledger: {why}"))?;
        }
        Ok(())
    }
}
