//! The measured subjects: no gateway, nginx, Toolyard, and other gateways.

use std::{fs, path::Path, time::Instant};

use crate::{BenchError, client::Target, process::RunningProgram};

/// A gateway (or none) in front of the upstream.
#[derive(Debug)]
pub(crate) struct Subject {
    pub(crate) name: String,
    pub(crate) target: Target,
    /// The process whose CPU time is counted, with its children.
    pub(crate) process: u32,
    /// Ended when dropped; `None` for the upstream itself, which the benchmark owns.
    _running: Option<RunningProgram>,
}

impl Subject {
    /// The upstream itself.
    pub(crate) fn direct(target: Target, upstream: &RunningProgram) -> Self {
        Self { name: "direct".to_owned(), target, process: upstream.id(), _running: None }
    }

    /// Starts a program and waits until it lists this many tools.
    pub(crate) async fn start(
        name: &str,
        command: &[String],
        target: Target,
        tools: usize,
        home: &Path,
    ) -> Result<Self, BenchError> {
        let since = Instant::now();
        let mut running = RunningProgram::start(name, command, home)?;
        let ready = running.wait_until_ready(&target, tools, since).await;
        ready.map_err(|error| format!("{name}: {error}"))?;
        Ok(Self { name: name.to_owned(), target, process: running.id(), _running: Some(running) })
    }
}

/// The command of nginx as a plain reverse proxy with one worker, configured with keep-alive to the upstream.
pub(crate) fn nginx(port: u16, upstream: &str, home: &Path) -> Result<Vec<String>, BenchError> {
    let file = home.join(format!("nginx-{port}.conf"));
    let text = format!(
        "worker_processes 1; daemon off; pid nginx-{port}.pid; error_log nginx-{port}.err warn;
events {{ worker_connections 1024; }}
http {{
  access_log off; keepalive_requests 1000000;
  client_body_temp_path nb; proxy_temp_path np; fastcgi_temp_path nf; uwsgi_temp_path nu; scgi_temp_path ns;
  upstream up {{ server {upstream}; keepalive 128; keepalive_requests 1000000; }}
  server {{
    listen 127.0.0.1:{port};
    location / {{ proxy_pass http://up; proxy_http_version 1.1; proxy_set_header Connection \"\";
                 proxy_set_header Host $host; proxy_buffering off; }}
  }}
}}
"
    );
    fs::write(&file, text)?;
    let command = ["nginx".into(), "-p".into(), home.display().to_string(), "-e".into(), "nginx.err".into()];
    Ok(command.into_iter().chain(["-c".into(), file.display().to_string()]).collect())
}

/// The command of Toolyard with these servers and default settings.
pub(crate) fn toolyard(
    program: &Path,
    port: u16,
    servers: &str,
    home: &Path,
) -> Result<Vec<String>, BenchError> {
    let file = home.join(format!("toolyard-{port}.toml"));
    fs::write(&file, servers)?;
    let command = [
        program.display().to_string(),
        "--config".into(),
        file.display().to_string(),
        "serve".into(),
        "--http".into(),
        format!("127.0.0.1:{port}"),
        "--no-auth".into(),
        "--surface".into(),
        "full".into(),
    ];
    Ok(command.into())
}

/// The command of another gateway with its placeholders filled in.
pub(crate) fn peer(command: &str, port: u16, upstream: &str, server: &[String]) -> Vec<String> {
    let fill = |word: &str| match word {
        "{server}" => server.to_vec(),
        word => vec![word.replace("{port}", &port.to_string()).replace("{upstream}", upstream)],
    };
    command.split_whitespace().flat_map(fill).collect()
}
