//! How a stdio server is started.

use std::{fmt, path::PathBuf, sync::Arc, time::Duration};

use crate::{
    process_guard::guard::{DEFAULT_SHUTDOWN_GRACE, GuardProgram},
    transport::stdio::{running_processes::RunningProcesses, stderr_tail::StderrTail},
};

/// How a server is started. The process gets nothing that is not in here.
#[derive(Clone)]
#[non_exhaustive]
pub struct StdioLaunch {
    /// A program in the `PATH` of `environment`, or a path (relative to the working directory).
    pub command: String,
    /// The arguments.
    pub args: Vec<String>,
    /// The whole environment; see [`server_environment`](crate::server_environment).
    pub environment: Vec<(String, String)>,
    /// The working directory; ours by default.
    pub working_directory: Option<PathBuf>,
    /// The program that ends the server with everything it started. Without one, processes that leave the server's
    /// process group survive it, and the server survives if we are killed.
    pub guard: Option<GuardProgram>,
    /// How long the server may take to exit once its input is closed.
    pub shutdown_grace: Duration,
    /// Where the server's stderr goes.
    pub stderr_tail: Arc<StderrTail>,
    pub(crate) processes: RunningProcesses,
}

impl StdioLaunch {
    /// A command with an empty environment and without a guard.
    pub fn new(command: impl Into<String>) -> Self {
        Self {
            command: command.into(),
            args: Vec::new(),
            environment: Vec::new(),
            working_directory: None,
            guard: None,
            shutdown_grace: DEFAULT_SHUTDOWN_GRACE,
            stderr_tail: Arc::default(),
            processes: RunningProcesses::default(),
        }
    }
}

impl fmt::Debug for StdioLaunch {
    /// Leaves out arguments and values of variables, which may be secrets.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.environment.iter().map(|(name, _)| name.as_str()).collect();
        formatter
            .debug_struct("StdioLaunch")
            .field("command", &self.command)
            .field("environment", &names)
            .field("working_directory", &self.working_directory)
            .field("guard", &self.guard)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_output_has_no_secrets() {
        let mut launch = StdioLaunch::new("npx");
        launch.environment = vec![("TOKEN".to_owned(), "hunter2".to_owned())];
        launch.args = vec!["--token=hunter2".to_owned()];
        let shown = format!("{launch:?}");
        assert!(shown.contains("TOKEN") && !shown.contains("hunter2"), "{shown}");
    }
}
