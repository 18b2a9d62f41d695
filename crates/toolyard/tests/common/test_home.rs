//! An isolated home and project folder, with fake servers.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::{Value, json};

pub(crate) struct TestHome {
    folder: tempfile::TempDir,
}

impl TestHome {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("project/.git")).unwrap();
        std::fs::write(folder.path().join("server.py"), include_str!("fake_server.py")).unwrap();
        Self { folder }
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let file = self.path(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let home = self.folder.path();
        let mut command = Command::new(env!("CARGO_BIN_EXE_toolyard"));
        command
            .args(args)
            .current_dir(home.join("project"))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", home)
            .env("XDG_CONFIG_HOME", home.join("config"))
            .env("XDG_DATA_HOME", home.join("data"))
            .env("XDG_CACHE_HOME", home.join("cache"))
            .stdin(Stdio::null());
        command
    }

    /// The output of a command, and its exit code if that is not 0.
    pub(crate) fn run(&self, args: &[&str]) -> String {
        self.output_text(&self.command(args).output().unwrap())
    }

    /// The stdout and stderr of a finished command, its exit code if not 0, and times and paths normalized.
    pub(crate) fn output_text(&self, output: &std::process::Output) -> String {
        let mut text = String::from_utf8(output.stdout.clone()).unwrap();
        let errors = String::from_utf8(output.stderr.clone()).unwrap();
        if !errors.is_empty() {
            let _ = write!(text, "--- stderr\n{errors}");
        }
        if !output.status.success() {
            let _ = write!(text, "--- exit {}", output.status.code().unwrap_or(-1));
        }
        let home = self.folder.path().canonicalize().unwrap();
        without_times(&text.replace(home.to_str().unwrap(), "HOME"))
    }

    /// Sets the tools of a fake server.
    pub(crate) fn set_tools(&self, server: &str, tools: &[Value]) {
        self.write(&format!("{server}.json"), &json!({ "tools": tools }).to_string());
    }

    /// The program and arguments of a fake server.
    pub(crate) fn server_command(&self, server: &str) -> [String; 3] {
        let home = self.folder.path().canonicalize().unwrap();
        let text = |name: &str| home.join(name).to_str().unwrap().to_owned();
        ["python3".to_owned(), text("server.py"), text(&format!("{server}.json"))]
    }

    /// Adds a fake server with the tool `greet`, with these options of `servers add`.
    pub(crate) fn add_server(&self, server: &str, add_args: &[&str]) -> String {
        self.set_tools(server, &[greet_tool("Greets somebody")]);
        let program = self.server_command(server);
        let args: Vec<&str> = ["servers", "add", server]
            .into_iter()
            .chain(add_args.iter().copied())
            .chain(["--"])
            .chain(program.iter().map(String::as_str))
            .collect();
        self.run(&args)
    }

    /// The process ids a server was started with.
    pub(crate) fn started_pids(&self, server: &str) -> Vec<u32> {
        let text = std::fs::read_to_string(self.path(&format!("{server}.json.pids"))).unwrap_or_default();
        text.lines().map(|line| line.parse().unwrap()).collect()
    }

    /// The names of the tools that were called on a server.
    pub(crate) fn calls(&self, server: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.path(&format!("{server}.json.calls"))).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Asserts that all processes of a server end within two seconds.
    pub(crate) fn assert_stopped(&self, server: &str) {
        for process in self.started_pids(server) {
            assert!(wait_until(2_000, || !is_alive(process)), "{server} still runs as process {process}");
        }
    }
}

pub(crate) fn greet_tool(description: &str) -> Value {
    json!({
        "name": "greet",
        "description": description,
        "inputSchema": {"type": "object", "properties": {"name": {"type": "string"}}},
        "annotations": {"readOnlyHint": true},
    })
}

/// A tool that writes, without parameters.
pub(crate) fn named_tool(name: &str) -> Value {
    json!({"name": name, "description": format!("Does {name}"), "inputSchema": {"type": "object"}})
}

pub(crate) fn is_alive(process: u32) -> bool {
    let state = std::fs::read_to_string(Path::new("/proc").join(process.to_string()).join("stat"));
    state.is_ok_and(|state| !state.contains(") Z "))
}

pub(crate) fn wait_until(timeout_ms: u64, mut condition: impl FnMut() -> bool) -> bool {
    (0..timeout_ms / 20).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        condition()
    })
}

/// Normalizes times and dates.
fn without_times(text: &str) -> String {
    let is_time = |word: &str| word.parse::<f64>().is_ok() && word.contains('.');
    let is_date = |word: &str| word.starts_with("20") && word.ends_with('Z');
    let normalize = |word: &str| match word {
        time if is_time(time) => "N".to_owned(),
        date if is_date(date) => "DATE".to_owned(),
        other => other.to_owned(),
    };
    text.split('\n')
        .map(|line| line.split(' ').map(normalize).collect::<Vec<_>>().join(" "))
        .collect::<Vec<_>>()
        .join("\n")
}
