//! Measures the comparisons and prints them as tables.

use std::{
    os::unix::process::ExitStatusExt as _,
    process::{Command, Stdio},
};

use crate::{
    Outcome,
    callgrind::{count, count_server},
    http_client, http_server, json, load,
};

const COMPARISONS: [&str; 3] = ["http-client", "json", "http-server"];
/// Iterations of the short and of the long run of a comparison over a connection.
const EXCHANGES: (usize, usize) = (500, 2_500);
/// Each difference over a connection is taken this often and the middle one counts, because it depends a little on timing.
const REPEATS: usize = 3;
/// Bytes of the responses that the clients read, and the iterations for each.
const RESPONSES: [(usize, (usize, usize)); 2] = [(300, EXCHANGES), (100_000, (100, 500))];

/// Measures the named comparisons, or all.
pub(crate) fn run(names: &[&str]) -> Outcome {
    if let Some(unknown) = names.iter().find(|name| !COMPARISONS.contains(name)) {
        return Err(format!("unknown comparison {unknown}; hint: one of {}", COMPARISONS.join(", ")).into());
    }
    for name in COMPARISONS.into_iter().filter(|name| names.is_empty() || names.contains(name)) {
        match name {
            "http-client" => compare_clients()?,
            "json" => compare_json()?,
            _ => compare_servers()?,
        }
    }
    Ok(())
}

fn compare_clients() -> Outcome {
    let address = load::start_server()?.to_string();
    for (bytes, exchanges) in RESPONSES {
        let size = bytes.to_string();
        print_head(&format!("HTTP/1.1 client: POST of 300 B, response of {size} B, per request"));
        let mut ours = None;
        for way in http_client::WAYS {
            let measured = difference(exchanges, REPEATS, |exchanges| {
                count(&["http-client", way, &address, &size, &exchanges.to_string()])
            })?;
            print_row(way, measured, *ours.get_or_insert(measured));
        }
    }
    Ok(())
}

fn compare_servers() -> Outcome {
    print_head("HTTP server: POST of a tool call, per request");
    let mut ours = None;
    for way in http_server::WAYS {
        let measured = difference(EXCHANGES, REPEATS, |exchanges| {
            count_server(&["http-server", way], |address| load::send_calls(way, address, exchanges))
        })?;
        print_row(way, measured, *ours.get_or_insert(measured));
    }
    Ok(())
}

fn compare_json() -> Outcome {
    for (message, iterations) in json::MESSAGES {
        let bytes = json::message(message)?.len();
        print_head(&format!("JSON: message `{message}`, {bytes} B, fields borrowed, per message"));
        compare_readers("borrow", message, iterations, &json::BORROWING_WAYS, None)?;
        let copy = reader_cost("own", json::COPY_ONLY, message, iterations)?;
        print_head(&format!("JSON: message `{message}`, {bytes} B, payload owned, per message"));
        compare_readers("own", message, iterations, &json::OWNING_WAYS, Some(copy))?;
        if message == "list" {
            print_head(&format!("JSON: message `{message}`, {bytes} B, 46 definitions owned, per message"));
            compare_readers("list", message, iterations, &json::LISTING_WAYS, Some(copy))?;
        }
    }
    println!("\n### JSON: a payload nested a million levels deep\n");
    for way in json::BORROWING_WAYS {
        println!("- {way}: {}", read_deep(way)?);
    }
    Ok(())
}

/// Compares readers, without the cost of `copy`, which each of them contains.
fn compare_readers(
    task: &str,
    message: &str,
    iterations: usize,
    ways: &[&str],
    copy: Option<f64>,
) -> Outcome {
    let mut ours = None;
    for way in ways {
        let measured = reader_cost(task, way, message, iterations)?;
        let measured = copy.map_or(measured, |copy| measured - copy);
        print_row(way, measured, *ours.get_or_insert(measured));
    }
    Ok(())
}

fn reader_cost(task: &str, way: &str, message: &str, iterations: usize) -> Outcome<f64> {
    difference((iterations, 3 * iterations), 1, |iterations| {
        count(&["json", task, way, message, &iterations.to_string()])
    })
}

/// What happens to a reader of a deeply nested message.
fn read_deep(way: &str) -> Outcome<String> {
    let mut command = Command::new(std::env::current_exe()?);
    let status = command.args(["case", "json-depth", way]).stderr(Stdio::null()).status()?;
    Ok(match (status.success(), status.signal()) {
        (true, _) => "accepted".to_owned(),
        (false, None) => "refused".to_owned(),
        (false, Some(signal)) => format!("the process is killed by signal {signal}"),
    })
}

/// The cost of one iteration: the difference between a long and a short run.
fn difference(
    (few, many): (usize, usize),
    repeats: usize,
    mut measure: impl FnMut(usize) -> Outcome<f64>,
) -> Outcome<f64> {
    let mut all: Vec<f64> = Vec::new();
    for _ in 0..repeats {
        all.push((measure(many)? - measure(few)?) / (many - few) as f64);
    }
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().ok_or_else(|| "nothing was measured".into())
}

fn print_head(title: &str) {
    println!("\n### {title}\n\n| | instructions | of ours |\n|---|---|---|");
}

fn print_row(way: &str, measured: f64, ours: f64) {
    println!("| {way} | {measured:.0} | {:.2} |", measured / ours);
}
