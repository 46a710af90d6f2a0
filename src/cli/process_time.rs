//! Processor time of a process as Linux tells it in `/proc/PID/stat` (proc(5)).

/// Units of its times a second; fixed by Linux's interface (`USER_HZ`).
pub(super) const TICKS_PER_SECOND: u64 = 100;

/// User and system time, in ticks: fields 14 and 15, counted from behind the name, which may hold anything.
pub(super) fn process_ticks(stat: &str) -> Option<u64> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_is_read_behind_any_name() {
        let stat = "77 (a ) b) S 1 77 77 0 -1 4194560 900 0 0 0 120 34 0 0 20 0 3 0 100 1 2";
        assert_eq!(process_ticks(stat), Some(154));
        assert_eq!(process_ticks("77"), None);
    }
}
