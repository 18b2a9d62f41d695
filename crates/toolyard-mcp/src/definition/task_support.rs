//! Whether a tool runs only as a task: such a tool is not offered, because calls are not made as tasks.

use serde::Deserialize;
use toolyard_core::ToolSpec;

/// Whether the definition says that the tool must be called as a task.
pub fn requires_task(spec: &ToolSpec) -> bool {
    #[derive(Deserialize)]
    struct Definition {
        execution: Execution,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Execution {
        task_support: String,
    }
    // Most definitions do not mention it and need not be parsed.
    let raw = spec.raw.as_ref().filter(|raw| raw.get().contains("taskSupport"));
    raw.and_then(|raw| raw.read::<Definition>().ok())
        .is_some_and(|definition| definition.execution.task_support == "required")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn only_required_task_support_counts() {
        let needs = |execution: Value| {
            let raw = json!({"name": "t", "inputSchema": {"type": "object"}, "execution": execution});
            requires_task(&ToolSpec::new("t", "").with_raw(raw.into()))
        };
        assert!(needs(json!({"taskSupport": "required"})));
        for other in
            [json!({"taskSupport": "optional"}), json!({"taskSupport": 7}), json!({}), json!("taskSupport")]
        {
            assert!(!needs(other.clone()), "{other}");
        }
        assert!(!requires_task(&ToolSpec::new("t", "")));
    }
}
