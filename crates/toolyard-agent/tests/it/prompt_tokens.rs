//! Compares the prompt tokens of a task of ten steps with results of 50 kB: values passed by reference and values pasted
//! into the conversation.

use std::{fmt::Write as _, sync::Arc};

use parking_lot::Mutex;
use serde_json::{Value, json};
use toolyard_agent::{
    Agent, AgentConfig, AgentParts, ApprovalRules, CancelToken, MemoryRunLog, NoWatcher, O200k, RunEnd,
    RunRequest, TokenCounter,
};
use toolyard_core::{
    BoxFuture, CallContext, SourceInfo, SourceKind, Tool, ToolCallRequest, ToolError, ToolHints, ToolOutput,
    ToolSpec,
};
use toolyard_hub::ToolHub;
use toolyard_model::{ModelReply, ModelRequest, ScriptedModel, ToolCalling};

const STEPS: usize = 10;
const RESULT_BYTES: usize = 50_000;

/// Returns a page of rows.
struct PageTool {
    spec: ToolSpec,
    received: Arc<Mutex<Vec<Value>>>,
}

impl Tool for PageTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        request: &'a ToolCallRequest,
        _context: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let arguments = request.arguments.to_value();
            let page = arguments["page"].as_u64().unwrap_or_default();
            self.received.lock().push(arguments);
            Ok(ToolOutput::json(rows(page)))
        })
    }
}

/// Rows of about 50 kB.
fn rows(page: u64) -> Value {
    let row = |index: u64| json!({"id": page * 1_000 + index, "name": format!("Customer number {index}"), "amount": index * 37 % 911});
    let mut rows = Vec::new();
    let mut size = 0;
    while size < RESULT_BYTES {
        let row = row(u64::try_from(rows.len()).unwrap());
        size += row.to_string().len() + 1;
        rows.push(row);
    }
    json!({ "rows": rows })
}

/// Each step reads a page and gets all rows of the previous one.
fn plan() -> String {
    let step = |index: usize| {
        let mut arguments = json!({ "page": index });
        if index > 0 {
            arguments["before"] = json!(format!("$s{}.rows", index - 1));
        }
        json!({"id": format!("s{index}"), "tool_type": "read_page", "arguments": arguments, "dependencies": []})
    };
    json!({"steps": (0..STEPS).map(step).collect::<Vec<_>>()}).to_string()
}

fn tokens(request: &ModelRequest) -> usize {
    let texts: usize = request.messages.iter().map(|message| O200k.count(&message.text)).sum();
    let schema = request.schema.as_ref().map_or(0, |schema| O200k.count(schema.schema.get()));
    texts + schema
}

/// The tokens of the same task as a loop of calls whose results are pasted into the conversation.
fn tokens_with_pasting(first: &ModelRequest) -> usize {
    let mut conversation = String::new();
    let mut total = 0;
    for index in 0..=STEPS {
        total += tokens(first) + O200k.count(&conversation);
        let page = u64::try_from(index).unwrap();
        writeln!(conversation, "<tool_call>{{\"page\": {page}}}</tool_call>\n{}", rows(page)).unwrap();
    }
    total
}

#[tokio::test]
async fn references_cost_at_most_a_tenth_of_pasting() {
    let received = Arc::new(Mutex::new(Vec::new()));
    let spec = ToolSpec::new("read_page", "Read a page of rows.")
        .with_input_schema(json!({"type": "object", "required": ["page"],
            "properties": {"page": {"type": "integer"}, "before": {"type": "array"}}}))
        .with_hints(ToolHints::READ_ONLY);
    let hub = Arc::new(ToolHub::default());
    let page = PageTool { spec, received: Arc::clone(&received) };
    hub.register(SourceInfo::new("pages", SourceKind::Mcp).trusted(true), vec![Arc::new(page)]);
    let replies = [plan(), "All pages were read.".to_owned()];
    let mut replies = replies.into_iter().cycle();
    let model = Arc::new(ScriptedModel::new(ToolCalling::Schema, move |_| {
        Ok(ModelReply { text: replies.next().unwrap_or_default(), ..ModelReply::default() })
    }));
    let log = MemoryRunLog::new();
    let agent = Agent::new(AgentParts {
        config: Arc::new(AgentConfig::new("assistant")),
        hub,
        model: Arc::clone(&model) as Arc<dyn toolyard_model::Model>,
        log: Arc::new(log.clone()),
        approvals: Arc::new(log),
        rules: ApprovalRules::default(),
        counter: Arc::new(O200k),
        owner: "test".to_owned(),
        result_shapes: None,
        argument_examples: None,
    });
    let request = RunRequest {
        question: "Read ten pages".to_owned(),
        agent: "assistant".to_owned(),
        ..RunRequest::default()
    };
    let (_, end) = agent.ask(request, &NoWatcher, &CancelToken::new()).await.unwrap();
    assert!(matches!(&end, RunEnd::Answered { answer, .. } if answer.contains("All pages")), "{end:?}");

    let received = received.lock();
    assert_eq!(received.len(), STEPS);
    let whole_values = received.iter().filter(|arguments| arguments.to_string().len() > RESULT_BYTES).count();
    assert_eq!(whole_values, STEPS - 1, "values are passed whole");

    let requests = model.requests();
    let by_reference: usize = requests.iter().map(tokens).sum();
    let pasted = tokens_with_pasting(&requests[0]);
    println!("prompt tokens of {} requests with references: {by_reference}", requests.len());
    println!("prompt tokens of {} requests with pasting: {pasted}", STEPS + 1);
    println!("references need {} times fewer", pasted / by_reference);
    assert!(pasted >= 10 * by_reference, "{pasted} against {by_reference}");
}
