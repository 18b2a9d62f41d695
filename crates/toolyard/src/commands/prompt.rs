//! `toolyard prompt`: exactly what a model would be told.

use serde_json::{Value, json};
use toolyard::{Settings, Toolyard};
use toolyard_agent::{
    AgentConfig, DEFAULT_AGENT, O200k, Rates, TokenCount as _, offer,
    prompt::{
        Limit, Prompt, PromptError, Provider, Shown, build_agent_system_prompt_with_tools,
        build_native_prompt, call_schema,
    },
};

use crate::{
    cli::{PromptArgs, PromptFormat},
    failure::{Code, Failure},
    output::Output,
};

/// How many tools a request is shown besides the core ones, unless somebody says otherwise: what the seeds show.
const RELEVANT: usize = 10;

/// Prints a prompt, or what takes its place for models that call tools by themselves.
pub(crate) fn run(
    arguments: &PromptArgs,
    yard: &Toolyard,
    settings: &Settings,
    output: &Output,
) -> Result<(), Failure> {
    let agent = agent(settings, arguments.agent.as_deref())?;
    let limit = Limit {
        tokens: arguments.budget,
        others: arguments.tools.unwrap_or(if arguments.query.is_some() { RELEVANT } else { usize::MAX }),
    };
    let offer = offer(&agent, yard.hub(), arguments.query.as_deref(), rates(yard));
    let failed = |error| too_small(&error, &agent);
    match arguments.format {
        PromptFormat::Text | PromptFormat::Schema => {
            let prompt =
                build_agent_system_prompt_with_tools(&agent, offer, limit, &O200k).map_err(failed)?;
            let facts = Facts { shown: &prompt.shown, left_out: prompt.left_out, tokens: prompt.tokens };
            if arguments.format == PromptFormat::Schema {
                let (schema, facts) = schema_within(&prompt, arguments.budget);
                output.json(&if output.wants_json() { facts.with("schema", &schema) } else { schema });
            } else if output.wants_json() {
                output.json(&facts.with("text", &json!(prompt.text)));
            } else {
                output.line(prompt.text.trim_end());
            }
        }
        PromptFormat::Openai | PromptFormat::Anthropic => {
            let provider = match arguments.format {
                PromptFormat::Anthropic => Provider::Anthropic,
                _ => Provider::OpenAi,
            };
            let prompt = build_native_prompt(&agent, provider, offer, limit, &O200k).map_err(failed)?;
            let facts = Facts { shown: &prompt.shown, left_out: prompt.left_out, tokens: prompt.tokens };
            let with_facts = || {
                let mut all = facts.with("body", &prompt.body);
                if let Value::Object(fields) = &mut all {
                    fields.insert("aliases".to_owned(), json!(prompt.aliases));
                }
                all
            };
            output.json(&if output.wants_json() { with_facts() } else { prompt.body.clone() });
        }
    }
    Ok(())
}

/// The schema of as many of the chosen tools as fit, the last ones left out first.
fn schema_within(prompt: &Prompt, budget: usize) -> (Value, Facts<'_>) {
    let mut shown = prompt.shown.as_slice();
    loop {
        let schema = call_schema(shown);
        let tokens = O200k.count(&schema.to_string());
        match shown.split_last() {
            Some((_, fewer)) if tokens > budget => shown = fewer,
            _ => {
                let left_out = prompt.left_out + prompt.shown.len() - shown.len();
                return (schema, Facts { shown, left_out, tokens });
            }
        }
    }
}

/// What a prompt holds, for whoever measures it.
struct Facts<'a> {
    shown: &'a [Shown],
    left_out: usize,
    tokens: usize,
}

impl Facts<'_> {
    fn with(&self, name: &str, value: &Value) -> Value {
        let tool = |shown: &Shown| json!({"name": shown.tool.name(), "form": shown.form, "core": shown.core});
        let tools: Vec<Value> = self.shown.iter().map(tool).collect();
        json!({name: value, "tokens": self.tokens, "left_out": self.left_out, "shown": tools})
    }
}

/// The agent of this name. One exists without any settings.
fn agent(settings: &Settings, name: Option<&str>) -> Result<AgentConfig, Failure> {
    let name = name.unwrap_or(DEFAULT_AGENT);
    if let Some(agent) = settings.agents.get(name) {
        return Ok(agent.config(name));
    }
    if name == DEFAULT_AGENT {
        return Ok(AgentConfig::new(name));
    }
    let mut known: Vec<&str> = settings.agents.keys().map(String::as_str).collect();
    if !known.contains(&DEFAULT_AGENT) {
        known.push(DEFAULT_AGENT);
    }
    Err(Failure::new(Code::BadUse, format!("agent `{name}` does not exist"))
        .with_hint(format!("there are {} · describe it in toolyard.toml: [agents.{name}]", known.join(", "))))
}

/// How often calls succeeded, and how many there were.
fn rates(yard: &Toolyard) -> Rates {
    let rate =
        |known: toolyard_store::Statistics| ((known.tool, known.source), (known.success_rate, known.calls));
    yard.statistics().into_iter().map(rate).collect()
}

fn too_small(error: &PromptError, agent: &AgentConfig) -> Failure {
    let hint = format!("give it more with --budget, or shorten the instructions of [agents.{}]", agent.name);
    Failure::new(Code::BadUse, error.to_string()).with_hint(hint)
}
