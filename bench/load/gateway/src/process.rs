//! Programs under test: starts them, waits for them, ends them with all their children, and reads the resources they used.

use std::{
    collections::HashMap,
    fs::{self, File},
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use crate::{
    BenchError,
    client::{Client, Target},
};

/// A started program; dropping this ends it and its children.
#[derive(Debug)]
pub(crate) struct RunningProgram {
    child: Child,
}

/// CPU time and memory of a process and its children.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ResourceUsage {
    pub(crate) cpu_seconds: f64,
    pub(crate) memory_mib: f64,
}

impl RunningProgram {
    /// Starts a program in a folder, which is also its home. Its output goes into `NAME.log` there.
    pub(crate) fn start(name: &str, command: &[String], home: &Path) -> Result<Self, BenchError> {
        let (program, arguments) = command.split_first().ok_or("no program")?;
        let log = File::create(home.join(format!("{name}.log")))?;
        let child = Command::new(program)
            .args(arguments)
            .current_dir(home)
            .env("HOME", home)
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("XDG_DATA_HOME")
            .env_remove("XDG_CACHE_HOME")
            .env_remove("XDG_STATE_HOME")
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .map_err(|error| format!("{program} cannot be started: {error}"))?;
        Ok(Self { child })
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until the server lists at least this many tools. Returns the time since `since`.
    pub(crate) async fn wait_until_ready(
        &mut self,
        target: &Target,
        tools: usize,
        since: Instant,
    ) -> Result<Duration, BenchError> {
        let mut last_problem = "no response".to_owned();
        while since.elapsed() < Duration::from_secs(120) {
            if let Some(status) = self.child.try_wait()? {
                return Err(format!("the program ended: {status}").into());
            }
            match count_tools(target).await {
                Ok(count) if count >= tools => return Ok(since.elapsed()),
                Ok(count) => last_problem = format!("{count} tools"),
                Err(error) => last_problem = error.to_string(),
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        Err(format!("not ready within two minutes: {last_problem}").into())
    }
}

async fn count_tools(target: &Target) -> Result<usize, BenchError> {
    Ok(Client::open(target).await?.list().await?.0)
}

impl Drop for RunningProgram {
    fn drop(&mut self) {
        let all = process_tree(self.child.id());
        // SIGTERM first, so that the program can end its children itself.
        signal("TERM", &all);
        let deadline = Instant::now() + Duration::from_secs(5);
        while Instant::now() < deadline && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(20));
        }
        signal("KILL", &all);
        let _ = self.child.wait();
    }
}

fn signal(name: &str, processes: &[u32]) {
    let alive = processes.iter().filter(|id| Path::new(&format!("/proc/{id}")).exists());
    let ids: Vec<String> = alive.map(u32::to_string).collect();
    if !ids.is_empty() {
        let _ = Command::new("kill").arg(format!("-{name}")).args(ids).stderr(Stdio::null()).status();
    }
}

/// A process and all its descendants.
fn process_tree(process: u32) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(id) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        if let Some(parent) = stat_fields(id).and_then(|fields| fields.get(1)?.parse().ok()) {
            children.entry(parent).or_default().push(id);
        }
    }
    let (mut all, mut left) = (Vec::new(), vec![process]);
    while let Some(id) = left.pop() {
        all.push(id);
        left.extend(children.get(&id).into_iter().flatten());
    }
    all
}

/// The resources that a process and all its descendants have used so far.
pub(crate) fn resource_usage(process: u32) -> ResourceUsage {
    let mut sum = ResourceUsage::default();
    for fields in process_tree(process).into_iter().filter_map(stat_fields) {
        let number = |at: usize| fields.get(at).and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
        // utime and stime in ticks of 10 ms, rss in pages of 4 KiB.
        sum.cpu_seconds += (number(11) + number(12)) / 100.0;
        sum.memory_mib += number(21) * 4096.0 / f64::from(1 << 20);
    }
    sum
}

/// The fields of `/proc/PID/stat` after the name.
fn stat_fields(process: u32) -> Option<Vec<String>> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    Some(text.rsplit_once(") ")?.1.split(' ').map(str::to_owned).collect())
}
