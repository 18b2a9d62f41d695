//! What is measured: no gateway, nginx, Toolyard, and whoever else there is.

use std::{fs, path::Path, time::Instant};

use crate::{Failed, client::Target, process::Running};

/// One way to the upstream.
#[derive(Debug)]
pub(crate) struct Subject {
    pub(crate) name: String,
    pub(crate) target: Target,
    /// Whose processor time is counted.
    pub(crate) process: u32,
    /// It ends with this; the upstream itself belongs to somebody else.
    _running: Option<Running>,
}

impl Subject {
    /// The upstream itself.
    pub(crate) fn direct(target: Target, upstream: &Running) -> Self {
        Self { name: "direct".to_owned(), target, process: upstream.id(), _running: None }
    }

    /// A program that listens at this port, ready when it lists so many tools.
    pub(crate) async fn start(
        name: &str,
        command: &[String],
        target: Target,
        tools: usize,
        home: &Path,
    ) -> Result<Self, Failed> {
        let since = Instant::now();
        let mut running = Running::start(name, command, home)?;
        let ready = running.ready(&target, tools, since).await;
        ready.map_err(|error| format!("{name}: {error}"))?;
        Ok(Self { name: name.to_owned(), target, process: running.id(), _running: Some(running) })
    }
}

/// nginx as a plain reverse proxy with one process, as somebody would write it who knows it.
pub(crate) fn nginx(port: u16, upstream: &str, home: &Path) -> Result<Vec<String>, Failed> {
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
    let words = ["nginx".into(), "-p".into(), home.display().to_string(), "-e".into(), "nginx.err".into()];
    Ok(words.into_iter().chain(["-c".into(), file.display().to_string()]).collect())
}

/// Toolyard with these servers, everything on that is on by itself.
pub(crate) fn toolyard(program: &Path, port: u16, servers: &str, home: &Path) -> Result<Vec<String>, Failed> {
    let file = home.join(format!("toolyard-{port}.toml"));
    fs::write(&file, servers)?;
    let words = [
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
    Ok(words.into())
}

/// A peer's command line with its places filled in.
pub(crate) fn peer(command: &str, port: u16, upstream: &str, server: &[String]) -> Vec<String> {
    let fill = |word: &str| match word {
        "{server}" => server.to_vec(),
        word => vec![word.replace("{port}", &port.to_string()).replace("{upstream}", upstream)],
    };
    command.split_whitespace().flat_map(fill).collect()
}
