//! The example `scripted_model_server`, used by the OpenAI-compatible client.

use std::{
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
};

use serde_json::Value;
use toolyard_model::{
    FinishReason, ModelError, ModelErrorKind, ModelMessage, ModelReply, ModelRequest, ModelServerConfig,
    OpenAiModel, collect_reply,
};

const SCRIPT: &str = r#"
# the first request is answered with a tool call
{"contains": "time", "nth": 1, "calls": [{"name": "get_time", "arguments": {"timezone": "Asia/Tokyo"}}], "usage": [70, 9]}
{"contains": "time", "text": "It is noon.", "reasoning": "hm"}
{"anywhere": ["secret", "word"], "text": "found"}
{"contains": "busy", "nth": 1, "status": 429, "retry_after": "0"}
{"contains": "busy", "text": "Now."}
{"contains": "broken", "text": "one two three four", "cut": 3}
"#;

struct Server {
    process: Child,
    address: String,
}

impl Server {
    fn start(folder: &Path) -> Self {
        let tests = std::env::current_exe().unwrap();
        let program = tests.parent().unwrap().parent().unwrap().join("examples/scripted_model_server");
        std::fs::write(folder.join("script.jsonl"), SCRIPT).unwrap();
        let mut process = Command::new(program)
            .args(["--script".as_ref(), folder.join("script.jsonl").as_os_str()])
            .args(["--log".as_ref(), folder.join("log.jsonl").as_os_str()])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut address = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut address).unwrap();
        Self { process, address: address.trim().to_owned() }
    }

    async fn send(&self, texts: &[&str]) -> Result<ModelReply, ModelError> {
        let model = OpenAiModel::new(ModelServerConfig::new("scripted", &self.address, "scripted")).unwrap();
        let messages = texts.iter().map(|text| ModelMessage::user(*text)).collect();
        collect_reply(&model, &ModelRequest { messages, ..ModelRequest::default() }, |_| {}).await
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn log(folder: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(folder.join("log.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn the_server_follows_its_script_and_keeps_counting_after_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let first = server.send(&["what time is it?"]).await.unwrap();
    assert_eq!((first.calls[0].name.as_str(), &first.finish_reason), ("get_time", &FinishReason::ToolCalls));
    assert_eq!((first.usage.input, first.usage.output), (70, 9));
    drop(server);
    let server = Server::start(folder.path());
    let second = server.send(&["what time is it?"]).await.unwrap();
    assert_eq!((second.text.as_str(), second.reasoning.as_str()), ("It is noon.", "hm"));
    assert_eq!(server.send(&["the secret", "is a word", "no?"]).await.unwrap().text, "found");
    assert_eq!(server.send(&["busy?"]).await.unwrap().text, "Now.");
    let broken = server.send(&["broken"]).await.unwrap_err();
    assert_eq!(broken.kind, ModelErrorKind::Unreachable, "{broken}");
    let numbers: Vec<Value> = log(folder.path()).iter().map(|entry| entry["number"].clone()).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6]);
    assert_eq!(log(folder.path())[0]["request"]["messages"][0]["content"], "what time is it?");
}
