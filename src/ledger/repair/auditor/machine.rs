//! When to look, and which bookies count as lost. Time is this node's monotonic clock: a step of the wall
//! clock neither shortens nor stretches a grace time.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::{BookieId, Instant};
use crate::ledger::repair::{FlawKind, RepairConfig, Standing};
use crate::reached;

/// What is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditWork {
    /// Compare all ledgers with the list of bookies.
    Scan,
    /// Read what bookies must hold.
    Check,
}

/// See the module.
#[derive(Debug)]
pub struct AuditMachine {
    config: RepairConfig,
    /// Bookies that ledgers name, as of the last scan.
    named: BTreeSet<BookieId>,
    missing: BTreeMap<BookieId, Instant>,
    flawed: BTreeMap<BookieId, FlawKind>,
    scan_at: Instant,
    check_at: Instant,
}

impl AuditMachine {
    /// An auditor that knows nothing yet: whoever is missing now has been so only since now.
    pub fn new(config: RepairConfig, now: Instant) -> Self {
        Self {
            check_at: now + config.check_interval,
            config,
            named: BTreeSet::new(),
            missing: BTreeMap::new(),
            flawed: BTreeMap::new(),
            scan_at: now,
        }
    }

    /// Looks at the list of bookies. A bookie that becomes lost, or is asked to leave, makes a scan due.
    pub fn observe(&mut self, standing: impl Fn(BookieId) -> Standing, now: Instant) {
        let mut flawed = BTreeMap::new();
        for bookie in self.named.iter().copied() {
            let standing = standing(bookie);
            if standing != Standing::Missing && self.missing.remove(&bookie).is_some() {
                reached!("auditor: a missing bookie came back in time");
            }
            match standing {
                Standing::Serving => {}
                Standing::Draining => _ = flawed.insert(bookie, FlawKind::Draining),
                Standing::Missing => {
                    let since = *self.missing.entry(bookie).or_insert(now);
                    if now.since(since) >= self.config.lost_bookie_grace {
                        flawed.insert(bookie, FlawKind::Lost);
                    }
                }
            }
        }
        if flawed.keys().any(|bookie| !self.flawed.contains_key(bookie)) {
            self.scan_at = now;
        }
        self.flawed = flawed;
    }

    /// What is due now.
    pub fn due(&self, now: Instant) -> Option<AuditWork> {
        if self.scan_at <= now {
            Some(AuditWork::Scan)
        } else if self.check_at <= now {
            Some(AuditWork::Check)
        } else {
            None
        }
    }

    /// What is wrong with a bookie.
    pub fn flaw(&self, bookie: BookieId) -> Option<FlawKind> {
        self.flawed.get(&bookie).copied()
    }

    /// A scan is over: the bookies ledgers name, or `None` if it could not be completed and nothing is
    /// known.
    pub fn scanned(&mut self, named: Option<BTreeSet<BookieId>>, now: Instant) {
        if let Some(named) = named {
            self.missing.retain(|bookie, _| named.contains(bookie));
            self.named = named;
        }
        self.scan_at = now + self.config.audit_interval;
    }

    /// A check is over.
    pub fn checked(&mut self, now: Instant) {
        self.check_at = now + self.config.check_interval;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const A: BookieId = BookieId(1);

    #[test]
    fn a_bookie_is_lost_only_after_the_grace() {
        let config =
            RepairConfig { lost_bookie_grace: Duration::from_secs(10), ..RepairConfig::default() };
        let at = |seconds| Instant(0) + Duration::from_secs(seconds);
        let mut machine = AuditMachine::new(config, at(0));
        assert_eq!(machine.due(at(0)), Some(AuditWork::Scan));
        machine.scanned(Some([A].into()), at(0));
        machine.observe(|_| Standing::Missing, at(1));
        machine.observe(|_| Standing::Missing, at(10));
        assert_eq!((machine.flaw(A), machine.due(at(10))), (None, None));
        machine.observe(|_| Standing::Serving, at(10));
        machine.observe(|_| Standing::Missing, at(12));
        machine.observe(|_| Standing::Missing, at(21));
        assert_eq!(machine.flaw(A), None);
        machine.observe(|_| Standing::Missing, at(22));
        assert_eq!(machine.flaw(A), Some(FlawKind::Lost));
        assert_eq!(machine.due(at(22)), Some(AuditWork::Scan));
        machine.scanned(None, at(22));
        machine.observe(|_| Standing::Draining, at(23));
        assert_eq!(machine.flaw(A), Some(FlawKind::Draining));
    }
}
