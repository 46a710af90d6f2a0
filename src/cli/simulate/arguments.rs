//! Numbers and times as people write them on the command line, with complaints that say what is expected.

use std::time::Duration;

/// Processes at a time that were asked for, or one per core.
pub(super) fn jobs(asked: Option<usize>) -> usize {
    asked.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from)).max(1)
}

/// A number of processes.
pub(super) fn parse_jobs(text: &str) -> Result<usize, String> {
    let jobs = text.parse().ok().filter(|jobs| *jobs > 0);
    jobs.ok_or_else(|| "say how many processes at a time, 1 or more".to_owned())
}

/// How long.
pub(super) fn parse_time(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text)
        .map_err(|_| "say a number and its unit, for example 90s, 10m or 2h".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_expected_is_said() {
        assert_eq!(parse_jobs("3"), Ok(3));
        for bad in ["0", "-1", "x", ""] {
            assert!(parse_jobs(bad).unwrap_err().contains("1 or more"), "{bad}");
        }
        assert_eq!(parse_time("10m"), Ok(Duration::from_secs(600)));
        for bad in ["banana", "", "10"] {
            assert!(parse_time(bad).unwrap_err().contains("90s"), "{bad}");
        }
    }
}
