//! One whole measurement: everything is started, measured in turn, and ended.

use std::{
    fmt::Write as _,
    path::PathBuf,
    time::{Duration, Instant},
};

use tempfile::TempDir;

use crate::{
    Failed,
    client::{Client, Target},
    load::{Load, Run},
    process::{Running, spent},
    subject::{Subject, nginx, peer, toolyard},
};

const UPSTREAM: &str = "127.0.0.1:7700";
const CLIENTS: [usize; 3] = [1, 16, 64];
/// Where things listen.
const NGINX: u16 = 7701;
const TOOLYARD: u16 = 7800;
const MEMORY: u16 = 7850;
const PEERS: u16 = 7900;
/// Servers that are configured when memory and start are looked at.
const MANY_SERVERS: usize = 20;

/// What is to be measured.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) toolyard: PathBuf,
    pub(crate) shared: Option<PathBuf>,
    pub(crate) load: Load,
    pub(crate) seconds: f64,
    pub(crate) rounds: usize,
    pub(crate) peers: Vec<(String, String)>,
    pub(crate) stdio_peers: Vec<(String, String)>,
    /// Whether calls are left out: lists, starts and memory take a minute.
    pub(crate) no_calls: bool,
}

/// Everything that was measured.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    pub(crate) ways: Vec<Way>,
    /// Processor time of one list in microseconds, in turn: Toolyard, and the same bytes from memory.
    pub(crate) lists: Vec<(f64, f64)>,
    pub(crate) list_bytes: usize,
    /// Milliseconds from the start of the program to its first list, with everything known.
    pub(crate) starts: Vec<f64>,
    /// MiB a while later.
    pub(crate) idle: Vec<f64>,
    pub(crate) processors: usize,
}

/// All subjects before one kind of upstream.
#[derive(Debug)]
pub(crate) struct Way {
    pub(crate) title: &'static str,
    pub(crate) names: Vec<String>,
    /// By number of clients, subject and round.
    pub(crate) runs: Vec<(usize, Vec<Vec<Run>>)>,
}

/// Where it happens.
#[derive(Debug)]
pub(crate) struct Stage {
    plan: Plan,
    home: TempDir,
    upstream: Running,
    /// The command of a server over stdio.
    server: Vec<String>,
}

impl Stage {
    pub(crate) fn open(mut plan: Plan) -> Result<Self, Failed> {
        plan.seconds = if plan.seconds > 0.0 { plan.seconds } else { 3.0 };
        plan.rounds = plan.rounds.max(1);
        let home = tempfile::tempdir()?;
        let program = match &plan.shared {
            Some(folder) => vec![folder.join("bench-upstream").display().to_string()],
            None => vec![std::env::current_exe()?.display().to_string(), "upstream".to_owned()],
        };
        let with = |words: &[&str]| -> Vec<String> {
            program.iter().cloned().chain(words.iter().map(|word| (*word).to_owned())).collect()
        };
        let upstream = Running::start("upstream", &with(&["--http", UPSTREAM]), home.path())?;
        Ok(Self { plan, home, upstream, server: with(&["--stdio"]) })
    }

    pub(crate) async fn figures(mut self) -> Result<Figures, Failed> {
        let direct = Target::new(&format!("http://{UPSTREAM}/mcp"), false);
        self.upstream.ready(&direct, 1, Instant::now()).await?;
        let mut figures = Figures {
            processors: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            ..Figures::default()
        };
        if !self.plan.no_calls {
            self.calls(&mut figures).await?;
        }
        self.lists(&mut figures).await?;
        self.starts(&mut figures).await?;
        Ok(figures)
    }

    async fn calls(&self, figures: &mut Figures) -> Result<(), Failed> {
        figures.ways.push(self.over_http("answers as events", "/mcp", false).await?);
        figures.ways.push(self.over_http("answers as JSON", "/json/mcp", false).await?);
        if self.plan.shared.is_some() {
            figures.ways.push(self.over_http("answers as JSON, clients of 2026-07-28", "/json/mcp", true).await?);
        }
        figures.ways.push(self.over_stdio().await?);
        Ok(())
    }

    async fn over_http(&self, title: &'static str, path: &str, modern: bool) -> Result<Way, Failed> {
        let (home, url) = (self.home.path(), format!("http://{UPSTREAM}{path}"));
        let at = |port: u16, path: &str| Target::new(&format!("http://127.0.0.1:{port}{path}"), modern);
        let mut subjects = vec![Subject::direct(Target::new(&url, modern), &self.upstream)];
        let command = nginx(NGINX, UPSTREAM, home)?;
        subjects.push(Subject::start("nginx", &command, at(NGINX, path), 1, home).await?);
        let servers = format!("[servers.bench]\nurl = \"{url}\"\n");
        let command = toolyard(&self.plan.toolyard, TOOLYARD, &servers, home)?;
        subjects.push(Subject::start("Toolyard", &command, at(TOOLYARD, "/mcp"), 1, home).await?);
        let mut peers = self.plan.peers.clone();
        if let Some(folder) = &self.plan.shared {
            let proxy = folder.join("bench-rmcp-proxy");
            let json = if path == "/mcp" { "" } else { "--json " };
            let command = format!("{} --listen 127.0.0.1:{{port}} {json}--pool --url {{upstream}}", proxy.display());
            peers.push(("rmcp proxy, pooled".to_owned(), command));
        }
        for (port, (name, command)) in (PEERS..).zip(peers) {
            let command = peer(&command, port, &url, &self.server);
            subjects.push(Subject::start(&name, &command, at(port, "/mcp"), 1, home).await?);
        }
        self.in_turn(title, &subjects).await
    }

    async fn over_stdio(&self) -> Result<Way, Failed> {
        let (home, url) = (self.home.path(), format!("http://{UPSTREAM}/mcp"));
        let at = |port: u16| Target::new(&format!("http://127.0.0.1:{port}/mcp"), false);
        let mut subjects = vec![Subject::direct(Target::new(&url, false), &self.upstream)];
        let (program, arguments) = self.server.split_first().ok_or("no server")?;
        let servers = format!("[servers.bench]\ncommand = {program:?}\nargs = {arguments:?}\n");
        let command = toolyard(&self.plan.toolyard, TOOLYARD, &servers, home)?;
        subjects.push(Subject::start("Toolyard", &command, at(TOOLYARD), 1, home).await?);
        let mut peers = self.plan.stdio_peers.clone();
        if let Some(folder) = &self.plan.shared {
            let proxy = folder.join("bench-rmcp-proxy");
            let command = format!("{} --listen 127.0.0.1:{{port}} --cmd", proxy.display());
            peers.push(("rmcp proxy".to_owned(), command));
        }
        for (port, (name, command)) in (PEERS..).zip(peers) {
            let mut command = peer(&command, port, &url, &self.server);
            if name == "rmcp proxy" {
                command.push(self.server.join(" "));
            }
            subjects.push(Subject::start(&name, &command, at(port), 1, home).await?);
        }
        self.in_turn("stdio upstream (direct: the HTTP one)", &subjects).await
    }

    /// All subjects in turn, again and again, so that whatever else the machine does meets all of them.
    async fn in_turn(&self, title: &'static str, subjects: &[Subject]) -> Result<Way, Failed> {
        let names = subjects.iter().map(|subject| subject.name.clone()).collect();
        let mut runs = Vec::new();
        for clients in CLIENTS {
            let mut by_subject = vec![Vec::new(); subjects.len()];
            for round in 0..self.plan.rounds {
                for (subject, runs) in subjects.iter().zip(&mut by_subject) {
                    let load = &self.plan.load;
                    let run = load.run(&subject.target, subject.process, clients, self.plan.seconds).await?;
                    eprintln!(
                        "{title}, {clients} clients, round {round}: {:20} {:7.0} calls/s, {:6.1} µs of processor, median {:6.0} µs, {} errors",
                        subject.name, run.calls_a_second, run.processor, run.median, run.errors
                    );
                    runs.push(run);
                }
            }
            runs.push((clients, by_subject));
        }
        Ok(Way { title, names, runs })
    }

    async fn lists(&self, figures: &mut Figures) -> Result<(), Failed> {
        let home = self.home.path();
        let servers = farm(10)?;
        let target = Target::new(&format!("http://127.0.0.1:{TOOLYARD}/mcp"), false);
        let command = toolyard(&self.plan.toolyard, TOOLYARD, &servers, home)?;
        let ours = Subject::start("Toolyard", &command, target, 1_000, home).await?;
        let (_, pages) = Client::open(&ours.target).await?.list().await?;
        figures.list_bytes = pages.iter().map(bytes::Bytes::len).sum();
        let own = std::env::current_exe()?.display().to_string();
        let address = format!("127.0.0.1:{MEMORY}");
        let mut command = vec![own, "memory".to_owned(), address.clone()];
        for (number, page) in pages.iter().enumerate() {
            let file = home.join(format!("list-{number}.json"));
            std::fs::write(&file, page)?;
            command.push(file.display().to_string());
        }
        let target = Target::new(&format!("http://{address}/mcp"), false);
        let memory = Subject::start("memory", &command, target, 1_000, home).await?;
        for round in 0..self.plan.rounds.max(3) {
            let pair = (self.list_cost(&ours).await?, self.list_cost(&memory).await?);
            eprintln!("list of {} bytes, round {round}: {:.0} µs, from memory {:.0} µs", figures.list_bytes, pair.0, pair.1);
            figures.lists.push(pair);
        }
        Ok(())
    }

    /// Processor time of one list in microseconds.
    async fn list_cost(&self, subject: &Subject) -> Result<f64, Failed> {
        let mut client = Client::open(&subject.target).await?;
        client.list().await?;
        let (before, began, mut count) = (spent(subject.process), Instant::now(), 0.0);
        while began.elapsed().as_secs_f64() < self.plan.seconds {
            client.list().await?;
            count += 1.0;
        }
        Ok((spent(subject.process).seconds - before.seconds) * 1e6 / count)
    }

    async fn starts(&self, figures: &mut Figures) -> Result<(), Failed> {
        let home = self.home.path();
        let mut servers = farm(10)?;
        let (program, arguments) = self.server.split_first().ok_or("no server")?;
        for number in 10..MANY_SERVERS {
            write!(servers, "[servers.s{number}]\ncommand = {program:?}\nargs = {arguments:?}\n")?;
        }
        let target = Target::new(&format!("http://127.0.0.1:{TOOLYARD}/mcp"), false);
        let command = toolyard(&self.plan.toolyard, TOOLYARD, &servers, home)?;
        // The first time everything is new.
        drop(Subject::start("Toolyard", &command, target.clone(), 1_001, home).await?);
        for round in 0..self.plan.rounds.max(3) {
            let since = Instant::now();
            let mut running = Running::start("Toolyard", &command, home)?;
            let took = running.ready(&target, 1_001, since).await?;
            tokio::time::sleep(Duration::from_secs(2)).await;
            let memory = spent(running.id()).memory;
            eprintln!("start with {MANY_SERVERS} servers, round {round}: {took:?}, {memory:.1} MiB");
            figures.starts.push(took.as_secs_f64() * 1e3);
            figures.idle.push(memory);
        }
        Ok(())
    }
}

impl Default for Load {
    fn default() -> Self {
        Self::Own
    }
}

/// Settings with so many servers of a hundred tools each.
fn farm(servers: usize) -> Result<String, Failed> {
    let mut text = String::new();
    for number in 0..servers {
        writeln!(text, "[servers.u{number}]\nurl = \"http://{UPSTREAM}/u{number}/mcp\"")?;
    }
    Ok(text)
}
