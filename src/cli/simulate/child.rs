//! One seed: in this process, or in a child whose death is itself a finding.

use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::runtime::sim::{Recorder, Recording, RecordingLimits, RunReport};
use crate::simulator::checkers::Violation;
use crate::simulator::report::Report;
use crate::simulator::run_recorded;
use crate::simulator::trial::Trial;

/// A seed that runs longer than this in real time is hung.
const REAL_TIME_LIMIT: Duration = Duration::from_secs(180);

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
    let (report, run) = run_in_world(trial, trace, Recorder::default())?;
    for decision in run.decisions.iter().filter(|_| trace) {
        eprintln!("{:>12.3} ms  {:?}", decision.at as f64 / 1e6, decision.key);
    }
    Ok(report)
}

/// Does the trial in this process and records it.
pub fn record_here(trial: Trial) -> Result<(Report, Recording), String> {
    let recorder = Recorder::within(RecordingLimits::default());
    let (report, run) = run_in_world(trial, false, recorder)?;
    Ok((report, run.recording))
}

fn run_in_world(
    trial: Trial,
    trace: bool,
    recorder: Recorder,
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
        .spawn(move || (run_recorded(&trial, trace, recorder), thread_cpu_ms()))
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

/// Does the trial in a child process. A child that dies or hangs gives a report with that violation.
pub fn run_apart(trial: &Trial) -> Report {
    match try_run_apart(trial) {
        Ok(report) => report,
        Err(detail) => Report::of_failure(
            trial.clone(),
            Violation { promise: "panic".to_owned(), checker: "process".to_owned(), detail },
        ),
    }
}

fn try_run_apart(trial: &Trial) -> Result<Report, String> {
    let binary = std::env::current_exe().map_err(|error| format!("no own binary: {error}"))?;
    let mut command = Command::new(binary);
    // Logs of a campaign's child are read by nobody, but every span and event of a filter that lets any
    // through is paid for. `sim replay` shows them.
    command.args(["--log", "off", "sim", "one"]);
    command.args(trial.arguments());
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
    let started = Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if started.elapsed() > REAL_TIME_LIMIT => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("not finished after {REAL_TIME_LIMIT:?} of real time"));
            }
            Ok(None) => std::thread::sleep(Duration::from_millis(2)),
            Err(error) => return Err(format!("cannot wait for the child: {error}")),
        }
    };
    let output = reader.join().unwrap_or_default();
    let errors = error_reader.join().unwrap_or_default();
    let line = output.lines().last().unwrap_or_default();
    serde_json::from_str(line).map_err(|_| {
        let from = errors.len().saturating_sub(STDERR_BYTES_MAX);
        let from = (from..errors.len()).find(|at| errors.is_char_boundary(*at)).unwrap_or(0);
        format!("the run died ({status}):\n{}", &errors[from..])
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
