//! Cases of a server that is a program: what it writes where, and how it lives and dies.

use std::{
    io::{self, BufRead, Write},
    os::unix::process::CommandExt,
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use crate::{
    Play,
    answers::{self, Way},
    protocol::{Request, good, said},
};

/// Lines on standard output.
struct Lines {
    out: io::BufWriter<io::Stdout>,
    case: String,
}

impl Way for Lines {
    fn begin(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn piece(&mut self, bytes: &[u8]) -> io::Result<()> {
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

/// Plays a case until the client is gone.
pub(crate) fn play(play: &Play) -> io::Result<()> {
    let mut lines = Lines { out: io::BufWriter::new(io::stdout()), case: play.case.clone() };
    at_start(play, &mut lines)?;
    for line in io::stdin().lock().lines() {
        let Some(request) = Request::read(&line?) else { continue };
        if !before_answer(play, &request, &mut lines)? {
            continue;
        }
        answers::answer(play, &request, &mut lines)?;
        after_answer(play, &request, &mut lines)?;
    }
    if play.case.starts_with("refuses-to-die") { forever() } else { Ok(()) }
}

fn at_start(play: &Play, lines: &mut Lines) -> io::Result<()> {
    match play.case.as_str() {
        "exit-at-start" => end(3),
        "signal-at-start" => kill_myself(),
        "hang-at-start" => forever(),
        "closes-stdout-at-start" => close_stdout("exec sleep 1000"),
        "refuses-to-die" => again_deaf(play),
        "forks-children" => fork_children(),
        "noise-300mb" => noise(lines, b"this is no message, only a line of a log\n"),
        "endless-noise-line" => noise(lines, &[b'x'; 4_096]),
        "noise-of-empty-lines" => noise(lines, &[b'\n'; 4_096]),
        "json-noise" => noise(lines, b"{\"level\":\"info\",\"msg\":\"starting\"}\n"),
        "line-300mb" => noise(lines, format!("{{\"{}", "x".repeat(4_000)).as_bytes()),
        "brackets-300mb" => noise(lines, &[b'['; 4_096]),
        "garbage-before" => {
            for garbage in garbage() {
                lines.out.write_all(garbage)?;
            }
            lines.out.flush()
        }
        "answers-before-requests" => {
            // The first two are asked for before anything can be heard.
            for id in 3..=1_000 {
                lines.message(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{}}}"#, said("poison")))?;
            }
            Ok(())
        }
        "stderr-flood" => flood_stderr(false),
        "stderr-flood-line" => flood_stderr(true),
        "stderr-escapes" => io::stderr().write_all(b"\x1b[2J\x1b]0;owned\x07\xff\xfe\0 token=hunter2\r\n"),
        "stdin-never-read" | "ping-flood-unread" | "questions-then-exit" => never_read(&play.case, lines),
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

/// Whether to go on with an answer.
fn before_answer(play: &Play, request: &Request, lines: &mut Lines) -> io::Result<bool> {
    let (case, method) = (play.case.as_str(), request.method.as_str());
    let stage = match method {
        "server/discover" => "discover",
        "initialize" => "initialize",
        "tools/list" => "list",
        "tools/call" => "call",
        _ => return Ok(true),
    };
    let case = case.strip_suffix("calls").map_or_else(|| case.to_owned(), |rest| format!("{rest}call"));
    if case == format!("hang-at-{stage}") {
        forever()?;
    } else if case == format!("ignores-{stage}") {
        return Ok(false);
    } else if case == format!("exit-at-{stage}") {
        end(7)?;
    } else if case == format!("signal-at-{stage}") {
        kill_myself()?;
    } else if case == format!("garbage-at-{stage}") {
        for garbage in garbage() {
            lines.out.write_all(garbage)?;
        }
    } else if case == format!("half-a-line-at-{stage}") {
        let text = good(request, play.legacy).unwrap_or_default();
        let (half, _) = text.as_bytes().split_at(text.len() / 2);
        lines.out.write_all(half)?;
        lines.out.flush()?;
        end(0)?;
    } else if case == format!("no-line-end-at-{stage}") {
        lines.out.write_all(good(request, play.legacy).unwrap_or_default().as_bytes())?;
        lines.out.flush()?;
        end(0)?;
    } else if case == format!("closes-stdout-at-{stage}") {
        close_stdout("exec sleep 1000")?;
    } else if case == "answer-in-two-lines" && stage == "call" {
        let text = good(request, play.legacy).unwrap_or_default();
        lines.out.write_all(text.replace(",\"result\"", "\r,\"result\"").as_bytes())?;
        lines.out.write_all(b"\n")?;
        lines.out.flush()?;
        return Ok(false);
    }
    Ok(true)
}

fn after_answer(play: &Play, request: &Request, lines: &mut Lines) -> io::Result<()> {
    match (play.case.as_str(), request.method.as_str()) {
        ("exit-after-call", "tools/call") => end(9),
        ("garbage-after-call", "tools/call") => {
            for garbage in garbage() {
                lines.out.write_all(garbage)?;
            }
            lines.out.flush()
        }
        ("exit-after-discover", "server/discover")
        | ("exit-after-initialize", "initialize")
        | ("exit-after-list", "tools/list") => end(5),
        ("flood-when-idle", "tools/list") => {
            let text =
                r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}"#;
            for _ in 0..50_000 {
                lines.out.write_all(text.as_bytes())?;
                lines.out.write_all(b"\n")?;
            }
            lines.out.flush()
        }
        ("list-changes-without-end", "tools/list") => {
            // Whoever reads the list again gets the next change.
            lines.message(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#)
        }
        _ => Ok(()),
    }
}

#[expect(clippy::exit, reason = "a server that ends at a bad moment")]
fn end(code: i32) -> io::Result<()> {
    std::process::exit(code)
}

fn kill_myself() -> io::Result<()> {
    Command::new("kill").args(["-9", &std::process::id().to_string()]).status()?;
    forever()
}

fn forever() -> io::Result<()> {
    loop {
        thread::sleep(Duration::from_secs(3_600));
    }
}

/// Goes on as a program that holds no pipe but its input.
fn close_stdout(script: &str) -> io::Result<()> {
    Err(Command::new("sh").args(["-c", script]).stdout(Stdio::null()).exec())
}

/// Starts itself again with signals that are not heard: whoever is ignored stays ignored in the next program.
fn again_deaf(play: &Play) -> io::Result<()> {
    let script = r#"trap '' TERM INT HUP PIPE; exec "$0" stdio $1 refuses-to-die-deaf"#;
    let legacy = if play.legacy { "--legacy" } else { "" };
    Err(Command::new("sh").arg("-c").arg(script).arg(std::env::current_exe()?).arg(legacy).exec())
}

/// Children in the group, in groups of their own, in sessions of their own, and orphans.
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

/// More than 300 MB of the same, then on as if nothing had been.
fn noise(lines: &mut Lines, piece: &[u8]) -> io::Result<()> {
    let repeated = piece.repeat((64 << 10) / piece.len());
    for _ in 0..(310 << 20) / repeated.len() {
        lines.out.write_all(&repeated)?;
    }
    lines.out.write_all(b"\n")?;
    lines.out.flush()
}

/// A gigabyte on standard error, beside everything else.
fn flood_stderr(one_line: bool) -> io::Result<()> {
    let mut piece = vec![b'e'; 64 << 10];
    if !one_line {
        piece.iter_mut().step_by(100).for_each(|byte| *byte = b'\n');
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

/// Introduces itself by the book without reading a word, knowing how clients count.
fn never_read(case: &str, lines: &mut Lines) -> io::Result<()> {
    for id in 1..=2 {
        thread::sleep(Duration::from_millis(300));
        let method = if id == 1 { "server/discover" } else { "tools/list" };
        let request =
            Request { id: Some(id.into()), method: method.to_owned(), params: serde_json::Value::Null };
        lines.message(&good(&request, false).unwrap_or_default())?;
    }
    if case == "ping-flood-unread" {
        for id in 0..300_000 {
            lines
                .out
                .write_all(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}\n").as_bytes())?;
        }
        lines.out.flush()?;
    }
    if case == "questions-then-exit" {
        for id in 0..5_000 {
            lines.message(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"sampling/createMessage"}}"#))?;
        }
        thread::sleep(Duration::from_millis(300));
        return end(1);
    }
    forever()
}
