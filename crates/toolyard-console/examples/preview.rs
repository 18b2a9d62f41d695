//! The console in front of a fake API, to look at its pages without a gateway, a model or a store.
//!
//! `cargo run -p toolyard-console --example preview`, then open the printed address. A question to an agent starts a run
//! that plays a recorded plan; `/console/runs/large` has 200 steps.

#![expect(
    clippy::indexing_slicing,
    reason = "indexing a JSON value of this file's own making yields null at worst"
)]

use std::{collections::BTreeMap, convert::Infallible, sync::Arc, time::Duration};

use axum::{
    Json, Router,
    body::{Body, Bytes},
    extract::{Path, Query, State},
    response::{IntoResponse as _, Response},
    routing::{get, post},
};
use futures_util::stream;
use http::StatusCode;
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::Mutex, time::sleep};
use toolyard_console::{Console, ConsoleConfig, OpenAccess};

/// A run that plays recorded events: each has the time in milliseconds after the start at which it happens.
#[derive(Clone)]
struct FakeRun {
    started_at: i64,
    question: String,
    conversation: Option<String>,
    script: Arc<Vec<(i64, Value)>>,
    /// The run stands still at this time.
    stops_at: i64,
}

type Runs = Arc<Mutex<BTreeMap<String, FakeRun>>>;

fn now() -> i64 {
    toolyard_core::unix_millis()
}

const STEPS: [(&str, &str, &str, &[&str], i64); 20] = [
    ("list_orders", "orders.search", "Find all orders of the last quarter", &[], 420),
    ("list_returns", "orders.returns", "Find returned items", &[], 510),
    ("exchange_rates", "fetch_exchange_rates", "Rates of EUR, USD and CNY", &[], 900),
    ("customers", "crm.customers", "Names and regions of the customers", &["list_orders"], 640),
    ("join", "query_table", "Join orders with customers", &["list_orders", "customers"], 210),
    ("net_sales", "query_table", "Subtract returns from sales", &["join", "list_returns"], 180),
    ("convert", "calculate", "Convert all amounts to EUR", &["net_sales", "exchange_rates"], 75),
    ("by_region", "query_table", "Sum by region", &["convert"], 130),
    ("by_month", "query_table", "Sum by month", &["convert"], 140),
    ("by_product", "query_table", "Sum by product", &["convert"], 150),
    ("forecast_read", "read_data_from_excel", "Read the forecast sheet", &[], 1300),
    ("deviation", "calculate", "Deviation from the forecast", &["by_month", "forecast_read"], 60),
    ("top_products", "query_table", "Ten best-selling products", &["by_product"], 90),
    ("stock", "warehouse.stock", "Stock of these products", &["top_products"], 700),
    ("shortages", "", "Decide which products run short", &["stock", "deviation"], 1200),
    ("region_chart", "draw_chart", "Bar chart by region", &["by_region"], 350),
    ("month_chart", "draw_chart", "Line chart by month", &["by_month"], 360),
    (
        "draft",
        "write_document",
        "Draft the quarterly report",
        &["region_chart", "month_chart", "shortages"],
        1500,
    ),
    ("check", "", "Check the numbers in the draft", &["draft", "deviation"], 800),
    ("send", "send_mail", "Send the report to the board", &["check"], 300),
];

/// Plays the twenty steps: each starts when those it depends on have ended.
fn report_script() -> Vec<(i64, Value)> {
    let mut script = vec![(0, json!({"type": "run_created", "agent": "analyst"}))];
    let steps: Vec<Value> = STEPS
        .iter()
        .map(|(id, tool, text, before, _)| {
            let tool = (!tool.is_empty()).then_some(*tool);
            json!({"id": id, "tool": tool, "description": text, "depends_on": before, "arguments": {"limit": 500, "quarter": "Q3"}})
        })
        .collect();
    script.push((600, json!({"type": "model_replied", "task": "plan", "duration_ms": 600, "input_tokens": 2100, "output_tokens": 610})));
    script.push((610, json!({"type": "planned", "steps": steps})));
    let mut ends: BTreeMap<&str, i64> = BTreeMap::new();
    for (id, tool, _, before, length) in STEPS {
        let start = before.iter().filter_map(|before| ends.get(before)).max().copied().unwrap_or(640);
        let length = length * 2;
        if id == "send" {
            script.push((start, json!({"type": "approval_requested", "step": id, "approval": 7, "text": "may `send_mail` of mail be called?", "arguments": {"to": ["board@example.com"], "subject": "Quarterly report", "attachments": ["report-q3.pdf"], "body": "Please find attached the report of the third quarter.\nNet sales: 1,284,400 EUR."}})));
        }
        script.push((
            start,
            json!({"type": "step_started", "step": id, "arguments": {"limit": 500, "quarter": "Q3"}}),
        ));
        let state = if id == "stock" { "failed" } else { "done" };
        script.push((start + length, json!({"type": "step_ended", "step": id, "state": state, "duration_ms": length, "source": tool.split('.').next(),
            "output": "{\"rows\":1284,\"net_sales_eur\":1284400,\"regions\":[\"EMEA\",\"APAC\",\"AMER\"]}", "message": "connection to `warehouse` was closed"})));
        ends.insert(id, start + length);
    }
    let end = script.iter().map(|(at, _)| *at).max().unwrap_or_default();
    for (index, word) in ANSWER.split_inclusive(' ').enumerate() {
        script.push((
            end + 40 * i64::try_from(index).unwrap_or_default(),
            json!({"type": "answer_delta", "text": word}),
        ));
    }
    script.push((end + 3_000, json!({"type": "run_ended", "state": "answered", "answer": ANSWER, "sources": ["orders.search (orders)", "query_table (native)", "read_data_from_excel (excel)"]})));
    script.sort_by_key(|(at, _)| *at);
    script
}

const ANSWER: &str = "Net sales of the third quarter are 1,284,400 EUR, 6.2 % above the forecast.\n\nEMEA is the strongest region (48 %), followed by APAC (31 %). Returns fell to 2.1 %. Three of the ten best-selling products may run short in November; their stock could not be read from the warehouse, so this follows from the sales alone.";

/// 200 steps: one that lists files, 180 that read one each, and a tree that merges them.
fn large_script() -> Vec<(i64, Value)> {
    let mut steps = vec![
        json!({"id": "list_files", "tool": "list_directory", "description": "List all reports", "depends_on": []}),
    ];
    for number in 0..180 {
        steps.push(json!({"id": format!("read_{number:03}"), "tool": "read_text_file", "description": format!("Read report {number} of the archive"), "depends_on": ["list_files"], "arguments": {"path": format!("/archive/2026/report-{number:03}.md")}}));
    }
    for group in 0..18 {
        let before: Vec<String> = (0..10).map(|part| format!("read_{:03}", group * 10 + part)).collect();
        steps.push(json!({"id": format!("merge_{group:02}"), "tool": "summarize", "description": "Summarize ten reports", "depends_on": before}));
    }
    let merged: Vec<String> = (0..18).map(|group| format!("merge_{group:02}")).collect();
    steps.push(
        json!({"id": "report", "description": "Write the summary of all reports", "depends_on": merged}),
    );
    let ids: Vec<String> =
        steps.iter().filter_map(|step| Some(step.get("id")?.as_str()?.to_owned())).collect();
    let mut script = vec![(0, json!({"type": "planned", "steps": steps}))];
    for (index, id) in ids.iter().enumerate().take(150) {
        let at = 100 + 80 * i64::try_from(index).unwrap_or_default();
        script.push((at, json!({"type": "step_started", "step": id})));
        let state = if index % 37 == 9 { "failed" } else { "done" };
        script.push((at + 400, json!({"type": "step_ended", "step": id, "state": state, "duration_ms": 400, "output": "# Report\nAll is well.", "message": "no such file"})));
    }
    script.sort_by_key(|(at, _)| *at);
    script
}

impl FakeRun {
    fn elapsed(&self) -> i64 {
        (now() - self.started_at).min(self.stops_at)
    }

    fn details(&self, id: &str) -> Value {
        let mut steps: Vec<Value> = Vec::new();
        let (mut state, mut answer, mut sources, mut approvals) =
            ("running", Value::Null, json!([]), Vec::new());
        let elapsed = self.elapsed();
        let mut count = 0;
        for (at, event) in self.script.iter().filter(|(at, _)| *at <= elapsed) {
            count += 1;
            let kind = event["type"].as_str().unwrap_or_default();
            if kind == "planned" {
                steps = event["steps"].as_array().cloned().unwrap_or_default();
                for step in &mut steps {
                    step["state"] = json!("waiting");
                }
            }
            let step = steps.iter_mut().find(|step| step["id"] == event["step"]);
            match (kind, step) {
                ("step_started", Some(step)) => {
                    step["state"] = json!("running");
                    step["started_at"] = json!(self.started_at + at);
                    approvals.clear();
                    state = "running";
                }
                ("step_ended", Some(step)) => {
                    step["state"] = event["state"].clone();
                    step["duration_ms"] = event["duration_ms"].clone();
                    if event["state"] == "failed" {
                        step["error"] = event["message"].clone();
                        step["hint"] = json!("start the server with `toolyard servers test warehouse`");
                        let first = self.started_at + at - 900;
                        step["attempts"] = json!([{"started_at": first, "duration_ms": 300, "error": event["message"]}, {"started_at": first + 500, "duration_ms": 400, "error": event["message"]}]);
                    } else {
                        step["output"] = event["output"].clone();
                        step["verification"] = json!({"verified": true, "confidence": 0.94, "issues": []});
                    }
                }
                ("approval_requested", Some(step)) => {
                    step["state"] = json!("needs_approval");
                    state = "suspended";
                    approvals = vec![
                        json!({"approval": event["approval"], "run": id, "step": event["step"], "tool": "send_mail", "source": "mail", "text": event["text"], "effects": "writes, open world", "arguments": event["arguments"], "notes": [], "requested_at": self.started_at + at}),
                    ];
                }
                ("run_ended", _) => {
                    state = "answered";
                    (answer, sources) = (event["answer"].clone(), event["sources"].clone());
                }
                _ => {}
            }
        }
        json!({"run": id, "state": state, "agent": "analyst", "question": self.question, "conversation": self.conversation, "created_at": self.started_at,
            "answer": answer, "sources": sources, "steps": steps, "pending_approvals": approvals, "unknown_steps": [], "last_event": count - 1,
            "usage": {"input_tokens": 18230, "output_tokens": 2411, "cost_micros": 61_000}})
    }

    fn event(&self, position: usize) -> Option<(i64, Value)> {
        let (at, mut event) = self.script.get(position)?.clone();
        event["number"] = json!(position);
        (at <= self.stops_at).then_some((at, event))
    }
}

async fn list(State(runs): State<Runs>, Query(query): Query<BTreeMap<String, String>>) -> Json<Value> {
    let runs = runs.lock().await;
    let mut rows: Vec<Value> = runs.iter().map(|(id, run)| run.details(id)).collect();
    if let Some(conversation) = query.get("conversation") {
        rows.retain(|row| row["conversation"] == conversation.as_str());
    }
    rows.sort_by_key(|row| -row["created_at"].as_i64().unwrap_or_default());
    Json(
        json!({"runs": rows.iter().map(|row| json!({"run": row["run"], "state": row["state"], "agent": row["agent"], "question": row["question"], "conversation": row["conversation"],
        "created_at": row["created_at"], "pending_approvals": row["pending_approvals"].as_array().map(Vec::len)})).collect::<Vec<_>>(), "next": null}),
    )
}

async fn find(runs: &Runs, id: &str) -> Result<FakeRun, Response> {
    let missing = || {
        (
            StatusCode::NOT_FOUND,
            Json(json!({"error": {"message": format!("no run has the id `{id}`"), "code": "run_not_found"}})),
        )
    };
    runs.lock().await.get(id).cloned().ok_or_else(|| missing().into_response())
}

async fn show(State(runs): State<Runs>, Path(id): Path<String>) -> Result<Json<Value>, Response> {
    Ok(Json(find(&runs, &id).await?.details(&id)))
}

async fn log(State(runs): State<Runs>, Path(id): Path<String>) -> Result<Json<Value>, Response> {
    let run = find(&runs, &id).await?;
    let elapsed = run.elapsed();
    let events: Vec<Value> = (0..)
        .map_while(|position| run.event(position))
        .take_while(|(at, _)| *at <= elapsed)
        .map(|(_, event)| event)
        .collect();
    Ok(Json(json!({"events": events})))
}

async fn events(
    State(runs): State<Runs>,
    Path(id): Path<String>,
    Query(query): Query<BTreeMap<String, String>>,
) -> Result<Response, Response> {
    let run = find(&runs, &id).await?;
    let first = query.get("after").and_then(|after| after.parse::<i64>().ok()).map_or(0, |after| after + 1);
    let events =
        stream::unfold((run, usize::try_from(first).unwrap_or_default()), |(run, position)| async move {
            let Some((at, event)) = run.event(position) else {
                // A run that is not over has more events some day.
                return if run.stops_at == i64::MAX { None } else { std::future::pending().await };
            };
            let wait = run.started_at + at - now();
            sleep(Duration::from_millis(u64::try_from(wait).unwrap_or_default())).await;
            let text = format!(
                "id: {position}\nevent: {}\ndata: {event}\n\n",
                event["type"].as_str().unwrap_or_default()
            );
            Some((Ok::<_, Infallible>(Bytes::from(text)), (run, position + 1)))
        });
    Ok(([("content-type", "text/event-stream")], Body::from_stream(events)).into_response())
}

async fn start(State(runs): State<Runs>, Json(body): Json<Value>) -> Response {
    let mut runs = runs.lock().await;
    let id = format!("live{}", runs.len());
    let run = FakeRun {
        started_at: now(),
        question: body["question"].as_str().unwrap_or_default().to_owned(),
        conversation: body["conversation"].as_str().map(str::to_owned),
        script: Arc::new(report_script()),
        stops_at: i64::MAX,
    };
    runs.insert(id.clone(), run);
    (StatusCode::ACCEPTED, Json(json!({"run": id, "state": "running"}))).into_response()
}

async fn refuse() -> Response {
    let error = json!({"message": "approving calls is not permitted to clients of this gateway", "code": "approval_not_permitted", "hint": "sign in with `toolyard open`"});
    (StatusCode::FORBIDDEN, Json(json!({"error": error}))).into_response()
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let question = "How did net sales develop in the third quarter compared with the forecast, and which products may run short?";
    let recorded = |age: i64, script: Vec<(i64, Value)>, stops_at: i64, question: &str| FakeRun {
        started_at: now() - age,
        question: question.to_owned(),
        conversation: Some("console-report".to_owned()),
        script: Arc::new(script),
        stops_at,
    };
    let approval = report_script()
        .iter()
        .find(|(_, event)| event["type"] == "approval_requested")
        .map_or(0, |(at, _)| *at);
    // Starts of steps at the same moment as the request would end the wait.
    let waiting: Vec<(i64, Value)> = report_script()
        .into_iter()
        .filter(|(at, event)| *at < approval || event["type"] == "approval_requested")
        .collect();
    let runs: Runs = Arc::new(Mutex::new(BTreeMap::from([
        ("done".to_owned(), recorded(3_600_000, report_script(), i64::MAX, question)),
        (
            "waiting".to_owned(),
            FakeRun {
                conversation: Some("console-waiting".to_owned()),
                ..recorded(600_000, waiting, approval, "把第三季度的销售报告发送给董事会")
            },
        ),
        (
            "large".to_owned(),
            FakeRun {
                conversation: None,
                ..recorded(7_200_000, large_script(), 11_000, "Summarize all 180 reports of the archive")
            },
        ),
    ])));
    let agents = json!({"agents": [{"name": "assistant", "description": "", "origin": "built_in", "config": {}}, {"name": "analyst", "description": "Answers questions about sales, stock and customers", "origin": "settings", "config": {}}]});
    let api = Router::new()
        .route("/api/v1/agents", get(move || async { Json(agents) }))
        .route("/api/v1/runs", get(list).post(start))
        .route("/api/v1/runs/{run}", get(show))
        .route("/api/v1/runs/{run}/log", get(log))
        .route("/api/v1/runs/{run}/events", get(events))
        .route("/api/v1/approvals/{approval}", post(refuse))
        .with_state(runs);
    let console = Console::new(ConsoleConfig::new(api, Arc::new(OpenAccess), [0; 32]));
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:7399".to_owned());
    let listener = TcpListener::bind(&address).await?;
    #[expect(clippy::print_stdout, reason = "an example for people")]
    {
        println!("http://{}", listener.local_addr()?);
    }
    axum::serve(listener, console.router()).await?;
    Ok(())
}
