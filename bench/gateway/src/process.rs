//! Programs under test: started, waited for, ended with all their children, and what they spent.

use std::{
    collections::HashMap,
    fs::{self, File},
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use crate::{
    Failed,
    client::{Client, Target},
};

/// A program that ends with this.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
}

/// Processor time in seconds and memory in MiB.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Spent {
    pub(crate) seconds: f64,
    pub(crate) memory: f64,
}

impl Running {
    /// Starts a program in a folder, with this folder as its home and its words in a file there.
    pub(crate) fn start(name: &str, command: &[String], home: &Path) -> Result<Self, Failed> {
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

    /// Waits for the first list with so many tools; how long that took since its start.
    pub(crate) async fn ready(&mut self, target: &Target, tools: usize, since: Instant) -> Result<Duration, Failed> {
        let mut why = "nobody answered".to_owned();
        while since.elapsed() < Duration::from_secs(120) {
            if let Some(status) = self.child.try_wait()? {
                return Err(format!("it ended: {status}").into());
            }
            match listed(target).await {
                Ok(count) if count >= tools => return Ok(since.elapsed()),
                Ok(count) => why = format!("{count} tools"),
                Err(error) => why = error.to_string(),
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        Err(format!("it was not ready in two minutes: {why}").into())
    }
}

async fn listed(target: &Target) -> Result<usize, Failed> {
    Ok(Client::open(target).await?.list().await?.0)
}

impl Drop for Running {
    fn drop(&mut self) {
        let all = family(self.child.id());
        // Politely first: what it started ends with it.
        signal("TERM", &all);
        let until = Instant::now() + Duration::from_secs(5);
        while Instant::now() < until && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(20));
        }
        signal("KILL", &all);
        let _ = self.child.wait();
    }
}

fn signal(name: &str, processes: &[u32]) {
    let alive = processes.iter().filter(|id| Path::new(&format!("/proc/{id}")).exists());
    let words: Vec<String> = alive.map(u32::to_string).collect();
    if !words.is_empty() {
        let _ = Command::new("kill").arg(format!("-{name}")).args(words).stderr(Stdio::null()).status();
    }
}

/// A process and everything it started.
fn family(process: u32) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(id) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        if let Some(parent) = fields(id).and_then(|fields| fields.get(1)?.parse().ok()) {
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

/// What a process and everything it started have spent so far.
pub(crate) fn spent(process: u32) -> Spent {
    let mut sum = Spent::default();
    for fields in family(process).into_iter().filter_map(fields) {
        let number = |at: usize| fields.get(at).and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
        // Ticks of a hundredth of a second, and pages of 4 KiB.
        sum.seconds += (number(11) + number(12)) / 100.0;
        sum.memory += number(21) * 4096.0 / f64::from(1 << 20);
    }
    sum
}

/// The fields of a process's state after its name.
fn fields(process: u32) -> Option<Vec<String>> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    Some(text.rsplit_once(") ")?.1.split(' ').map(str::to_owned).collect())
}
