//! A PostgreSQL server that a test may stop, start and freeze.

use std::{
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};

/// Started by `scripts/with-postgres`, which also removes it.
pub(crate) struct PostgresServer {
    keeper: Child,
    /// Without a database.
    pub(crate) url: String,
    folder: PathBuf,
}

impl PostgresServer {
    pub(crate) fn start() -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/with-postgres");
        let mut keeper = Command::new(script)
            .args(["sh", "-c", "echo $TOOLYARD_TEST_POSTGRES; exec cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(keeper.stdout.take().unwrap()).lines();
        let url = lines.next().unwrap().unwrap();
        Self { keeper, url, folder: PathBuf::new() }
    }

    /// Finds the data folder through the server itself.
    pub(crate) async fn locate(&mut self) {
        use sqlx::{Connection as _, Row as _};
        let mut connection = sqlx::AnyConnection::connect(&format!("{}/postgres", self.url)).await.unwrap();
        let row = sqlx::query("SELECT current_setting('data_directory') AS folder")
            .fetch_one(&mut connection)
            .await
            .unwrap();
        self.folder = PathBuf::from(row.get::<String, _>("folder"));
    }

    /// Stops the server without any farewell to its clients.
    pub(crate) fn stop(&self) {
        self.control(&["-m", "immediate", "stop"]);
    }

    /// Starts the server again, at the same port.
    pub(crate) fn restart(&self) {
        let port = self.url.rsplit(':').next().unwrap();
        let folder = self.folder.parent().unwrap().display().to_string();
        let options = format!("-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder}");
        self.control(&["-w", "-l", &format!("{folder}/log"), "-o", &options, "start"]);
    }

    fn control(&self, words: &[&str]) {
        let programs = std::fs::read_dir("/usr/lib/postgresql").unwrap().flatten().map(|entry| entry.path());
        let program = programs.max().unwrap().join("bin/pg_ctl");
        let mut command = match rustix::process::getuid().is_root() {
            true => {
                let mut command = Command::new("runuser");
                command.args(["-u", "postgres", "--"]).arg(program);
                command
            }
            false => Command::new(program),
        };
        command.arg("-D").arg(&self.folder).args(words).current_dir(self.folder.parent().unwrap());
        assert!(command.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success(), "{words:?}");
    }

    /// Makes the server hang, or continue: connections stay open and nothing answers.
    pub(crate) fn signal(&self, signal: Signal) {
        let pids = std::fs::read_to_string(self.folder.join("postmaster.pid")).unwrap();
        let postmaster: i32 = pids.lines().next().unwrap().parse().unwrap();
        let children = format!("/proc/{postmaster}/task/{postmaster}/children");
        let children = std::fs::read_to_string(children).unwrap();
        let children = children.split_whitespace().map(|pid| pid.parse::<i32>().unwrap());
        for pid in std::iter::once(postmaster).chain(children) {
            // A child may have ended meanwhile.
            let _ = kill_process(Pid::from_raw(pid).unwrap(), signal);
        }
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        if self.folder.join("postmaster.pid").exists() {
            // A frozen server could not be stopped.
            self.signal(Signal::CONT);
        }
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}
