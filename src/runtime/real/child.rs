//! Child processes that run this same binary, and what can be done to them from outside.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal};
use tokio::sync::mpsc;

/// Lines of standard output kept for whoever reads them; later ones are dropped.
const LINES_MAX: usize = 64;

/// What a process can be told from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChildSignal {
    /// SIGTERM: stop in order.
    Stop,
    /// SIGKILL: be gone, without a word.
    Kill,
    /// SIGSTOP: stand still.
    Pause,
    /// SIGCONT: go on.
    Resume,
}

/// A child process; killed when dropped.
pub struct ChildProcess {
    child: Child,
    lines: mpsc::Receiver<String>,
    ended: Option<String>,
}

impl ChildProcess {
    /// Starts this binary with other arguments. Standard error goes to the end of `log`. Settings in variables
    /// `SEAWALL_…` are not handed down: they would be the same for every child. The child is not in our process
    /// group, so that a Ctrl-C reaches only us.
    pub fn start(arguments: &[String], log: &Path) -> std::io::Result<Self> {
        let log = std::fs::OpenOptions::new().create(true).append(true).open(log)?;
        let mut command = Command::new(std::env::current_exe()?);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("SEAWALL_") {
                command.env_remove(name);
            }
        }
        let mut child = command
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .process_group(0)
            .spawn()?;
        let (sender, lines) = mpsc::channel(LINES_MAX);
        if let Some(output) = child.stdout.take() {
            // Ends with the child's output, which must be read even when nobody wants it any more.
            std::thread::Builder::new().name("child output".to_owned()).spawn(move || {
                for line in BufReader::new(output).lines().map_while(Result::ok) {
                    let _ = sender.try_send(line);
                }
            })?;
        }
        Ok(Self { child, lines, ended: None })
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The next line of its standard output; `None` once that is closed.
    pub async fn line(&mut self) -> Option<String> {
        self.lines.recv().await
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Option<&str> {
        if self.ended.is_none()
            && let Ok(Some(status)) = self.child.try_wait()
        {
            self.ended = Some(status.to_string());
        }
        self.ended.as_deref()
    }

    /// Sends a signal; false if the process has ended. It cannot reach a stranger: until its end was seen here
    /// the process id is not given to another.
    pub fn signal(&mut self, signal: ChildSignal) -> bool {
        if self.ended().is_some() {
            return false;
        }
        let signal = match signal {
            ChildSignal::Stop => Signal::TERM,
            ChildSignal::Kill => Signal::KILL,
            ChildSignal::Pause => Signal::STOP,
            ChildSignal::Resume => Signal::CONT,
        };
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        pid.is_some_and(|pid| rustix::process::kill_process(pid, signal).is_ok())
    }

    /// kill -9, and waits until it is gone: then its ports and its folder are free.
    pub fn kill(&mut self) {
        if self.ended().is_none() {
            // Already dead is as good.
            let _ = self.child.kill();
            self.ended = self.child.wait().ok().map(|status| status.to_string());
        }
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Asks the operating system to kill this process when `parent` dies, whatever it dies of. False if it is dead
/// already. It counts as dead when the thread that started us ends.
#[cfg(target_os = "linux")]
pub fn end_with_parent(parent: u32) -> std::io::Result<bool> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    let now = rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get());
    Ok(now == i32::try_from(parent).ok())
}

/// Nothing of the kind is offered here: children of a parent that was killed must be ended by hand.
#[cfg(not(target_os = "linux"))]
pub fn end_with_parent(_parent: u32) -> std::io::Result<bool> {
    Ok(true)
}

/// The process that runs this code.
pub fn own_process() -> u32 {
    std::process::id()
}

/// An address of this machine on which nothing listens now.
pub fn free_port(host: &str, wanted: Option<u16>) -> std::io::Result<u16> {
    let listener = std::net::TcpListener::bind((host, wanted.unwrap_or(0)))?;
    Ok(listener.local_addr()?.port())
}
