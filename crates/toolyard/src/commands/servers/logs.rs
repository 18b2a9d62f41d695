//! `toolyard servers logs`, and the log files with the stderr output of servers.

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
};

use toolyard::Toolyard;
use toolyard_mcp_client::ManagedServer;

use super::find_config;
use crate::{
    config::{
        CliContext,
        files::{append_private, create_private_folder},
    },
    error::CliError,
    terminal::{Output, logging::format_time},
};

/// A longer file is rotated; one old file is kept.
const MAX_LOG_BYTES: u64 = 1 << 20;

/// Appends the stderr output of all servers during this command. Failures are only logged.
pub(crate) fn append_all(toolyard: &Toolyard, context: &CliContext) {
    for server in toolyard.servers().iter().flat_map(|manager| manager.servers()) {
        let (_, lines) = server.stderr_tail().lines_after(0);
        if let (false, Err(error)) =
            (lines.is_empty(), append(&file(context, server.config().id.as_str()), &lines))
        {
            tracing::warn!(%error, server = %server.config().id, "failed to write the server's log");
        }
    }
}

fn append(file: &Path, lines: &[String]) -> std::io::Result<()> {
    if let Some(folder) = file.parent() {
        create_private_folder(folder)?;
    }
    if fs::metadata(file).is_ok_and(|metadata| metadata.len() > MAX_LOG_BYTES) {
        fs::rename(file, file.with_extension("log.old"))?;
    }
    let mut log = append_private(file)?;
    let now = format_time(jiff::Timestamp::now());
    let text: String = lines.iter().map(|line| format!("{now} {line}\n")).collect();
    log.write_all(text.as_bytes())
}

/// Whether there are lines in the log of a server: in its file, or lines of this command that are not appended yet.
pub(super) fn has_log_lines(server: &ManagedServer, context: &CliContext) -> bool {
    let config = server.config();
    let is_written = fs::metadata(file(context, config.id.as_str())).is_ok_and(|metadata| metadata.len() > 0);
    config.has_log() && (is_written || !server.stderr_tail().lines_after(0).1.is_empty())
}

pub(super) fn show(name: &str, lines: usize, context: &CliContext, output: &Output) -> Result<(), CliError> {
    let config = find_config(name, context)?;
    let file = file(context, name);
    let text = fs::read(&file).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let all: Vec<&str> = text.lines().collect();
    let last = all.get(all.len().saturating_sub(lines)..).unwrap_or_default();
    if output.is_json() {
        output.json(&last);
    } else if last.is_empty() {
        output.message(&if !config.has_log() {
            format!("{name} has no log here: it is an HTTP server, which writes its own")
        } else {
            format!("the log of {name} is empty")
        });
    } else {
        last.iter().for_each(|line| output.line(line));
    }
    Ok(())
}

fn file(context: &CliContext, name: &str) -> PathBuf {
    context.data_folder.join("logs").join(format!("{name}.log"))
}
