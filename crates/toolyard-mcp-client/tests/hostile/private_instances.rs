//! Private instances whose calls time out.

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::future::join_all;
use serde_json::json;
use toolyard_core::{CallContext, CallerIdentity, RawJson, Tool, ToolCallRequest};

use crate::test_host::TestHost;

/// Answers with its process id: `slow` once the file of its first argument exists, `hang` never.
const THREADED_SERVER: &str = r#"
import json, os, sys, threading, time
release = sys.argv[1]
def answer(request):
    method, params = request["method"], request.get("params") or {}
    reply = {"jsonrpc": "2.0", "id": request["id"]}
    if method == "initialize":
        reply["result"] = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "threaded", "version": "1"}}
    elif method == "tools/list":
        reply["result"] = {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}
    elif method == "tools/call":
        if params["arguments"]["text"] == "hang":
            return
        if params["arguments"]["text"] == "slow":
            open(release + ".begun", "w").close()
            while not os.path.exists(release):
                time.sleep(0.02)
        reply["result"] = {"content": [{"type": "text", "text": str(os.getpid())}]}
    else:
        reply["error"] = {"code": -32601, "message": "no"}
    print(json.dumps(reply), flush=True)
for line in sys.stdin:
    request = json.loads(line)
    if "id" in request and "method" in request:
        threading.Thread(target=answer, args=(request,), daemon=True).start()
"#;

/// A call of a caller that has an instance of its own, dropped at its deadline.
async fn call(tool: &Arc<dyn Tool>, text: &str, limit: Duration) -> Result<String, String> {
    let request = ToolCallRequest::new("echo", RawJson::from(json!({"text": text})));
    let mut context = CallContext::until(Instant::now() + limit);
    context.identity = Some(Arc::new(CallerIdentity::principal("https://issuer.example", "ada")));
    match tokio::time::timeout(limit, tool.call(&request, &context)).await {
        Ok(outcome) => outcome.map(|output| output.to_text()).map_err(|error| error.to_string()),
        Err(_elapsed) => Err("dropped at its deadline".to_owned()),
    }
}

async fn wait_for(file: &Path) {
    while !file.exists() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_restart_after_timeouts_waits_for_the_other_calls_of_the_caller() {
    const LIMIT: Duration = Duration::from_secs(600);
    let host = TestHost::new();
    let release = host.path("release");
    let args = ["-c", THREADED_SERVER, release.to_str().unwrap()].map(str::to_owned);
    host.manager.apply(vec![host.command("server", "python3".to_owned(), args.to_vec())]).await.unwrap();
    host.manager.connect("server").await.unwrap();
    let tool = host.registrar.find("server", "echo").unwrap();
    let first = call(&tool, "ready", LIMIT).await.unwrap();
    let slow = tokio::spawn({
        let tool = Arc::clone(&tool);
        async move { call(&tool, "slow", LIMIT).await }
    });
    wait_for(&host.path("release.begun")).await;
    let hanging = join_all((0..5).map(|_| call(&tool, "hang", Duration::from_millis(300)))).await;
    assert!(hanging.iter().all(Result::is_err), "{hanging:?}");
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(120)).await;
    tokio::time::resume();
    let next = tokio::spawn(async move { call(&tool, "ready", LIMIT).await });
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(!slow.is_finished() && !next.is_finished(), "{slow:?} {next:?}");
    std::fs::write(&release, "").unwrap();
    assert_eq!(slow.await.unwrap().unwrap(), first, "no call was cut");
    assert_ne!(next.await.unwrap().unwrap(), first, "a process that keeps failing is replaced");
    host.close().await;
}
