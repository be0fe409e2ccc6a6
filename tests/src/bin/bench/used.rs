//! What this process uses of the machine, as Linux reports it. On other systems every value is `None`.

/// Clock ticks a second, the unit of a process's time in `/proc`, on all of today's processors.
const TICKS_A_SECOND: f64 = 100.0;
/// Fields of `/proc/self/stat`, counted from the state, which is the first field after the program's name.
const USER_TICKS: usize = 11;
const SYSTEM_TICKS: usize = 12;

/// Resident memory now, in MiB.
pub(crate) fn memory_mib() -> Option<u64> {
    status("VmRSS:")
}

/// The highest resident memory since the process started, or since [`forget_peak`], in MiB.
pub(crate) fn peak_mib() -> Option<u64> {
    status("VmHWM:")
}

/// Resets the peak. Where Linux doesn't allow that, the peak stays as it is: too high, never too low.
pub(crate) fn forget_peak() {
    drop(std::fs::write("/proc/self/clear_refs", "5"));
}

/// Seconds of processor time used so far, by all threads. Other processes on the machine hardly change it.
pub(crate) fn processor_s() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |place: usize| fields.get(place)?.parse::<f64>().ok();
    Some((ticks(USER_TICKS)? + ticks(SYSTEM_TICKS)?) / TICKS_A_SECOND)
}

fn status(name: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib / 1_024)
}
