//! `toolyard prompt`: prints the prompt that a model would receive.

use serde_json::{Value, json};
use toolyard::Toolyard;
use toolyard_agent::{
    AgentConfig, DEFAULT_AGENT, O200k, TokenCounter as _, available_tools,
    prompt::{
        Prompt, PromptBudget, PromptError, Provider, SelectedTool, build_agent_system_prompt_with_tools,
        build_native_prompt, call_schema,
    },
};

use crate::{
    cli::{PromptArgs, PromptFormat},
    error::CliError,
    terminal::Output,
};

/// Tools relevant to a request that are included by default, as the specification says.
const DEFAULT_RELEVANT_TOOLS: usize = 10;

pub(super) async fn run(
    arguments: &PromptArgs,
    toolyard: &Toolyard,
    output: &Output,
) -> Result<(), CliError> {
    let agent = toolyard.agents().config(arguments.agent.as_deref().unwrap_or(DEFAULT_AGENT))?;
    let agent = agent.without_conversation(toolyard.hub());
    let budget = PromptBudget {
        max_tokens: arguments.max_tokens,
        max_relevant_tools: arguments.max_tools.unwrap_or(match arguments.query {
            Some(_) => DEFAULT_RELEVANT_TOOLS,
            None => usize::MAX,
        }),
    };
    let examples = toolyard.agents().argument_examples(&agent).await;
    let available = available_tools(&agent, toolyard.hub(), arguments.query.as_deref(), examples);
    let prompt_error = |error| prompt_error(&error, &agent);
    match arguments.format {
        PromptFormat::Text | PromptFormat::Schema => {
            let prompt = build_agent_system_prompt_with_tools(&agent, available, budget, &O200k)
                .map_err(prompt_error)?;
            let contents =
                PromptContents { tools: &prompt.tools, omitted: prompt.omitted, tokens: prompt.tokens };
            if arguments.format == PromptFormat::Schema {
                let (schema, contents) = schema_within(&prompt, arguments.max_tokens);
                output.json(&if output.is_json() { contents.json_with("schema", &schema) } else { schema });
            } else if output.is_json() {
                output.json(&contents.json_with("text", &json!(prompt.text)));
            } else {
                output.verbatim(prompt.text.trim_end());
            }
        }
        PromptFormat::Openai | PromptFormat::Anthropic => {
            let provider = match arguments.format {
                PromptFormat::Anthropic => Provider::Anthropic,
                _ => Provider::OpenAi,
            };
            let prompt =
                build_native_prompt(&agent, provider, available, budget, &O200k).map_err(prompt_error)?;
            let contents =
                PromptContents { tools: &prompt.tools, omitted: prompt.omitted, tokens: prompt.tokens };
            let contents_json = || {
                let mut all = contents.json_with("body", &prompt.body);
                if let Value::Object(fields) = &mut all {
                    fields.insert("aliases".to_owned(), json!(prompt.aliases));
                }
                all
            };
            output.json(&if output.is_json() { contents_json() } else { prompt.body.clone() });
        }
    }
    Ok(())
}

/// The schema of as many of the selected tools as fit; the last ones are dropped first.
fn schema_within(prompt: &Prompt, max_tokens: usize) -> (Value, PromptContents<'_>) {
    let mut tools = prompt.tools.as_slice();
    loop {
        let schema = call_schema(tools);
        let tokens = O200k.count(&schema.to_string());
        match tools.split_last() {
            Some((_, fewer)) if tokens > max_tokens => tools = fewer,
            _ => {
                let omitted = prompt.omitted + prompt.tools.len() - tools.len();
                return (schema, PromptContents { tools, omitted, tokens });
            }
        }
    }
}

/// The tools and size of a prompt.
struct PromptContents<'a> {
    tools: &'a [SelectedTool],
    omitted: usize,
    tokens: usize,
}

impl PromptContents<'_> {
    fn json_with(&self, name: &str, value: &Value) -> Value {
        let tool = |selected: &SelectedTool| json!({"name": selected.tool.name(), "detail": selected.detail, "core": selected.is_core});
        let tools: Vec<Value> = self.tools.iter().map(tool).collect();
        json!({name: value, "tokens": self.tokens, "omitted": self.omitted, "tools": tools})
    }
}

fn prompt_error(error: &PromptError, agent: &AgentConfig) -> CliError {
    let hint = format!("raise --max-tokens, or shorten `instructions` of [agents.{}]", agent.name);
    CliError::usage(error.to_string()).with_hint(hint)
}
