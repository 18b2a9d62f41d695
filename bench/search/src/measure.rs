//! Clocks and memory of this process.

use rustix::time::{ClockId, clock_gettime};

/// Seconds of CPU that all threads of this process have used.
pub fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Runs something and says how many seconds of CPU it took.
pub fn cpu<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let before = cpu_seconds();
    let done = work();
    (done, cpu_seconds() - before)
}

/// Bytes of memory that this process has.
pub fn resident() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse::<f64>().unwrap_or_default() * 1024.0
}

/// The middle one.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}
