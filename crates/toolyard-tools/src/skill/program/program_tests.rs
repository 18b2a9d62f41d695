//! Programs with valid output, and programs that fail, hang, flood or fork.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    time::{Duration, Instant},
};

use serde_json::json;
use tempfile::TempDir;

use super::*;

/// A program in a temporary folder, called as the tool `t`.
struct Fixture {
    root: TempDir,
    tool: ProgramTool,
}

fn fixture(script: &str) -> Fixture {
    let root = TempDir::new().unwrap();
    let path = root.path().join("program");
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let variables = [("PATH", "/usr/bin:/bin"), ("GIVEN", "yes"), ("NOTES_API_KEY", "zebra \"crossing\"")];
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    let program = Program {
        path,
        skill_folder: root.path().to_owned(),
        environment: Arc::new(ProgramEnvironment::new(variables, root.path().to_owned())),
        trusted_content: None,
    };
    let tool = ProgramTool::new(ToolSpec::new("t", ""), Arc::new(program));
    Fixture { root, tool }
}

fn shell(body: &str) -> Fixture {
    fixture(&format!("#!/bin/sh\n{body}\n"))
}

impl Fixture {
    async fn call_within(&self, limit: Duration, arguments: Value) -> Result<ToolOutput, ToolError> {
        let context = CallContext::until(Instant::now() + limit);
        self.tool.call(&ToolCallRequest::new("t", arguments), &context).await
    }

    async fn call(&self, arguments: Value) -> Result<ToolOutput, ToolError> {
        self.call_within(Duration::from_secs(30), arguments).await
    }

    /// The process ids that the program wrote into a file.
    fn process_ids(&self) -> Vec<u32> {
        let text = fs::read_to_string(self.root.path().join("pids")).unwrap_or_default();
        text.split_whitespace().map(|id| id.parse().unwrap()).collect()
    }
}

/// Whether a process still runs; a zombie does not.
fn is_running(process_id: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process_id}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.trim().is_empty() && !rest.trim().starts_with('Z'))
}

async fn all_gone(process_ids: &[u32]) -> bool {
    for _ in 0..100 {
        if process_ids.iter().all(|id| !is_running(*id)) {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    false
}

async fn call_text(body: &str) -> Result<String, String> {
    let answer = shell(body).call(json!({})).await;
    answer.map(|output| output.to_text()).map_err(|error| error.message().to_owned())
}

#[tokio::test]
async fn arguments_and_result_are_json() {
    let program = shell(r#"printf '{"tool":"%s","got":%s}' "$1" "$(cat)""#);
    let output = program.call(json!({"a": "中文 \"$HOME`id`"})).await.unwrap();
    assert_eq!(output.to_json(), json!({"tool": "t", "got": {"a": "中文 \"$HOME`id`"}}));
    assert_eq!(call_text("echo 7").await.unwrap(), "7");
    assert_eq!(call_text(r#"printf '%s' '"plain\ntext"'"#).await.unwrap(), "plain\ntext");
    assert_eq!(
        call_text(r#"echo '{"error": "x", "more": 1}'"#).await.unwrap(),
        r#"{"error": "x", "more": 1}"#
    );
}

#[tokio::test]
async fn failures_report_the_programs_message() {
    assert_eq!(call_text(r#"echo '{"error": "no such city"}'"#).await.unwrap_err(), "no such city");
    assert_eq!(call_text("echo boom >&2; exit 3").await.unwrap_err(), "the program exited with code 3: boom");
    assert_eq!(
        call_text(r#"echo '{"error": "bad"}'; echo noise >&2; exit 1"#).await.unwrap_err(),
        "the program exited with code 1: bad"
    );
    assert_eq!(call_text("exit 9").await.unwrap_err(), "the program exited with code 9");
    assert_eq!(call_text("kill -9 $$").await.unwrap_err(), "the program was killed by signal 9");
    assert_eq!(call_text("echo why >&2").await.unwrap_err(), "the program printed nothing: why");
    assert_eq!(
        call_text("printf '\\033[31mred\\033[0m line\\n' >&2; exit 1").await.unwrap_err(),
        "the program exited with code 1: red line"
    );
    let lines = call_text("seq 1 1000 >&2; exit 1").await.unwrap_err();
    assert!(lines.ends_with("999\n1000") && lines.lines().count() == 10, "{lines}");
}

#[tokio::test]
async fn only_an_exit_code_means_a_known_failure() {
    for (body, kind, retryable) in [
        ("exit 3", ErrorKind::Failed, false),
        (r#"echo '{"error": "no"}'"#, ErrorKind::Failed, false),
        ("kill -9 $$", ErrorKind::ResponseLost, true),
        ("echo '1'; kill -15 $$", ErrorKind::ResponseLost, true),
        ("yes", ErrorKind::ResponseLost, false),
        ("echo saved", ErrorKind::ResponseLost, false),
        ("exit 0", ErrorKind::ResponseLost, false),
    ] {
        let error = shell(body).call(json!({})).await.unwrap_err();
        assert_eq!((error.kind(), error.retryable()), (kind, retryable), "{body}");
    }
}

#[tokio::test]
async fn invalid_output_is_quoted_in_the_error() {
    let error = call_text("echo 'Hello \u{1b}[31mworld'; seq 1 1000").await.unwrap_err();
    assert!(error.starts_with("the program printed no JSON: Hello world 1 2 3"), "{error}");
    assert!(error.chars().count() < 260);
    assert!(call_text(r"printf '\377\376'").await.is_err());
    assert!(call_text(r#"echo '{"a": 1} {"b": 2}'"#).await.is_err());
    let deep =
        call_text("head -c 200000 /dev/zero | tr '\\0' '['; head -c 200000 /dev/zero | tr '\\0' ']'").await;
    assert!(deep.is_ok() || deep.is_err(), "must not crash");
}

#[tokio::test]
async fn output_floods_are_killed_or_discarded() {
    let start = Instant::now();
    let error = call_text("yes 12345678901234567890").await.unwrap_err();
    assert_eq!(error, "the program wrote more than 10485760 bytes and was killed");
    assert_eq!(call_text("head -c 30000000 /dev/zero >&2; echo 1").await.unwrap(), "1");
    assert!(start.elapsed() < Duration::from_secs(20));
}

#[tokio::test]
async fn a_program_that_never_reads_its_input_cannot_block_the_call() {
    let big = json!({"text": "x".repeat(1 << 20)});
    assert_eq!(shell("sleep 0.1; echo 1").call(big.clone()).await.unwrap().to_text(), "1");
    assert_eq!(shell("echo 1").call(big.clone()).await.unwrap().to_text(), "1");
    let echo = shell("head -c 2000000 /dev/zero | tr '\\0' ' '; cat").call(big.clone()).await.unwrap();
    assert_eq!(echo.to_json(), big, "the program writes before it reads");
}

#[tokio::test]
async fn the_deadline_kills_the_program_and_its_children() {
    let program = shell("sleep 300 & echo $! $$ > pids; (trap '' TERM INT HUP; sleep 300) & wait");
    let start = Instant::now();
    let error = program.call_within(Duration::from_millis(700), json!({})).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert!(start.elapsed() < Duration::from_secs(5));
    let process_ids = program.process_ids();
    assert_eq!(process_ids.len(), 2);
    assert!(all_gone(&process_ids).await, "{process_ids:?}");
    assert!(!Path::new(&format!("/proc/{}", process_ids[1])).exists(), "the program was not reaped");
}

#[tokio::test]
async fn a_dropped_call_kills_the_program_and_its_children() {
    let program = shell("sleep 300 & echo $! $$ > pids; wait");
    let call = tokio::time::timeout(Duration::from_millis(700), program.call(json!({}))).await;
    assert!(call.is_err(), "the call was dropped");
    let process_ids = program.process_ids();
    assert_eq!(process_ids.len(), 2);
    assert!(all_gone(&process_ids).await, "{process_ids:?}");
    for _ in 0..100 {
        if !Path::new(&format!("/proc/{}", process_ids[1])).exists() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the program was not reaped");
}

#[test]
fn a_runtime_shutdown_kills_the_program_and_its_children() {
    let program = shell("sleep 300 & echo $! $$ > pids; wait");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let _ = tokio::time::timeout(Duration::from_millis(700), async {
            drop(program.call(json!({})).await);
        })
        .await;
    });
    drop(runtime);
    std::thread::sleep(Duration::from_millis(200));
    assert!(program.process_ids().iter().all(|id| !is_running(*id)));
}

#[tokio::test]
async fn a_child_that_keeps_the_output_open_does_not_block_the_call() {
    let program = shell("sleep 300 & echo $! > pids; echo '\"done\"'");
    let start = Instant::now();
    assert_eq!(program.call(json!({})).await.unwrap().to_text(), "done");
    assert!(start.elapsed() < Duration::from_secs(5));
    assert!(all_gone(&program.process_ids()).await);
}

#[tokio::test]
async fn programs_see_only_the_configured_environment() {
    let program =
        shell(r#"printf '"%s|%s|%s|%s"' "${HOME-none}" "$GIVEN" "$TOOLYARD_SKILL_DIR" "$(pwd -P)""#);
    let folder = program.root.path().canonicalize().unwrap();
    let skill_folder = program.root.path().display();
    let output = program.call(json!({})).await.unwrap();
    assert_eq!(output.to_text(), format!("none|yes|{skill_folder}|{}", folder.display()));
}

#[tokio::test]
async fn secrets_of_the_environment_are_redacted_in_results_and_errors() {
    let output = shell(r#"echo '{"key": "zebra \"crossing\""}'"#).call(json!({})).await.unwrap();
    assert_eq!(output.to_json(), json!({"key": "[redacted:environment]"}));
    for script in [r#"echo "$NOTES_API_KEY" >&2; exit 3"#, r#"echo "$NOTES_API_KEY""#] {
        let error = shell(script).call(json!({})).await.unwrap_err().to_string();
        assert!(error.contains("[redacted:environment]") && !error.contains("zebra"), "{error}");
    }
}

#[tokio::test]
async fn a_program_that_cannot_start_is_unavailable() {
    let error = fixture("#!/no/such/interpreter\n").call(json!({})).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    let missing = shell("echo 1");
    fs::remove_file(missing.root.path().join("program")).unwrap();
    assert_eq!(missing.call(json!({})).await.unwrap_err().kind(), ErrorKind::Unavailable);
}

#[tokio::test]
async fn many_calls_at_once_do_not_disturb_each_other() {
    let program = shell("cat");
    let calls = (0..40).map(|number| program.call(json!({"n": number})));
    let answers = futures_util::future::join_all(calls).await;
    for (number, answer) in answers.into_iter().enumerate() {
        assert_eq!(answer.unwrap().to_json(), json!({"n": number}));
    }
}
