//! When a member's timers fire. Told the time and a random number; safety never depends on either.

use std::time::Duration;

use super::{Effect, Event, Machine, Role};
use crate::domain::Instant;

/// Times of one member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimerSettings {
    /// A leader is heard at least this often.
    pub heartbeat: Duration,
    /// The shortest election time-out; the longest is twice this.
    pub election: Duration,
}

impl Default for TimerSettings {
    fn default() -> Self {
        Self { heartbeat: Duration::from_millis(100), election: Duration::from_millis(500) }
    }
}

/// The timers of one member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timers {
    settings: TimerSettings,
    silent_at: Option<Instant>,
    campaign_at: Instant,
    heartbeat_at: Instant,
    check_at: Instant,
    leads: bool,
}

impl Timers {
    /// Timers of a member that begins now. `draw` is any random number.
    pub fn new(settings: TimerSettings, now: Instant, draw: u64) -> Self {
        let mut timers = Self {
            settings,
            silent_at: None,
            campaign_at: now,
            heartbeat_at: now,
            check_at: now,
            leads: false,
        };
        timers.restart_election(now, draw);
        timers
    }

    /// Takes note of an effect. `draw` is a new random number.
    pub fn note(&mut self, effect: &Effect, now: Instant, draw: u64) {
        match effect {
            Effect::RestartElectionTimer => {
                self.leads = false;
                self.restart_election(now, draw);
            }
            Effect::StartLeaderTimers => {
                self.leads = true;
                self.heartbeat_at = now + self.settings.heartbeat;
                self.check_at = now + self.settings.election;
            }
            _ => {}
        }
    }

    fn restart_election(&mut self, now: Instant, draw: u64) {
        let spread = u64::try_from(self.settings.election.as_nanos()).unwrap_or(u64::MAX).max(1);
        self.silent_at = Some(now + self.settings.election);
        self.campaign_at = now + self.settings.election + Duration::from_nanos(draw % spread);
    }

    /// When to look again.
    pub fn next(&self) -> Instant {
        if self.leads {
            self.heartbeat_at.min(self.check_at)
        } else {
            self.silent_at.map_or(self.campaign_at, |at| at.min(self.campaign_at))
        }
    }

    /// The next event that is due, if one is.
    pub fn due(&mut self, now: Instant, machine: &Machine) -> Option<Event> {
        if self.leads && machine.role() == Role::Leader {
            if self.heartbeat_at <= now {
                self.heartbeat_at = now + self.settings.heartbeat;
                return Some(Event::Heartbeat);
            }
            if self.check_at <= now {
                self.check_at = now + self.settings.election;
                return Some(Event::QuorumCheck);
            }
            return None;
        }
        if self.silent_at.is_some_and(|at| at <= now) {
            self.silent_at = None;
            return Some(Event::LeaderSilent);
        }
        // The machine begins the time-out anew with a draw of its own.
        (self.campaign_at <= now).then_some(Event::ElectionTimeout)
    }
}
