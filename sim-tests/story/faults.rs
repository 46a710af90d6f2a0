//! Words for what happens to machines, disks, links and clocks. What dies stays down only where the word says so; all
//! else is started again at once, as by an operator's supervisor.

use std::path::Path;
use std::time::Duration;

use seawall::runtime::sim::{ClockFace, Occasion, SimNode};

use super::places::Who;
use super::play::{PATIENCE, demand};
use super::{Outcome, Play, Story};

/// Nobody comes back from there by themselves.
const FOR_EVER: Duration = Duration::from_secs(360_000);

impl Story {
    /// From here on `name` means who `who` is now, whoever that is later.
    pub fn call(self, name: &'static str, who: impl Into<Who>) -> Self {
        let who = who.into();
        self.step(format!("{who} is called {name}"), async move |play| {
            let names = play.names(&who)?;
            play.called.insert(name.to_owned(), names);
            Ok(())
        })
    }

    /// Lets so many seconds pass. Only for what is defined by its length, such as a lease or a grace time; for what has
    /// to come about there are words that wait for it.
    pub fn pass(self, seconds: u64) -> Self {
        self.step(format!("{seconds} s pass"), async move |play| {
            play.stage.pass(Duration::from_secs(seconds)).await;
            Ok(())
        })
    }

    /// Lets so many microseconds pass: moments in the middle of what takes milliseconds.
    pub fn pass_micros(self, micros: u64) -> Self {
        self.step(format!("{micros} us pass"), async move |play| {
            play.stage.start_and_pass(Duration::from_micros(micros)).await;
            Ok(())
        })
    }

    /// Waits until every node serves that is not down for good.
    pub fn all_serve(self) -> Self {
        self.step("all serve", async |play| play.all_serve().await)
    }

    /// The process dies and is started again; its disk keeps everything written.
    pub fn restart(self, who: impl Into<Who>) -> Self {
        self.each("the process dies and is started again", who, |_, machine| {
            demand(machine.crash(), || format!("{} was down", machine.name()))
        })
    }

    /// The process stops in order, as at a signal, and is started again.
    pub fn stop_in_order(self, who: impl Into<Who>) -> Self {
        self.each("the process stops in order", who, |play, machine| {
            play.node(machine.name())?.stop_in_order();
            Ok(())
        })
    }

    /// The process dies and stays down until [`Story::start`].
    pub fn kill(self, who: impl Into<Who>) -> Self {
        self.each("the process dies for good", who, |play, machine| {
            play.keep_down(machine.name(), FOR_EVER);
            demand(machine.crash(), || format!("{} was down", machine.name()))
        })
    }

    /// The process dies, and it is not started again when the story is over, either.
    pub fn never_comes_back(self, who: impl Into<Who>) -> Self {
        self.each("it is gone", who, |play, machine| {
            play.gone.insert(machine.name().to_owned());
            play.keep_down(machine.name(), FOR_EVER);
            machine.crash();
            Ok(())
        })
    }

    /// The power goes and comes back: unsynced bytes and names are lost, kept or torn.
    pub fn power_loss(self, who: impl Into<Who>) -> Self {
        self.each("the power goes and comes back", who, |_, machine| {
            demand(machine.power_loss(), || format!("{} has no power", machine.name()))
        })
    }

    /// The power goes and stays away until [`Story::start`].
    pub fn power_off(self, who: impl Into<Who>) -> Self {
        self.each("the power goes for good", who, |play, machine| {
            play.keep_down(machine.name(), FOR_EVER);
            demand(machine.power_loss(), || format!("{} has no power", machine.name()))
        })
    }

    /// Waits for the `nth` sync that begins on the first of them, and takes the power from all of them in its middle;
    /// it comes back.
    pub fn power_loss_in_sync(self, who: impl Into<Who>, nth: u64) -> Self {
        let who = who.into();
        let told = format!("{who}: the power goes in the middle of sync {nth}");
        self.step(told, async move |play| {
            let machines = play.machines(&who)?;
            let first = machines.first().ok_or("nobody is meant")?.clone();
            first.lie_in_wait(Occasion::SyncBegun, nth);
            let world = play.stage.world.clone();
            tokio::select! {
                biased;
                () = world.sprung() => {}
                () = world.sleep(PATIENCE) => return Err("it never syncs".to_owned()),
            }
            demand(first.has_sprung(), || "something else sprang".to_owned())?;
            machines.iter().for_each(|machine| _ = machine.power_loss());
            Ok(())
        })
    }

    /// Who was killed, or lost power, or whose disk is bad, is started again.
    pub fn start(self, who: impl Into<Who>) -> Self {
        self.each("it is started", who, |play, machine| {
            play.keep_down(machine.name(), Duration::ZERO);
            Ok(())
        })
    }

    /// The process dies, its disk is emptied, and it is started again.
    pub fn lose_disk(self, who: impl Into<Who>) -> Self {
        self.each("the disk is exchanged for an empty one", who, |_, machine| {
            machine.crash();
            demand(machine.wipe_disk(), || format!("{} cannot be emptied", machine.name()))
        })
    }

    /// Two machines that are down exchange their disks.
    pub fn swap_disks(self, one: &'static str, other: &'static str) -> Self {
        self.link("exchanges its disk with", one, other, |_, one, other| {
            assert!(one.swap_disks(other), "one of them runs");
        })
    }

    /// The process stands still (SIGSTOP) until [`Story::resume`].
    pub fn pause(self, who: impl Into<Who>) -> Self {
        self.each("it stands still", who, |_, machine| {
            demand(machine.pause(), || format!("{} is down", machine.name()))
        })
    }

    /// Who stands still goes on.
    pub fn resume(self, who: impl Into<Who>) -> Self {
        self.each("it goes on", who, |_, machine| {
            machine.resume();
            Ok(())
        })
    }

    /// Nothing gets through between them in either direction; it is kept and arrives after the heal.
    pub fn cut(self, one: impl Into<Who>, other: impl Into<Who>) -> Self {
        self.link("is cut off from", one, other, |play, one, other| {
            play.stage.world.cut(one, other);
        })
    }

    /// Nothing gets from one to the other; the other direction works.
    pub fn cut_one_way(self, from: impl Into<Who>, to: impl Into<Who>) -> Self {
        self.link("does not get through to", from, to, |play, from, to| {
            play.stage.world.cut_one_way(from, to);
        })
    }

    /// Both directions between them work again.
    pub fn heal(self, one: impl Into<Who>, other: impl Into<Who>) -> Self {
        self.link("reaches again", one, other, |play, one, other| {
            play.stage.world.heal(one, other);
        })
    }

    /// The streams between them break now, at both ends; what was on its way is lost. New ones can be made.
    pub fn reset(self, one: impl Into<Who>, other: impl Into<Who>) -> Self {
        self.link("loses its streams to", one, other, |play, one, other| {
            play.stage.world.reset_streams(one, other);
        })
    }

    /// Cut off from everybody.
    pub fn isolate(self, who: impl Into<Who>) -> Self {
        self.each("is cut off from everybody", who, |play, machine| {
            play.stage.world.isolate(machine);
            Ok(())
        })
    }

    /// All links work again.
    pub fn heal_all_links(self) -> Self {
        self.step("all links work again", async |play| {
            play.stage.world.heal_all();
            Ok(())
        })
    }

    /// Every sync of the disk fails until [`Story::heal_disk`].
    pub fn syncs_fail(self, who: impl Into<Who>) -> Self {
        self.each("every sync fails", who, |_, machine| {
            machine.set_disk(|disk| disk.sync_error_rate = 1.0);
            Ok(())
        })
    }

    /// The disk answers nothing until [`Story::heal_disk`].
    pub fn stall_disk(self, who: impl Into<Who>) -> Self {
        self.each("the disk answers nothing", who, |_, machine| {
            machine.stall_disk();
            Ok(())
        })
    }

    /// The disk has no more than so many bytes beyond what it holds, until [`Story::heal_disk`].
    pub fn fill_disk(self, who: impl Into<Who>, left: u64) -> Self {
        self.each(format!("the disk has {left} bytes left"), who, move |_, machine| {
            let used: u64 = machine.files().iter().map(|(_, length)| length).sum();
            machine.set_disk(|disk| disk.capacity = used + left);
            Ok(())
        })
    }

    /// The disk is as good as new.
    pub fn heal_disk(self, who: impl Into<Who>) -> Self {
        self.each("the disk works again", who, |_, machine| {
            machine.heal_disk();
            Ok(())
        })
    }

    /// Bits flip in files with this ending.
    pub fn rot(self, who: impl Into<Who>, ending: &'static str, bits: usize) -> Self {
        self.each(format!("{bits} bits of .{ending} files flip"), who, move |_, machine| {
            let takes = |path: &Path| path.extension().is_some_and(|end| end == ending);
            let rotted = machine.rot(takes, bits);
            demand(!rotted.is_empty(), || format!("{} has no .{ending}", machine.name()))
        })
    }

    /// The process dies and its index is lost.
    pub fn lose_index(self, who: impl Into<Who>) -> Self {
        self.each("the process dies and the index is lost", who, |_, machine| {
            demand(machine.break_indexes(|_| true) && machine.crash(), || "it was down".to_owned())
        })
    }

    /// The wall clock jumps by so many hours.
    pub fn step_clock(self, who: impl Into<Who>, hours: i64) -> Self {
        self.each(format!("the wall clock jumps by {hours} h"), who, move |_, machine| {
            machine.step_wall_clock(hours * 3_600_000);
            Ok(())
        })
    }

    /// Both clocks stand still until the story's end or [`Story::thaw_clock`].
    pub fn freeze_clock(self, who: impl Into<Who>) -> Self {
        self.each("the clocks stand still", who, |_, machine| {
            machine.freeze_clock(ClockFace::Monotonic, true);
            machine.freeze_clock(ClockFace::Wall, true);
            Ok(())
        })
    }

    /// The clocks run on from where they stood.
    pub fn thaw_clock(self, who: impl Into<Who>) -> Self {
        self.each("the clocks run on", who, |_, machine| {
            machine.freeze_clock(ClockFace::Monotonic, false);
            machine.freeze_clock(ClockFace::Wall, false);
            Ok(())
        })
    }

    /// The clock that durations are measured by runs so much faster, or slower.
    pub fn clock_drifts(self, who: impl Into<Who>, percent: i64) -> Self {
        self.each(format!("the clock runs {percent} % off"), who, move |_, machine| {
            machine.set_clock_drift(ClockFace::Monotonic, percent * 10_000);
            Ok(())
        })
    }

    fn each(
        self,
        what: impl std::fmt::Display,
        who: impl Into<Who>,
        act: impl Fn(&mut Play, &SimNode) -> Outcome + Send + 'static,
    ) -> Self {
        let who = who.into();
        self.step(format!("{who}: {what}"), async move |play| {
            for machine in play.machines(&who)? {
                act(play, &machine)?;
            }
            Ok(())
        })
    }

    fn link(
        self,
        what: &str,
        one: impl Into<Who>,
        other: impl Into<Who>,
        act: impl Fn(&mut Play, &SimNode, &SimNode) + Send + 'static,
    ) -> Self {
        let (one, other) = (one.into(), other.into());
        self.step(format!("{one} {what} {other}"), async move |play| {
            for one in play.machines(&one)? {
                for other in play.machines(&other)? {
                    act(play, &one, &other);
                }
            }
            Ok(())
        })
    }
}

impl Play {
    /// Waits until every node serves that is not down for good.
    pub async fn all_serve(&mut self) -> Outcome {
        self.wait(PATIENCE, async |play| {
            let nodes = play.stage.cluster.nodes.iter();
            let due = nodes.filter(|node| !play.is_down_for_good.contains(node.machine.name()));
            let down = due.filter(|node| node.serving().is_none());
            let down: Vec<&str> = down.map(|node| node.machine.name()).collect();
            demand(down.is_empty(), || format!("{down:?} do not serve"))
        })
        .await
    }

    pub(super) fn node(
        &self,
        name: &str,
    ) -> Result<&seawall::simulator::cluster::ClusterNode, String> {
        let found = self.stage.cluster.nodes.iter().find(|node| node.machine.name() == name);
        found.ok_or_else(|| format!("{name} is not a node of the cluster"))
    }

    pub(super) fn keep_down(&mut self, name: &str, duration: Duration) {
        match duration {
            FOR_EVER => self.is_down_for_good.insert(name.to_owned()),
            _ => self.is_down_for_good.remove(name),
        };
        let until = self.stage.world.now() + duration;
        let nodes = &self.stage.cluster.nodes;
        if let Some(index) = nodes.iter().position(|node| node.machine.name() == name) {
            self.stage.cluster.keep_down(index, until);
        }
    }
}
