//! Starting from every state of every moment of a record.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde::Serialize;

use super::CrashOptions;
use super::file_kind::file_kind;
use super::record::{Moment, Record, Written};
use super::tally::{BrokenState, KindTally, Tally};
use crate::runtime::Runtime;
use crate::runtime::sim::{CrashBound, CrashPoint, DiskSettings, SimNode, World, WorldSettings};

/// The seed of all worlds: nothing is drawn that matters.
const SEED: u64 = 1;

/// Moments that one world after the other is made for; a state that comes again among them is not started from
/// again.
const MOMENTS_TOGETHER: usize = 8;

/// Moments with a broken promise after which no more are looked at.
const BROKEN_MAX: usize = 5;

/// Virtual time after which a start has to be over.
const START_LIMIT: Duration = Duration::from_secs(60);

/// Stack of the thread a world runs on.
const STACK_BYTES: usize = 16 * 1024 * 1024;

/// What has files, gives promises about them, and starts from them.
pub(super) trait Subject: Sync {
    /// Something asked for or promised.
    type Fact: Send + Sync + 'static;

    /// The word on the command line.
    fn name(&self) -> super::SubjectName;

    /// Does the work, writing down what is asked and promised, on nodes whose disks the record watches.
    fn work(&self, world: World, record: Record<Self::Fact>) -> BoxFuture<'static, ()>;

    /// Starts at a place after these facts, calls `started`, and holds what is there against them. Answers
    /// how much was compared, or what is wrong.
    fn recover(
        &self,
        runtime: Runtime,
        place: u64,
        facts: Arc<Vec<Self::Fact>>,
        count: usize,
        started: Started,
    ) -> BoxFuture<'static, Result<u64, String>>;
}

/// Whether only the start is wanted, and what to call after it.
#[derive(Clone)]
pub(super) struct Started {
    /// The start is watched: whatever it does by itself is to be done before `call`, and nothing after it.
    pub(super) watched: bool,
    node: SimNode,
}

impl Started {
    /// The start is over.
    pub(super) fn call(&self) {
        self.node.watch_no_crash_points();
    }
}

/// One state: subject, moment, state of that moment, and the same two of a second power loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct StateName {
    /// Whose.
    pub subject: super::SubjectName,
    /// The moment, counted from 0.
    pub moment: usize,
    /// The state, counted from 0.
    pub state: u64,
    /// Moment of the start and its state, if the power went a second time.
    pub again: Option<(usize, u64)>,
}

impl fmt::Display for StateName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}/{}", self.subject.as_str(), self.moment, self.state)?;
        match self.again {
            Some((moment, state)) => write!(formatter, "/{moment}/{state}"),
            None => Ok(()),
        }
    }
}

impl FromStr for StateName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no state, such as bookie/12/34 or bookie/12/0/3/4");
        let mut parts = text.split('/');
        let word = parts.next().unwrap_or_default();
        let subject = super::SubjectName::ALL.into_iter().find(|name| name.as_str() == word);
        let subject = subject.ok_or_else(wrong)?;
        let numbers: Result<Vec<u64>, _> = parts.map(str::parse).collect();
        let index = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        match numbers.map_err(|_| wrong())?[..] {
            [moment, state] => Ok(Self { subject, moment: index(moment), state, again: None }),
            [moment, state, second, last] => {
                let again = Some((index(second), last));
                Ok(Self { subject, moment: index(moment), state, again })
            }
            _ => Err(wrong()),
        }
    }
}

/// Every disk answers at once.
fn settings() -> WorldSettings {
    let instant = Duration::ZERO;
    let disk =
        DiskSettings { sync_latency: instant, sync_tail: instant, ..DiskSettings::default() };
    WorldSettings { time_limit: Duration::from_secs(1 << 20), disk, ..WorldSettings::default() }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Does the work of a subject and starts from the states of its moments.
pub(super) fn explore<S: Subject>(subject: &S, options: &CrashOptions) -> Tally {
    let record = Record::new();
    let worked = on_thread(|| {
        let record = record.clone();
        World::run_report(SEED, WorldSettings::default(), |world| subject.work(world, record))
    });
    let failed = match worked {
        Ok(report) if report.panics.is_empty() && report.output.is_some() => None,
        Ok(report) => Some(format!("timed out: {}, {:?}", report.timed_out, report.panics)),
        Err(panic) => Some(panic),
    };
    if let Some(failed) = failed {
        let failed = Some(format!("{}: the work failed: {failed}", subject.name().as_str()));
        return Tally { failed, ..Tally::default() };
    }
    let Written { facts, moments } = record.take();
    let facts = Arc::new(facts);
    let chunks: Vec<(usize, &[Moment])> = moments
        .chunks(MOMENTS_TOGETHER)
        .enumerate()
        .map(|(number, chunk)| (number * MOMENTS_TOGETHER, chunk))
        .collect();
    let tallies: Vec<Mutex<Tally>> = chunks.iter().map(|_| Mutex::default()).collect();
    let (next, broken) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            let work = || {
                while let Some((number, (first, chunk))) = {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    chunks.get(number).map(|chunk| (number, *chunk))
                } {
                    if broken.load(Ordering::Relaxed) >= BROKEN_MAX {
                        break;
                    }
                    let tally = explore_chunk(subject, options, first, chunk, &facts);
                    broken.fetch_add(tally.broken.len(), Ordering::Relaxed);
                    *lock(&tallies[number]) = tally;
                }
            };
            let builder = std::thread::Builder::new().stack_size(STACK_BYTES);
            // Without threads there is nothing explored, and that is a complaint.
            let _ = builder.spawn_scoped(scope, work);
        }
    });
    let mut all = Tally::default();
    tallies.iter().for_each(|tally| all.add(std::mem::take(&mut *lock(tally))));
    all
}

/// Runs `work` on a thread of its own: madsim seeds the standard library's hash keys, which this one may have
/// drawn already.
fn on_thread<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, String> {
    std::thread::scope(|scope| {
        let builder = std::thread::Builder::new().stack_size(STACK_BYTES);
        let thread = builder.spawn_scoped(scope, work).map_err(|error| error.to_string())?;
        thread.join().map_err(|_| "a panic".to_owned())
    })
}

fn explore_chunk<S: Subject>(
    subject: &S,
    options: &CrashOptions,
    first: usize,
    chunk: &[Moment],
    facts: &Arc<Vec<S::Fact>>,
) -> Tally {
    let tally = Mutex::new(Tally::default());
    let at = Mutex::new(Where::default());
    let explored = on_thread(|| {
        let report = World::run_report(SEED, settings(), |world| {
            every_moment(subject, options, world, (first, chunk), facts, (&tally, &at))
        });
        match (report.output, report.panics.first()) {
            (Some(()), None) => None,
            (_, Some(panic)) => Some(format!("task {} panicked: {}", panic.task, panic.text)),
            (None, None) => Some("the start does not end".to_owned()),
        }
    });
    let mut tally = std::mem::take(&mut *lock(&tally));
    if let Some(what) = explored.unwrap_or_else(Some) {
        let at = std::mem::take(&mut *lock(&at));
        match at.broken(chunk, first, what.clone()) {
            Some(broken) => tally.broken.push(broken),
            None => tally.failed = Some(what),
        }
    }
    tally
}

async fn every_moment<S: Subject>(
    subject: &S,
    options: &CrashOptions,
    world: World,
    (first, chunk): (usize, &[Moment]),
    facts: &Arc<Vec<S::Fact>>,
    (tally, at): (&Mutex<Tally>, &Mutex<Where>),
) {
    let mut seen = BTreeSet::new();
    for (number, moment) in (first..).zip(chunk) {
        if options.only.is_some_and(|only| only.moment != number) {
            continue;
        }
        let name = format!("machine-{number}");
        let node = world.create_node(&name, &name);
        let counted = KindTally { moments: 1, ..KindTally::default() };
        let mut visit =
            Visit { subject, options, number, moment, facts, node, seen: &mut seen, counted, at };
        let broken = visit.states().await;
        let kinds = [(file_kind(subject.name(), &moment.point.path), visit.counted)].into();
        let mut tally = lock(tally);
        tally.add(Tally { kinds, ..Tally::default() });
        if let Some(what) = broken {
            let at = std::mem::take(&mut *lock(at));
            tally.broken.extend(at.broken(chunk, first, what));
        }
    }
}

/// Where the exploring is, also for whoever finds that it panicked.
#[derive(Default)]
struct Where {
    state: Option<StateName>,
    fates: Vec<String>,
}

impl Where {
    fn broken(self, chunk: &[Moment], first: usize, what: String) -> Option<BrokenState> {
        let state = self.state?;
        let point = &chunk.get(state.moment.checked_sub(first)?)?.point;
        let occasion = format!("{:?} at {:?}", point.occasion, point.at);
        let kind = file_kind(state.subject, &point.path);
        Some(BrokenState { state, kind, occasion, fates: self.fates, what })
    }
}

/// Starting from the states of one moment, on a machine of its own.
struct Visit<'a, S: Subject> {
    subject: &'a S,
    options: &'a CrashOptions,
    number: usize,
    moment: &'a Moment,
    facts: &'a Arc<Vec<S::Fact>>,
    node: SimNode,
    seen: &'a mut BTreeSet<(u64, usize, u64)>,
    counted: KindTally,
    at: &'a Mutex<Where>,
}

impl<S: Subject> Visit<'_, S> {
    /// Starts from one state after the other, up to the first that is broken: what is wrong with it.
    async fn states(&mut self) -> Option<String> {
        let point = &self.moment.point;
        let mut given = 0;
        for (number, state) in point.states(self.options.bound).enumerate() {
            let number = number as u64;
            given += 1;
            let only = self.options.only;
            if only.is_some_and(|only| only.state != number) {
                continue;
            }
            let name = StateName {
                subject: self.subject.name(),
                moment: self.number,
                state: number,
                again: None,
            };
            let fates = point.describe(&state);
            *lock(self.at) = Where { state: Some(name), fates: fates.clone() };
            let surviving = point.surviving(&state);
            let known = (surviving.sum(), self.moment.facts, self.moment.place);
            if !self.seen.insert(known) {
                self.counted.equal += 1;
                continue;
            }
            if only.is_none_or(|only| only.again.is_none()) {
                self.counted.states += 1;
                self.node.mount(&surviving);
                match self.start(false).await {
                    Ok(compared) => self.counted.compared += compared,
                    Err(what) => return Some(what),
                }
            }
            if number < self.options.again || only.is_some_and(|only| only.again.is_some()) {
                self.node.mount(&surviving);
                let points = match self.watched_start().await {
                    Ok(points) => points,
                    Err(what) => return Some(what),
                };
                for (second, point) in points.iter().enumerate() {
                    let name = StateName { again: Some((second, 0)), ..name };
                    let wrong = self.second(point, (name, &fates)).await;
                    if wrong.is_some() {
                        return wrong;
                    }
                }
            }
        }
        self.counted.left_out = point.possible().saturating_sub(given);
        None
    }

    /// The states of a moment of a start.
    async fn second(
        &mut self,
        point: &CrashPoint,
        (name, first_fates): (StateName, &[String]),
    ) -> Option<String> {
        let bound: CrashBound = self.options.again_bound;
        for (number, state) in point.states(bound).enumerate() {
            let again = name.again.map(|(moment, _)| (moment, number as u64));
            let wanted = self.options.only.and_then(|only| only.again);
            if wanted.is_some() && wanted != again {
                continue;
            }
            let surviving = point.surviving(&state);
            if !self.seen.insert((surviving.sum(), self.moment.facts, self.moment.place)) {
                continue;
            }
            let mut fates = first_fates.to_vec();
            fates.push(format!("then, at a sync of {} in the start:", point.path.display()));
            fates.extend(point.describe(&state));
            *lock(self.at) = Where { state: Some(StateName { again, ..name }), fates };
            self.counted.again += 1;
            self.node.mount(&surviving);
            match self.start(false).await {
                Ok(compared) => self.counted.compared += compared,
                Err(what) => return Some(what),
            }
        }
        None
    }

    async fn start(&self, watched: bool) -> Result<u64, String> {
        let node = &self.node;
        let runtime = node.runtime();
        let (facts, count) = (Arc::clone(self.facts), self.moment.facts);
        let started = Started { watched, node: node.clone() };
        let clock = runtime.clock.clone();
        let recover = self.subject.recover(runtime, self.moment.place, facts, count, started);
        let limited = async move {
            let ended = clock.timeout(START_LIMIT, recover).await;
            ended.unwrap_or_else(|_| Err("the start does not end".to_owned()))
        };
        let ended = node.spawn("start", limited).await;
        node.crash();
        ended.unwrap_or_else(|_| Err("the start was cut short".to_owned()))
    }

    /// Starts, and gives the moments of the start.
    async fn watched_start(&self) -> Result<Vec<CrashPoint>, String> {
        let node = &self.node;
        let points = Arc::new(Mutex::new(Vec::new()));
        let is_open = Arc::new(AtomicBool::new(true));
        let (into, open) = (Arc::clone(&points), Arc::clone(&is_open));
        node.watch_crash_points(move |point| {
            if open.load(Ordering::Relaxed) {
                lock(&into).push(point);
            }
        });
        let ended = self.start(true).await;
        is_open.store(false, Ordering::Relaxed);
        node.watch_no_crash_points();
        ended?;
        let points = std::mem::take(&mut *lock(&points));
        Ok(points)
    }
}
