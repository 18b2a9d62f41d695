//! A whole benchmark: starts all subjects, measures them in turn, and ends them.

use std::{
    fmt::Write as _,
    path::PathBuf,
    time::{Duration, Instant},
};

use tempfile::TempDir;

use crate::{
    BenchError,
    client::{Client, Target},
    load::{Load, Run},
    process::{RunningProgram, resource_usage},
    subject::{Subject, nginx, peer, toolyard},
};

const UPSTREAM_ADDRESS: &str = "127.0.0.1:7700";
const CLIENT_COUNTS: [usize; 3] = [1, 16, 64];

const NGINX_PORT: u16 = 7701;
const TOOLYARD_PORT: u16 = 7800;
const MEMORY_PORT: u16 = 7850;
const FIRST_PEER_PORT: u16 = 7900;
/// Configured servers when memory and start time are measured.
const CONFIGURED_SERVERS: usize = 20;

/// Options of a benchmark.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) toolyard: PathBuf,
    pub(crate) shared: Option<PathBuf>,
    pub(crate) load: Load,
    pub(crate) seconds: f64,
    pub(crate) rounds: usize,
    pub(crate) peers: Vec<(String, String)>,
    pub(crate) stdio_peers: Vec<(String, String)>,
    /// Whether calls are not measured; lists, starts and memory alone take a minute.
    pub(crate) skips_calls: bool,
}

/// All measured figures.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    pub(crate) scenarios: Vec<Scenario>,
    /// CPU time of one list in microseconds, per round: of Toolyard, and of the same bytes from memory.
    pub(crate) list_cpu_us: Vec<(f64, f64)>,
    pub(crate) list_bytes: usize,
    /// Milliseconds from the start of the program to its first list, with all servers cached.
    pub(crate) start_ms: Vec<f64>,
    /// Memory two seconds after the first list, in MiB.
    pub(crate) idle_memory_mib: Vec<f64>,
    pub(crate) cpu_count: usize,
}

/// All subjects in front of one kind of upstream.
#[derive(Debug)]
pub(crate) struct Scenario {
    pub(crate) title: &'static str,
    pub(crate) names: Vec<String>,
    /// By number of clients, subject and round.
    pub(crate) runs: Vec<(usize, Vec<Vec<Run>>)>,
}

/// A benchmark with its upstream.
#[derive(Debug)]
pub(crate) struct Benchmark {
    plan: Plan,
    home: TempDir,
    upstream: RunningProgram,
    /// The command of a server over stdio.
    server: Vec<String>,
}

impl Benchmark {
    pub(crate) fn open(mut plan: Plan) -> Result<Self, BenchError> {
        plan.seconds = if plan.seconds > 0.0 { plan.seconds } else { 3.0 };
        plan.rounds = plan.rounds.max(1);
        let home = tempfile::tempdir()?;
        let program = match &plan.shared {
            Some(folder) => vec![folder.join("bench-upstream").display().to_string()],
            None => vec![std::env::current_exe()?.display().to_string(), "upstream".to_owned()],
        };
        let upstream_command = |arguments: &[&str]| -> Vec<String> {
            program.iter().cloned().chain(arguments.iter().map(|argument| (*argument).to_owned())).collect()
        };
        let upstream =
            RunningProgram::start("upstream", &upstream_command(&["--http", UPSTREAM_ADDRESS]), home.path())?;
        Ok(Self { plan, home, upstream, server: upstream_command(&["--stdio"]) })
    }

    pub(crate) async fn figures(mut self) -> Result<Figures, BenchError> {
        let direct = Target::new(&format!("http://{UPSTREAM_ADDRESS}/mcp"), false);
        self.upstream.wait_until_ready(&direct, 1, Instant::now()).await?;
        let mut figures = Figures {
            cpu_count: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            ..Figures::default()
        };
        if !self.plan.skips_calls {
            self.calls(&mut figures).await?;
        }
        self.lists(&mut figures).await?;
        self.starts(&mut figures).await?;
        Ok(figures)
    }

    async fn calls(&self, figures: &mut Figures) -> Result<(), BenchError> {
        figures.scenarios.push(self.over_http("answers as events", "/mcp", false).await?);
        figures.scenarios.push(self.over_http("answers as JSON", "/json/mcp", false).await?);
        if self.plan.shared.is_some() {
            figures
                .scenarios
                .push(self.over_http("answers as JSON, clients of 2026-07-28", "/json/mcp", true).await?);
        }
        figures.scenarios.push(self.over_stdio().await?);
        Ok(())
    }

    async fn over_http(
        &self,
        title: &'static str,
        path: &str,
        is_modern: bool,
    ) -> Result<Scenario, BenchError> {
        let (home, url) = (self.home.path(), format!("http://{UPSTREAM_ADDRESS}{path}"));
        let target_at =
            |port: u16, path: &str| Target::new(&format!("http://127.0.0.1:{port}{path}"), is_modern);
        let mut subjects = vec![Subject::direct(Target::new(&url, is_modern), &self.upstream)];
        let command = nginx(NGINX_PORT, UPSTREAM_ADDRESS, home)?;
        subjects.push(Subject::start("nginx", &command, target_at(NGINX_PORT, path), 1, home).await?);
        let servers = format!("[servers.bench]\nurl = \"{url}\"\n");
        let command = toolyard(&self.plan.toolyard, TOOLYARD_PORT, &servers, home)?;
        subjects.push(Subject::start("Toolyard", &command, target_at(TOOLYARD_PORT, "/mcp"), 1, home).await?);
        let mut peers = self.plan.peers.clone();
        if let Some(folder) = &self.plan.shared {
            let proxy = folder.join("bench-rmcp-proxy");
            let json = if path == "/mcp" { "" } else { "--json " };
            let command =
                format!("{} --listen 127.0.0.1:{{port}} {json}--pool --url {{upstream}}", proxy.display());
            peers.push(("rmcp proxy, pooled".to_owned(), command));
        }
        for (port, (name, command)) in (FIRST_PEER_PORT..).zip(peers) {
            let command = peer(&command, port, &url, &self.server);
            subjects.push(Subject::start(&name, &command, target_at(port, "/mcp"), 1, home).await?);
        }
        self.measure_in_turn(title, &subjects).await
    }

    async fn over_stdio(&self) -> Result<Scenario, BenchError> {
        let (home, url) = (self.home.path(), format!("http://{UPSTREAM_ADDRESS}/mcp"));
        let target_at = |port: u16| Target::new(&format!("http://127.0.0.1:{port}/mcp"), false);
        let mut subjects = vec![Subject::direct(Target::new(&url, false), &self.upstream)];
        let (program, arguments) = self.server.split_first().ok_or("no server")?;
        let servers = format!("[servers.bench]\ncommand = {program:?}\nargs = {arguments:?}\n");
        let command = toolyard(&self.plan.toolyard, TOOLYARD_PORT, &servers, home)?;
        subjects.push(Subject::start("Toolyard", &command, target_at(TOOLYARD_PORT), 1, home).await?);
        let mut peers = self.plan.stdio_peers.clone();
        if let Some(folder) = &self.plan.shared {
            let proxy = folder.join("bench-rmcp-proxy");
            let command = format!("{} --listen 127.0.0.1:{{port}} --cmd", proxy.display());
            peers.push(("rmcp proxy".to_owned(), command));
        }
        for (port, (name, command)) in (FIRST_PEER_PORT..).zip(peers) {
            let mut command = peer(&command, port, &url, &self.server);
            if name == "rmcp proxy" {
                command.push(self.server.join(" "));
            }
            subjects.push(Subject::start(&name, &command, target_at(port), 1, home).await?);
        }
        self.measure_in_turn("stdio upstream (direct: the HTTP one)", &subjects).await
    }

    /// Measures all subjects in turn, round by round, so that other load on the machine affects all of them.
    async fn measure_in_turn(
        &self,
        title: &'static str,
        subjects: &[Subject],
    ) -> Result<Scenario, BenchError> {
        let names = subjects.iter().map(|subject| subject.name.clone()).collect();
        let mut runs = Vec::new();
        for clients in CLIENT_COUNTS {
            let mut by_subject = vec![Vec::new(); subjects.len()];
            for round in 0..self.plan.rounds {
                for (subject, runs) in subjects.iter().zip(&mut by_subject) {
                    let load = &self.plan.load;
                    let run = load.run(&subject.target, subject.process, clients, self.plan.seconds).await?;
                    eprintln!(
                        "{title}, {clients} clients, round {round}: {:20} {:7.0} calls/s, {:6.1} µs of processor, median {:6.0} µs, {} errors",
                        subject.name, run.calls_per_second, run.cpu_us_per_call, run.median_us, run.errors
                    );
                    runs.push(run);
                }
            }
            runs.push((clients, by_subject));
        }
        Ok(Scenario { title, names, runs })
    }

    async fn lists(&self, figures: &mut Figures) -> Result<(), BenchError> {
        let home = self.home.path();
        let servers = settings_with_servers(10)?;
        let target = Target::new(&format!("http://127.0.0.1:{TOOLYARD_PORT}/mcp"), false);
        let command = toolyard(&self.plan.toolyard, TOOLYARD_PORT, &servers, home)?;
        let toolyard_subject = Subject::start("Toolyard", &command, target, 1_000, home).await?;
        let (_, pages) = Client::open(&toolyard_subject.target).await?.list().await?;
        figures.list_bytes = pages.iter().map(bytes::Bytes::len).sum();
        let own = std::env::current_exe()?.display().to_string();
        let address = format!("127.0.0.1:{MEMORY_PORT}");
        let mut command = vec![own, "memory".to_owned(), address.clone()];
        for (number, page) in pages.iter().enumerate() {
            let file = home.join(format!("list-{number}.json"));
            std::fs::write(&file, page)?;
            command.push(file.display().to_string());
        }
        let target = Target::new(&format!("http://{address}/mcp"), false);
        let memory = Subject::start("memory", &command, target, 1_000, home).await?;
        for round in 0..self.plan.rounds.max(3) {
            let cpu_us = (self.list_cost(&toolyard_subject).await?, self.list_cost(&memory).await?);
            eprintln!(
                "list of {} bytes, round {round}: {:.0} µs, from memory {:.0} µs",
                figures.list_bytes, cpu_us.0, cpu_us.1
            );
            figures.list_cpu_us.push(cpu_us);
        }
        Ok(())
    }

    /// CPU time of one list in microseconds.
    async fn list_cost(&self, subject: &Subject) -> Result<f64, BenchError> {
        let mut client = Client::open(&subject.target).await?;
        client.list().await?;
        let (before, start, mut count) = (resource_usage(subject.process), Instant::now(), 0.0);
        while start.elapsed().as_secs_f64() < self.plan.seconds {
            client.list().await?;
            count += 1.0;
        }
        Ok((resource_usage(subject.process).cpu_seconds - before.cpu_seconds) * 1e6 / count)
    }

    async fn starts(&self, figures: &mut Figures) -> Result<(), BenchError> {
        let home = self.home.path();
        let mut servers = settings_with_servers(10)?;
        let (program, arguments) = self.server.split_first().ok_or("no server")?;
        for number in 10..CONFIGURED_SERVERS {
            write!(servers, "[servers.s{number}]\ncommand = {program:?}\nargs = {arguments:?}\n")?;
        }
        let target = Target::new(&format!("http://127.0.0.1:{TOOLYARD_PORT}/mcp"), false);
        let command = toolyard(&self.plan.toolyard, TOOLYARD_PORT, &servers, home)?;
        // The first start discovers and caches all servers.
        drop(Subject::start("Toolyard", &command, target.clone(), 1_001, home).await?);
        for round in 0..self.plan.rounds.max(3) {
            let since = Instant::now();
            let mut running = RunningProgram::start("Toolyard", &command, home)?;
            let took = running.wait_until_ready(&target, 1_001, since).await?;
            tokio::time::sleep(Duration::from_secs(2)).await;
            let memory = resource_usage(running.id()).memory_mib;
            eprintln!("start with {CONFIGURED_SERVERS} servers, round {round}: {took:?}, {memory:.1} MiB");
            figures.start_ms.push(took.as_secs_f64() * 1e3);
            figures.idle_memory_mib.push(memory);
        }
        Ok(())
    }
}

impl Default for Load {
    fn default() -> Self {
        Self::Own
    }
}

/// Settings with this many servers of a hundred tools each.
fn settings_with_servers(servers: usize) -> Result<String, BenchError> {
    let mut text = String::new();
    for number in 0..servers {
        writeln!(text, "[servers.u{number}]\nurl = \"http://{UPSTREAM_ADDRESS}/u{number}/mcp\"")?;
    }
    Ok(text)
}
