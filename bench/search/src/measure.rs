//! Clocks and memory of this process.

use rustix::time::{ClockId, clock_gettime};

/// CPU time of all threads of this process, in seconds.
pub fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Runs a closure and returns its CPU time in seconds.
pub fn cpu<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let before = cpu_seconds();
    let output = work();
    (output, cpu_seconds() - before)
}

/// Resident memory of this process in bytes.
pub fn resident_bytes() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse::<f64>().unwrap_or_default() * 1024.0
}

/// The (upper) median.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}
