//! How much memory this process holds, as Linux tells it; elsewhere nothing is known.

/// Resident now, in KiB.
pub(crate) fn now_kib() -> Option<u64> {
    field("VmRSS:")
}

/// The most that was resident since the process began, or since [`forget_peak`], in KiB.
pub(crate) fn peak_kib() -> Option<u64> {
    field("VmHWM:")
}

/// Lets the peak begin anew. Where that isn't allowed, it stays what it was, which is more and never less.
pub(crate) fn forget_peak() {
    drop(std::fs::write("/proc/self/clear_refs", "5"));
}

/// KiB in whole MiB.
pub(crate) fn mib(kib: Option<u64>) -> Option<u64> {
    kib.map(|kib| kib / 1_024)
}

fn field(name: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}
