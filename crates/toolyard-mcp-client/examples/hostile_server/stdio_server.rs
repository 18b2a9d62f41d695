//! Cases of a stdio server: its output, its start and its exit.

use std::{
    io::{self, BufRead, Write},
    os::unix::process::CommandExt,
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use crate::{
    Scenario,
    protocol::{MODERN, Request, text_result, valid_response},
    responses::{self, MessageWriter},
};

/// Lines on standard output.
struct LineWriter {
    out: io::BufWriter<io::Stdout>,
    case: String,
}

impl MessageWriter for LineWriter {
    fn begin(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn write_piece(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)?;
        if self.case == "slow-drip" { self.out.flush() } else { Ok(()) }
    }

    fn end(&mut self) -> io::Result<()> {
        let end: &[u8] = match self.case.as_str() {
            "carriage-returns" => b"\r\n",
            "blank-lines" => b"\n\n\r\n \n",
            _ => b"\n",
        };
        self.out.write_all(end)?;
        self.out.flush()
    }
}

/// Runs a case until the client disconnects.
pub(crate) fn run(scenario: &Scenario) -> io::Result<()> {
    let mut output = LineWriter { out: io::BufWriter::new(io::stdout()), case: scenario.case.clone() };
    act_at_start(scenario, &mut output)?;
    for line in io::stdin().lock().lines() {
        let Some(request) = Request::read(&line?) else { continue };
        if !before_response(scenario, &request, &mut output)? {
            continue;
        }
        responses::respond(scenario, &request, &mut output)?;
        after_response(scenario, &request, &mut output)?;
    }
    if scenario.case.starts_with("ignores-shutdown") { sleep_forever() } else { Ok(()) }
}

fn act_at_start(scenario: &Scenario, output: &mut LineWriter) -> io::Result<()> {
    match scenario.case.as_str() {
        "exit-at-start" => exit(3),
        "signal-at-start" => kill_self(),
        "hang-at-start" => sleep_forever(),
        "closes-stdout-at-start" => close_stdout("exec sleep 1000"),
        "ignores-shutdown" => restart_ignoring_signals(scenario),
        "forks-children" => fork_children(),
        "noise-300mb" => write_noise(output, b"this is no message, only a line of a log\n"),
        "endless-noise-line" => write_noise(output, &[b'x'; 4_096]),
        "noise-empty-lines" => write_noise(output, &[b'\n'; 4_096]),
        "json-noise" => write_noise(output, b"{\"level\":\"info\",\"msg\":\"starting\"}\n"),
        "line-300mb" => write_noise(output, format!("{{\"{}", "x".repeat(4_000)).as_bytes()),
        "brackets-300mb" => write_noise(output, &[b'['; 4_096]),
        "garbage-before" => {
            for garbage in garbage() {
                output.out.write_all(garbage)?;
            }
            output.out.flush()
        }
        "responses-before-requests" => {
            // The first two requests are sent before these responses can be read.
            for id in 3..=1_000 {
                output.write_message(&format!(
                    r#"{{"jsonrpc":"2.0","id":{id},"result":{}}}"#,
                    text_result("poison")
                ))?;
            }
            Ok(())
        }
        "stderr-flood" => flood_stderr(Some(100)),
        "stderr-flood-line" => flood_stderr(None),
        "stderr-escapes" => io::stderr().write_all(b"\x1b[2J\x1b]0;owned\x07\xff\xfe\0 token=hunter2\r\n"),
        "stdin-never-read" | "ping-flood-unread" | "requests-then-exit" => {
            serve_without_reading(&scenario.case, output)
        }
        _ => Ok(()),
    }
}

fn garbage() -> [&'static [u8]; 10] {
    [
        b"Welcome to the server!\n",
        b"{not json\n",
        b"\xff\xfe\xfd\n",
        b"\0\0\0\n",
        b"{}\n[]\nnull\n7\n\"text\"\n",
        b"\r\r\r\n",
        b"{\"jsonrpc\":\"2.0\"}\n",
        b"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"x\"}\n",
        b"{\"jsonrpc\":\"2.0\",\"method\":7}\n",
        b"\xef\xbb\xbf\n",
    ]
}

/// Does what the case demands before the response. Returns whether to respond.
fn before_response(scenario: &Scenario, request: &Request, output: &mut LineWriter) -> io::Result<bool> {
    let (case, method) = (scenario.case.as_str(), request.method.as_str());
    let stage = match method {
        "server/discover" => "discover",
        "initialize" => "initialize",
        "tools/list" => "list",
        "tools/call" => "call",
        _ => return Ok(true),
    };
    // The rows with many calls at once end with `calls`.
    let case = case.strip_suffix("calls").map_or_else(|| case.to_owned(), |rest| format!("{rest}call"));
    if case == format!("hang-at-{stage}") {
        sleep_forever()?;
    } else if case == format!("ignores-{stage}") {
        return Ok(false);
    } else if case == format!("exit-at-{stage}") {
        exit(7)?;
    } else if case == format!("signal-at-{stage}") {
        kill_self()?;
    } else if case == format!("garbage-at-{stage}") {
        for garbage in garbage() {
            output.out.write_all(garbage)?;
        }
    } else if case == format!("half-a-line-at-{stage}") {
        let text = valid_response(request, scenario.legacy).unwrap_or_default();
        let (half, _) = text.as_bytes().split_at(text.len() / 2);
        output.out.write_all(half)?;
        output.out.flush()?;
        exit(0)?;
    } else if case == format!("no-line-end-at-{stage}") {
        output.out.write_all(valid_response(request, scenario.legacy).unwrap_or_default().as_bytes())?;
        output.out.flush()?;
        exit(0)?;
    } else if case == format!("closes-stdout-at-{stage}") {
        close_stdout("exec sleep 1000")?;
    } else if case == "response-in-two-lines" && stage == "call" {
        let text = valid_response(request, scenario.legacy).unwrap_or_default();
        output.out.write_all(text.replace(",\"result\"", "\r,\"result\"").as_bytes())?;
        output.out.write_all(b"\n")?;
        output.out.flush()?;
        return Ok(false);
    }
    Ok(true)
}

fn after_response(scenario: &Scenario, request: &Request, output: &mut LineWriter) -> io::Result<()> {
    match (scenario.case.as_str(), request.method.as_str()) {
        ("exit-after-call", "tools/call") => exit(9),
        ("garbage-after-call", "tools/call") => {
            for garbage in garbage() {
                output.out.write_all(garbage)?;
            }
            output.out.flush()
        }
        ("exit-after-discover", "server/discover")
        | ("exit-after-initialize", "initialize")
        | ("exit-after-list", "tools/list") => exit(5),
        ("flood-when-idle", "tools/list") => {
            let text =
                r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}"#;
            // More than any queue holds; an unoptimized client on a busy machine reads them within the second a call may wait.
            for _ in 0..20_000 {
                output.out.write_all(text.as_bytes())?;
                output.out.write_all(b"\n")?;
            }
            output.out.flush()
        }
        ("list-changes-endless", "tools/list") => {
            // Every time the list is read, it changes again.
            output.write_message(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#)
        }
        _ => Ok(()),
    }
}

#[expect(clippy::exit, reason = "a server that exits at a bad moment")]
fn exit(code: i32) -> io::Result<()> {
    std::process::exit(code)
}

fn kill_self() -> io::Result<()> {
    Command::new("kill").args(["-9", &std::process::id().to_string()]).status()?;
    sleep_forever()
}

fn sleep_forever() -> io::Result<()> {
    loop {
        thread::sleep(Duration::from_secs(3_600));
    }
}

/// Continues as a program that keeps only its input open.
fn close_stdout(script: &str) -> io::Result<()> {
    Err(Command::new("sh").args(["-c", script]).stdout(Stdio::null()).exec())
}

/// Restarts itself with signals ignored, which a new program inherits.
fn restart_ignoring_signals(scenario: &Scenario) -> io::Result<()> {
    let script = r#"trap '' TERM INT HUP PIPE; exec "$0" stdio $1 ignores-shutdown-deaf"#;
    let legacy = if scenario.legacy { "--legacy" } else { "" };
    Err(Command::new("sh").arg("-c").arg(script).arg(std::env::current_exe()?).arg(legacy).exec())
}

/// Starts children in the process group, in other groups, in other sessions, and orphans.
fn fork_children() -> io::Result<()> {
    let scripts = [
        "sleep 1000",
        "trap '' TERM; sleep 1000; sleep 1000",
        "setsid sleep 1000",
        "setsid sh -c 'trap \"\" TERM HUP; sleep 1000; sleep 1000' &",
        "(sleep 1000 &) ; (setsid sleep 1000 &) ; sleep 1000",
    ];
    for script in scripts {
        let mut child = Command::new("sh").args(["-c", script]).stdin(Stdio::null()).spawn()?;
        thread::spawn(move || child.wait());
    }
    Ok(())
}

/// Writes more than 300 MB of repeated output, then continues normally.
fn write_noise(output: &mut LineWriter, piece: &[u8]) -> io::Result<()> {
    let repeated = piece.repeat((64 << 10) / piece.len());
    for _ in 0..(310 << 20) / repeated.len() {
        output.out.write_all(&repeated)?;
    }
    output.out.write_all(b"\n")?;
    output.out.flush()
}

/// Writes a gigabyte to standard error in the background: in lines of this length, or as one line.
fn flood_stderr(line_bytes: Option<usize>) -> io::Result<()> {
    let mut piece = vec![b'e'; 64 << 10];
    if let Some(line_bytes) = line_bytes {
        piece.iter_mut().step_by(line_bytes).for_each(|byte| *byte = b'\n');
    }
    thread::spawn(move || {
        for _ in 0..(1 << 30) / piece.len() {
            if io::stderr().write_all(&piece).is_err() {
                return;
            }
        }
    });
    Ok(())
}

/// Completes the handshake without reading: the ids of the client's requests are predictable.
fn serve_without_reading(case: &str, output: &mut LineWriter) -> io::Result<()> {
    for id in 1..=2 {
        thread::sleep(Duration::from_millis(300));
        let method = if id == 1 { "server/discover" } else { "tools/list" };
        let request =
            Request { id: Some(id.into()), method: method.to_owned(), params: serde_json::Value::Null };
        output.write_message(&valid_response(&request, MODERN).unwrap_or_default())?;
    }
    if case == "ping-flood-unread" {
        for id in 0..300_000 {
            output
                .out
                .write_all(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}\n").as_bytes())?;
        }
        output.out.flush()?;
    }
    if case == "requests-then-exit" {
        for id in 0..5_000 {
            output.write_message(&format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"sampling/createMessage"}}"#
            ))?;
        }
        thread::sleep(Duration::from_millis(300));
        return exit(1);
    }
    sleep_forever()
}
