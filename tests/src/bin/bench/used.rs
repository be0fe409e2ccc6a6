//! What this process uses of the machine, as Linux tells it; elsewhere nothing is known.

/// Clock ticks a second, in which Linux counts a process's time wherever it still matters.
const TICKS_A_SECOND: f64 = 100.0;
/// Of `/proc/self/stat`, counted from the state, which is the first field after the program's name.
const USER_TICKS: usize = 11;
const SYSTEM_TICKS: usize = 12;

/// Memory resident now, in MiB.
pub(crate) fn memory_mib() -> Option<u64> {
    status("VmRSS:")
}

/// The most that was resident since the process began, or since [`forget_peak`], in MiB.
pub(crate) fn peak_mib() -> Option<u64> {
    status("VmHWM:")
}

/// Lets the peak begin anew. Where that isn't allowed, it stays what it was, which is more and never less.
pub(crate) fn forget_peak() {
    drop(std::fs::write("/proc/self/clear_refs", "5"));
}

/// Seconds of processor time used so far, by all threads. Whatever else runs on the machine hardly changes it.
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
