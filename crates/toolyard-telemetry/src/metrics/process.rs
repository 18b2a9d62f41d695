//! The processor time, memory and files of this process, as Linux reports them. Other systems report nothing.

use std::time::Duration;

/// Ticks per second in `/proc`: always 100 on Linux, whatever the kernel's own rate.
const TICKS_PER_SECOND: f64 = 100.0;
const BYTES_PER_KIBIBYTE: u64 = 1_024;

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct ProcessUsage {
    pub(super) cpu_seconds: Option<f64>,
    pub(super) resident_bytes: Option<u64>,
    pub(super) virtual_bytes: Option<u64>,
    pub(super) threads: Option<u64>,
    pub(super) open_files: Option<u64>,
    pub(super) max_open_files: Option<u64>,
    /// Since 1970.
    pub(super) started_at: Option<Duration>,
}

/// Reads the usage of this process.
pub(super) fn usage() -> ProcessUsage {
    let read = |name: &str| std::fs::read_to_string(format!("/proc/{name}")).unwrap_or_default();
    let usage = parse(&read("self/stat"), &read("self/status"), &read("self/limits"), &read("stat"));
    let open_files = std::fs::read_dir("/proc/self/fd").ok().map(|files| files.count() as u64);
    // One of them is the folder that is being read.
    ProcessUsage { open_files: open_files.map(|files| files.saturating_sub(1)), ..usage }
}

fn parse(stat: &str, status: &str, limits: &str, system: &str) -> ProcessUsage {
    // The name of the program is in parentheses and may have spaces: the fields are counted from behind it, from 3.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let field = |number: usize| fields.get(number - 3).and_then(|field| field.parse::<f64>().ok());
    let kibibytes = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        Some(line.split_whitespace().next()?.parse::<u64>().ok()? * BYTES_PER_KIBIBYTE)
    };
    let threads = status.lines().find_map(|line| line.strip_prefix("Threads:"));
    let max_open_files = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
    let booted = system.lines().find_map(|line| line.strip_prefix("btime ")?.trim().parse::<f64>().ok());
    let started_at = booted.zip(field(22)).map(|(booted, ticks)| booted + ticks / TICKS_PER_SECOND);
    ProcessUsage {
        cpu_seconds: field(14).zip(field(15)).map(|(user, system)| (user + system) / TICKS_PER_SECOND),
        resident_bytes: kibibytes("VmRSS:"),
        virtual_bytes: kibibytes("VmSize:"),
        threads: threads.and_then(|threads| threads.trim().parse().ok()),
        open_files: None,
        max_open_files: max_open_files.and_then(|line| line.split_whitespace().next()?.parse().ok()),
        started_at: started_at.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_name_with_parentheses_and_spaces_is_skipped() {
        let stat = "42 (a) b (c) S 1 42 42 0 -1 4194304 100 0 0 0 250 50 0 0 20 0 7 0 1000 123 45";
        let status = "Name:\ta\nVmSize:\t  2048 kB\nVmRSS:\t  1024 kB\nThreads:\t7\n";
        let limits =
            "Limit  Soft Limit  Hard Limit  Units\nMax open files            1024      4096      files\n";
        let usage = parse(stat, status, limits, "cpu 1\nbtime 1700000000\n");
        assert_eq!(usage.cpu_seconds, Some(3.0));
        assert_eq!(usage.started_at, Some(Duration::from_secs(1_700_000_010)));
        assert_eq!((usage.resident_bytes, usage.virtual_bytes), (Some(1 << 20), Some(2 << 20)));
        assert_eq!((usage.threads, usage.max_open_files), (Some(7), Some(1024)));
        assert_eq!(parse("", "", "", ""), ProcessUsage::default(), "another system");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_uses_memory_and_files() {
        let usage = usage();
        assert!(usage.resident_bytes.is_some_and(|bytes| bytes > 1 << 20), "{usage:?}");
        assert!(usage.open_files.is_some_and(|files| files >= 3), "{usage:?}");
    }
}
