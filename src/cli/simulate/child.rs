//! One seed: in this process, or in a child whose death is itself a finding.

use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use super::stop::Stop;
use crate::cli::process_time::{TICKS_PER_SECOND, process_ticks};
use crate::invariant::mutants::VARIABLE;
use crate::runtime::sim::{Recorder, Recording, RecordingLimits, RunReport};
use crate::simulator::checkers::Violation;
use crate::simulator::report::Report;
use crate::simulator::trial::Trial;
use crate::simulator::{self, run_recorded, run_watched};

/// A seed that has had so much processor time is hung, and so is one that in so much real time had next to none: on a busy machine a
/// run may take long, and there is nothing wrong with it.
const TIME_LIMIT: Duration = Duration::from_secs(180);
/// How long is waited before a child is looked at again.
const LOOK_PAUSE: Duration = Duration::from_millis(2);
/// Next to none.
const STANDSTILL: Duration = Duration::from_millis(500);

const SIGINT: i32 = 2;
const SIGTERM: i32 = 15;

/// How long a child that died of a signal waits for the campaign to get it, too.
const SIGNAL_WAIT: Duration = Duration::from_millis(500);

/// Stack of the thread a world runs on.
const WORLD_STACK_BYTES: usize = 16 * 1024 * 1024;

/// Bytes of a dead child's standard error shown.
const STDERR_BYTES_MAX: usize = 3000;

/// What the C library's allocator is told in a child, where it has no word of its own: a run is one thread, grows, and ends
/// soon. One heap that grows in large steps, gives nothing back, and keeps many small pieces at hand.
const ALLOCATOR_TUNING: (&str, &str) = (
    "GLIBC_TUNABLES",
    "glibc.malloc.arena_max=1:glibc.malloc.top_pad=67108864:glibc.malloc.trim_threshold=4294967296:\
     glibc.malloc.mmap_threshold=33554432:glibc.malloc.tcache_count=2000",
);

/// Does the trial in this process.
pub fn run_here(trial: Trial, trace: bool) -> Result<Report, String> {
    let (report, run) = run_in_world(trial, move |trial| simulator::run(trial, trace))?;
    for decision in run.decisions.iter().filter(|_| trace) {
        eprintln!("{:>12.3} ms  {:?}", decision.at as f64 / 1e6, decision.key);
    }
    Ok(report)
}

/// Does the trial in this process and records it.
pub fn record_here(trial: Trial) -> Result<(Report, Recording), String> {
    let recorder = Recorder::within(RecordingLimits::default());
    let (report, run) = run_in_world(trial, |trial| run_recorded(trial, false, recorder))?;
    Ok((report, run.recording))
}

/// The same, but what nodes log is left to whoever shows it.
pub fn watch_here(trial: Trial) -> Result<(Report, Recording), String> {
    let recorder = Recorder::within(RecordingLimits::default());
    let (report, run) = run_in_world(trial, |trial| run_watched(trial, recorder))?;
    Ok((report, run.recording))
}

fn run_in_world(
    trial: Trial,
    run: impl FnOnce(&Trial) -> (Report, RunReport<()>) + Send + 'static,
) -> Result<(Report, RunReport<()>), String> {
    match trial.mutant.as_deref() {
        None => {}
        #[cfg(feature = "mutants")]
        Some(name) => crate::invariant::mutants::activate(name),
        #[cfg(not(feature = "mutants"))]
        Some(_) => return Err("this binary was built without the feature `mutants`".to_owned()),
    }
    let started = Instant::now();
    // On a thread of its own: madsim seeds the standard library's hash keys, which this thread may have
    // drawn already.
    let world = std::thread::Builder::new()
        .name("world".to_owned())
        .stack_size(WORLD_STACK_BYTES)
        .spawn(move || (run(&trial), thread_cpu_ms()))
        .map_err(|error| format!("no thread for the world: {error}"))?;
    let ((mut report, run), cpu_ms) = world.join().map_err(|_| "the run panicked".to_owned())?;
    report.real_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    report.cpu_ms = cpu_ms.unwrap_or(report.real_ms);
    Ok((report, run))
}

/// Processor time this thread has had, where the system tells: unlike real time it does not grow when others
/// use the machine too.
pub(super) fn thread_cpu_ms() -> Option<u64> {
    let figures = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanos: u64 = figures.split_whitespace().next()?.parse().ok()?;
    Some(nanos / 1_000_000).filter(|ms| *ms > 0)
}

/// Processor time a process has had, where the system tells.
fn process_cpu(process: u32) -> Option<Duration> {
    process_ticks(&std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?)
        .map(|ticks| Duration::from_millis(ticks * 1000 / TICKS_PER_SECOND))
}

/// Does the trial in a child process. A child that dies or hangs gives a report with that violation.
pub fn run_apart(trial: &Trial) -> Report {
    let never = Stop::default();
    try_run_apart(trial, &never).unwrap_or_else(|end| end.report(trial))
}

/// The same, unless there is no time for it any more: the child is killed, and there is none.
pub(super) fn run_apart_until(trial: &Trial, stop: &Stop) -> Option<Report> {
    match try_run_apart(trial, stop) {
        Err(End::Stopped) => None,
        ended => Some(ended.unwrap_or_else(|end| end.report(trial))),
    }
}

/// How a child ended that gave no report.
enum End {
    /// There was no time for it any more.
    Stopped,
    /// By itself.
    Died(String),
}

impl End {
    fn report(self, trial: &Trial) -> Report {
        let detail = match self {
            Self::Stopped => "stopped".to_owned(),
            Self::Died(detail) => detail,
        };
        let (promise, checker) = ("panic".to_owned(), "process".to_owned());
        Report::of_failure(trial.clone(), Violation { promise, checker, detail })
    }
}

impl From<String> for End {
    fn from(detail: String) -> Self {
        Self::Died(detail)
    }
}

/// A terminal sends its signal to the children as well: whether this one died of that.
fn is_stopped(status: ExitStatus, stop: &Stop) -> bool {
    if !matches!(status.signal(), Some(SIGINT | SIGTERM)) {
        return stop.is_asked();
    }
    // The child may have been quicker than whoever waits for signals here.
    let died = Instant::now();
    while !stop.is_asked() && died.elapsed() < SIGNAL_WAIT {
        std::thread::sleep(Duration::from_millis(2));
    }
    stop.is_asked()
}

fn try_run_apart(trial: &Trial, stop: &Stop) -> Result<Report, End> {
    let binary = std::env::current_exe().map_err(|error| format!("no own binary: {error}"))?;
    let mut command = Command::new(binary);
    // Logs of a campaign's child are read by nobody, but every span and event of a filter that lets any
    // through is paid for. `sim replay` shows them.
    command.args(["--log", "off", "sim", "one"]);
    command.args(trial.arguments());
    // The trial says which bug is planted, if any.
    command.env_remove(VARIABLE);
    let (tuning, tuned) = ALLOCATOR_TUNING;
    if std::env::var_os(tuning).is_none() {
        command.env(tuning, tuned);
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| format!("cannot start a child: {error}"))?;
    let mut output = child.stdout.take();
    let mut errors = child.stderr.take();
    let reader = std::thread::spawn(move || read_all(&mut output));
    let error_reader = std::thread::spawn(move || read_all(&mut errors));
    // Counted, not measured: a campaign that was stopped for a while has children that were, too.
    let (mut waited, mut had) = (Duration::ZERO, Duration::ZERO);
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if waited > TIME_LIMIT => {
                let has = process_cpu(child.id());
                let goes_on = |has: Duration| has < TIME_LIMIT && has >= had + STANDSTILL;
                if !has.is_some_and(goes_on) {
                    let _ = child.kill();
                    let _ = child.wait();
                    let has = has.unwrap_or_default();
                    return Err(End::Died(format!("hung, after {has:?} of processor time")));
                }
                (waited, had) = (Duration::ZERO, has.unwrap_or_default());
            }
            Ok(None) if stop.is_asked() => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(End::Stopped);
            }
            Ok(None) => {
                std::thread::sleep(LOOK_PAUSE);
                waited += LOOK_PAUSE;
            }
            Err(error) => return Err(End::Died(format!("cannot wait for the child: {error}"))),
        }
    };
    let output = reader.join().unwrap_or_default();
    let errors = error_reader.join().unwrap_or_default();
    let line = output.lines().last().unwrap_or_default();
    serde_json::from_str(line).map_err(|error| {
        if is_stopped(status, stop) {
            return End::Stopped;
        }
        if !line.is_empty() && !error.is_eof() {
            return End::Died(format!("the run's report cannot be read: {error}"));
        }
        let from = errors.len().saturating_sub(STDERR_BYTES_MAX);
        let from = (from..errors.len()).find(|at| errors.is_char_boundary(*at)).unwrap_or(0);
        End::Died(format!("the run died ({status}):\n{}", &errors[from..]))
    })
}

fn read_all(stream: &mut Option<impl Read>) -> String {
    let mut bytes = Vec::new();
    if let Some(stream) = stream {
        // What could be read before an error is still worth showing.
        let _ = stream.read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_processor_time() {
        assert!(process_cpu(std::process::id()).is_some());
    }
}
