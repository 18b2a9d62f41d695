//! `/api/v1`: servers, tools, runs, approvals, statistics and the audit log.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Fixture, runs_api::RunsApi};
use crate::client::HttpGateway;

fn names<'a>(list: &'a Value, key: &str) -> Vec<&'a str> {
    let entries = list[key].as_array().unwrap_or_else(|| panic!("{list}"));
    entries.iter().map(|entry| entry["name"].as_str().unwrap()).collect()
}

/// Scripts a plan with two calls of one tool, and one of another; all need approval.
fn script_three_notes(fixture: &Fixture) {
    let append = r#"cat >> "$HOME/notes.txt"; echo >> "$HOME/notes.txt"; echo '{"written":true}'"#;
    fixture.add_program("other_note", append);
    fixture.model.script_plan(
        "three notes",
        &json!([
            {"id": "a", "tool_type": "write_note", "arguments": {"text": "one"}},
            {"id": "b", "tool_type": "write_note", "arguments": {"text": "two"}, "dependencies": ["a"]},
            {"id": "c", "tool_type": "other_note", "arguments": {"text": "three"}, "dependencies": ["b"]},
        ]),
    );
    fixture.model.script_answer("three notes", "All are written.");
}

#[tokio::test]
async fn an_approval_for_the_run_covers_later_calls_of_its_tool_only() {
    let fixture = Fixture::new();
    script_three_notes(&fixture);
    fixture.append_settings("[serve]\nremote_approval = true\n");
    let api = RunsApi(HttpGateway::start(&fixture.home, &[]));
    let (_, created) = api.post("/api/v1/runs", &json!({"question": "three notes"})).await;
    let run = created["run"].as_str().unwrap();
    assert_eq!(created["events"], format!("/api/v1/runs/{run}/events"));
    let waits_for = async |step: &str| {
        for _ in 0..500 {
            let (_, list) = api.get("/api/v1/approvals").await;
            if list["approvals"][0]["step"] == step {
                return list["approvals"][0].clone();
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("step {step} never waits for approval");
    };
    let first = waits_for("a").await;
    assert_eq!((&first["tool"], &first["run"]), (&json!("write_note"), &json!(run)), "{first}");
    assert!(
        first["requested_at"].as_i64().unwrap() > 1_600_000_000_000 && first["source"].is_string(),
        "{first}"
    );
    // The approval is listed a moment before the run is suspended.
    let suspended = async || api.get("/api/v1/runs?state=suspended&agent=assistant").await.1;
    poll_until(async || suspended().await["runs"][0]["pending_approvals"] == 1).await;
    // By then, the log of the run has the parts of the text.
    let (_, list) = api.get("/api/v1/approvals").await;
    let pending = &list["approvals"][0];
    assert!(pending["arguments"]["text"].is_string() && pending["notes"].is_array(), "{pending}");
    let effects = pending["effects"].as_str().unwrap();
    assert!(!effects.is_empty() && pending["text"].as_str().unwrap().contains(effects), "{pending}");

    let path = |approval: &Value| format!("/api/v1/approvals/{}", approval["approval"]);
    let (status, error) = api.post(&path(&first), &json!({"allow": false, "scope": "run"})).await;
    assert_eq!((status, error["error"]["param"].as_str()), (400, Some("scope")), "{error}");
    let (status, decided) = api.post(&path(&first), &json!({"allow": true, "scope": "run"})).await;
    assert_eq!((status, &decided["scope"]), (202, &json!("run")), "{decided}");
    let other = waits_for("c").await;
    assert_eq!(other["tool"], "other_note", "another tool is asked for: {other}");
    assert_eq!(fixture.notes().len(), 2, "the second call of the first is not");
    assert_eq!(api.post(&path(&first), &json!({"allow": true})).await.0, 404, "it is decided");
    assert_eq!(api.post("/api/v1/approvals/999", &json!({"allow": false})).await.0, 404);
    assert_eq!(api.post(&path(&other), &json!({"allow": true, "scope": "once"})).await.0, 202);
    for _ in 0..500 {
        let (_, list) = api.get("/api/v1/runs?state=answered").await;
        if list["runs"][0]["run"] == run {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(fixture.notes().len(), 3);
    let covers_run = |record: &Value| record["outcome"].as_str().unwrap().contains("every call of its tool");
    // Audit records are written in the background.
    poll_until(async || {
        let (_, audit) = api.get("/api/v1/audit?limit=500").await;
        audit["records"].as_array().unwrap().iter().any(covers_run)
    })
    .await;
}

/// Waits up to ten seconds until a condition holds.
async fn poll_until(mut holds: impl AsyncFnMut() -> bool) {
    for _ in 0..500 {
        if holds().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the condition does not hold");
}

#[tokio::test]
async fn tools_are_listed_searched_and_shown() {
    let fixture = Fixture::new();
    let api = RunsApi(HttpGateway::start(&fixture.home, &[]));
    let (mut all, mut after) = (Vec::new(), String::new());
    loop {
        let (status, page) = api.get(&format!("/api/v1/tools?limit=3{after}")).await;
        assert_eq!(status, 200, "{page}");
        all.extend(names(&page, "tools").into_iter().map(str::to_owned));
        let Some(next) = page["next"].as_str() else { break };
        after = format!("&after={next}");
    }
    let (_, whole) = api.get("/api/v1/tools?limit=500").await;
    assert_eq!(all, names(&whole, "tools"), "pages are parts of the list");
    assert!(all.contains(&"write_note".to_owned()) && all.contains(&"calculate".to_owned()), "{all:?}");
    let (_, found) = api.get("/api/v1/tools?query=write%20a%20note&limit=2").await;
    assert!(names(&found, "tools").contains(&"write_note"), "{found}");
    assert!(found["tools"][0]["score"].as_f64().unwrap() > 0.0, "{found}");
    let (_, of_source) = api.get("/api/v1/tools?source=native").await;
    assert!(!names(&of_source, "tools").contains(&"write_note"), "{of_source}");
    let (status, tool) = api.get("/api/v1/tools/calculate").await;
    assert_eq!((status, &tool["kind"], &tool["read_only"]), (200, &json!("native"), &json!(true)), "{tool}");
    assert!(tool["input_schema"]["properties"]["expression"].is_object(), "{tool}");
    for (path, code) in [
        ("/api/v1/tools/nothing", "tool_not_found"),
        ("/api/v1/tools?source=nothing", "source_not_found"),
        ("/api/v1/servers/nothing", "server_not_found"),
    ] {
        let (status, error) = api.get(path).await;
        assert_eq!((status, error["error"]["code"].as_str()), (404, Some(code)), "{error}");
    }
    for path in [
        "/api/v1/tools?limit=0",
        "/api/v1/tools?limit=501",
        "/api/v1/tools?limt=5",
        "/api/v1/runs?state=done",
    ] {
        assert_eq!(api.get(path).await.0, 400, "{path}");
    }
}

/// The first page of one audit record, once there is a second: records are stored a moment after the answer.
async fn first_of_several_records(api: &RunsApi) -> Value {
    for _ in 0..500 {
        let (_, page) = api.get("/api/v1/audit?limit=1").await;
        if page["next"].is_string() {
            return page;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("no second audit record after ten seconds");
}

#[tokio::test]
async fn servers_statistics_and_the_audit_log_are_shown() {
    let fixture = Fixture::new();
    fixture.script_signature();
    fixture.model.script_plan(
        "compute",
        &json!([{"id": "x", "tool_type": "calculate", "arguments": {"expression": "1+1"}}]),
    );
    fixture.model.script_answer("compute", "2");
    let api = RunsApi(HttpGateway::start(&fixture.home, &[]));
    let (_, servers) = api.get("/api/v1/servers").await;
    assert_eq!(names(&servers, "servers"), ["signer"], "{servers}");
    let (_, server) = api.get("/api/v1/servers/signer").await;
    assert_eq!((&server["transport"], &server["trusted"]), (&json!("stdio"), &json!(true)), "{server}");
    for _ in 0..3 {
        let completion = json!({"model": "assistant", "messages": [{"role": "user", "content": "compute"}]});
        assert_eq!(api.post("/v1/chat/completions", &completion).await.0, 200);
    }
    let (_, list) = api.get("/api/v1/statistics").await;
    let calculate = list["statistics"].as_array().unwrap().iter().find(|entry| entry["tool"] == "calculate");
    assert_eq!(calculate.unwrap()["success_rate"], 1.0, "{list}");
    assert!(calculate.unwrap()["last_used_at"].is_i64(), "{list}");
    assert!(calculate.unwrap()["weighted_calls"].as_f64().unwrap() > 0.0, "{list}");
    assert_eq!(calculate.unwrap()["weighted_failures"], 0.0, "{list}");
    let (_, runs) = api.get("/api/v1/runs?limit=2").await;
    assert_eq!(runs["runs"].as_array().unwrap().len(), 2, "{runs}");
    let (_, rest) = api.get(&format!("/api/v1/runs?limit=2&after={}", runs["next"].as_str().unwrap())).await;
    assert_eq!((rest["runs"].as_array().unwrap().len(), &rest["next"]), (1, &Value::Null), "{rest}");
    assert_eq!(rest["runs"][0]["state"], "answered", "{rest}");
    assert_eq!(api.get("/api/v1/runs?after=nothing").await.0, 400);

    let (_, verified) = api.get("/api/v1/audit/verify").await;
    assert_eq!(verified["intact"], true, "{verified}");
    let first = first_of_several_records(&api).await;
    let newest = first["records"][0]["number"].as_i64().unwrap();
    let (_, second) =
        api.get(&format!("/api/v1/audit?limit=1&after={}", first["next"].as_str().unwrap())).await;
    assert_eq!(second["records"][0]["number"], newest - 1, "{second}");
    let (_, all) = api.get("/api/v1/audit?limit=500").await;
    let at = second["records"][0]["recorded_at"].as_i64().unwrap();
    for (query, times) in [
        (format!("until={at}"), 0..at),
        (format!("since={at}&until={}", at + 1), at..at + 1),
        (format!("since={}", i64::MAX), 0..0),
    ] {
        let (_, page) = api.get(&format!("/api/v1/audit?limit=500&{query}")).await;
        let mut wanted = all["records"].as_array().unwrap().clone();
        wanted.retain(|record| times.contains(&record["recorded_at"].as_i64().unwrap()));
        assert_eq!(page["records"], json!(wanted), "{query}");
    }
}

#[tokio::test]
async fn the_log_and_the_steps_of_a_run_are_read_without_waiting() {
    let fixture = Fixture::new();
    fixture.script_note();
    fixture.append_settings("[serve]\nremote_approval = true\n");
    let api = RunsApi(HttpGateway::start(&fixture.home, &[]));
    let (_, created) = api.post("/api/v1/runs", &json!({"question": "note it"})).await;
    let run = created["run"].as_str().unwrap();
    let suspended = api.wait_for(run, |run| run["state"] == "suspended").await;
    let states = |run: &Value| {
        let steps = run["steps"].as_array().unwrap().iter();
        steps.map(|step| step["state"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(states(&suspended), ["done", "needs_approval"], "{suspended}");
    let power = &suspended["steps"][0];
    assert_eq!((&power["output"], &power["source"]), (&json!("1024"), &json!("native")), "{power}");
    assert_eq!(power["attempts"][0]["arguments"], json!({"expression": "2^10"}), "{power}");
    let (status, log) = api.get(&format!("/api/v1/runs/{run}/log")).await;
    let events = log["events"].as_array().unwrap();
    assert_eq!((status, &events[0]["type"]), (200, &json!("run_created")), "{log}");
    assert_eq!(events.last().unwrap()["type"], "run_suspended", "{log}");

    let approval = &suspended["pending_approvals"][0]["approval"];
    assert_eq!(api.post(&format!("/api/v1/approvals/{approval}"), &json!({"allow": true})).await.0, 202);
    let answered = api.wait_for(run, |run| run["state"] == "answered").await;
    assert_eq!(states(&answered), ["done", "done"], "{answered}");
    let after = events.last().unwrap()["number"].as_i64().unwrap();
    let (_, rest) = api.get(&format!("/api/v1/runs/{run}/log?after={after}")).await;
    let numbers: Vec<i64> =
        rest["events"].as_array().unwrap().iter().map(|event| event["number"].as_i64().unwrap()).collect();
    let (streamed, last) = (api.events(run, Some(after)).await, answered["last_event"].as_i64().unwrap());
    assert_eq!(numbers, (after + 1..=last).collect::<Vec<_>>(), "{rest}");
    assert_eq!(numbers, streamed.into_iter().filter_map(|(number, _)| number).collect::<Vec<_>>());
    assert_eq!(api.get("/api/v1/runs/nothing/log").await.0, 404);
}

#[tokio::test]
async fn only_the_description_of_the_api_needs_no_token() {
    let fixture = Fixture::new();
    let api = RunsApi(HttpGateway::start(&fixture.home, &[]));
    let get = async |path: &str| api.0.http.get(api.url(path)).send().await.unwrap();
    let document = get("/api/openapi.json").await;
    assert_eq!(document.status(), 200);
    let document: Value = document.json().await.unwrap();
    assert_eq!(document["openapi"], "3.1.0");
    assert_eq!(get("/api/v1/events.schema.json").await.status(), 200);
    let public = ["/api/openapi.json", "/api/v1/events.schema.json"];
    for path in document["paths"].as_object().unwrap().keys().filter(|path| !public.contains(&path.as_str()))
    {
        let refused = get(&path.replace(['{', '}'], "")).await;
        assert_eq!(refused.status(), 401, "{path}");
        assert!(refused.text().await.unwrap().contains("invalid_api_key"), "{path}");
    }
}
