//! What was sent to a model, and what it replied, as lines of text.

use toolyard_agent::ModelTask;
use toolyard_core::redact;
use toolyard_model::{ModelMessage, ModelReply, ModelRequest, ModelToolCall, Role};

/// A heading with the purpose of the request, then every message under its author, tools, schema and options. Secrets are redacted.
pub(crate) fn sent_lines(task: &ModelTask, sent: &ModelRequest) -> Vec<String> {
    let mut lines = vec![format!("--- model request: {} ---", purpose(task))];
    lines.extend(sent.messages.iter().flat_map(message_lines));
    for tool in &sent.tools {
        lines.push(format!("[tool {}] {}", tool.name, tool.description));
        lines.push(tool.parameters.get().to_owned());
    }
    if let Some(schema) = &sent.schema {
        lines.push(format!("[response schema {}]", schema.name));
        lines.push(schema.schema.get().to_owned());
    }
    if let Some(max_tokens) = sent.max_tokens {
        lines.push(format!("[max_tokens {max_tokens}]"));
    }
    if let Some(temperature) = sent.temperature {
        lines.push(format!("[temperature {temperature}]"));
    }
    if !sent.stop.is_empty() {
        lines.push(format!("[stop sequences {:?}]", sent.stop));
    }
    lines.iter().map(|line| redact(line).into_owned()).collect()
}

fn message_lines(message: &ModelMessage) -> Vec<String> {
    let author = match message.role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    };
    text_lines(author, &message.text, &message.calls)
}

/// A heading, the text, and the tool calls that the model made in it. Secrets are redacted.
pub(crate) fn reply_lines(reply: &ModelReply) -> Vec<String> {
    text_lines("reply", &reply.text, &reply.calls)
}

fn text_lines(heading: &str, text: &str, calls: &[ModelToolCall]) -> Vec<String> {
    let mut lines = vec![format!("[{heading}]")];
    // Before it is split: some secrets have several lines.
    lines.extend(redact(text).lines().map(str::to_owned));
    lines.extend(
        calls.iter().map(|call| redact(&format!("[calls {}] {}", call.name, call.arguments)).into_owned()),
    );
    lines
}

fn purpose(task: &ModelTask) -> String {
    match task {
        ModelTask::Plan { round: 0, repair: false } => "plan".to_owned(),
        ModelTask::Plan { repair: false, .. } => "new plan".to_owned(),
        ModelTask::Plan { repair: true, .. } => "plan, corrected".to_owned(),
        ModelTask::Reason { step } => format!("result of step {step}"),
        ModelTask::Repair { step } => format!("arguments of step {step}"),
        ModelTask::Judge { step } => format!("verification of step {step}"),
        ModelTask::Answer => "answer".to_owned(),
        ModelTask::Review => "review of the answer".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_of_several_lines_is_redacted() {
        let line = "Fake0Canary1Body2Not3A4Live5Key6Fake0Canary1Body2Not3A4Live5Zq9x";
        let text = format!(
            "look:\n-----BEGIN RSA {0}-----\n{line}\n{line}\n-----END RSA {0}-----\nis there",
            "PRIVATE KEY"
        );
        let lines = text_lines("reply", &text, &[]).join("\n");
        assert!(!lines.contains("Canary") && lines.ends_with("is there"), "{lines}");
    }
}
