//! How far a campaign is, told now and then where no bar is drawn: the log of a machine that builds.

use std::time::{Duration, Instant};

/// Real time between two lines.
const INTERVAL: Duration = Duration::from_secs(30);

/// What was told last, and when.
pub(super) struct Pace {
    began: Instant,
    told: Instant,
    /// Runs of this part of the campaign.
    ran: u64,
}

impl Pace {
    pub(super) const fn new(now: Instant) -> Self {
        Self { began: now, told: now, ran: 0 }
    }

    /// A seed was added to the sums: run, or kept from a former part of the campaign. A line if it is time for one.
    pub(super) fn add(
        &mut self,
        now: Instant,
        is_new: bool,
        (done, failed): (usize, u64),
        of: Option<u64>,
    ) -> Option<String> {
        self.ran += u64::from(is_new);
        if now.duration_since(self.told) < INTERVAL {
            return None;
        }
        self.told = now;
        let minutes = now.duration_since(self.began).as_secs_f64() / 60.0;
        let rate = self.ran as f64 / minutes;
        let of = of.map(|all| format!(" of {all}")).unwrap_or_default();
        Some(format!("{done}{of} seeds, {failed} failed, {rate:.0} seeds a minute"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_comes_every_half_minute() {
        let began = Instant::now();
        let mut pace = Pace::new(began);
        let mut told = Vec::new();
        for second in 0..70 {
            let (now, done) = (began + Duration::from_secs(second), second as usize + 1);
            told.extend(pace.add(now, second >= 10, (done, 1), Some(500)));
        }
        assert_eq!(
            told,
            [
                "31 of 500 seeds, 1 failed, 42 seeds a minute",
                "61 of 500 seeds, 1 failed, 51 seeds a minute"
            ]
        );
    }
}
