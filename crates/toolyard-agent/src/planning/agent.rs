//! [`PlanningAgent`]: builds the request for a plan, for each tool-calling mode.
//!
//! Parts that stay the same between requests come first, so that prompt caches hit: the agent, the reply format, the core
//! tools, the tools for this task; then the conversation, the task, and the progress so far.

use std::{fmt, sync::Arc};

use serde_json::{Value, json};
use toolyard_core::RawJson;
use toolyard_model::{ModelMessage, ModelRequest, ModelTool, ResponseSchema, ToolCalling};

use super::{
    context::PlanningContext,
    examples::example_turns,
    plan::{NO_TOOL, PlanProblem},
    plan_schema::plan_schema,
    signature::signature,
    tool_search::search_tool,
};
use crate::{
    AgentConfig, TokenCounter,
    chat::recent_history,
    escape,
    prompt::{
        AvailableTools, NativePrompt, PromptBudget, PromptError, PromptTool, build_native_prompt,
        build_with_paragraphs, introduction,
        templates::{
            PROBLEMS_NOTE, RunTemplates, SCHEMA_MODE_PROMPT, SCHEMA_MODE_TOOLS_HEADING, SystemTemplates, fill,
        },
    },
};

/// The function by which a model with native tool calling returns a whole plan.
pub(super) const MAKE_PLAN_TOOL: &str = "make_plan";
const MAX_PROMPT_TOKENS: usize = 4_000;
/// Tools besides the core ones, as in the specification.
const MAX_RELEVANT_TOOLS: usize = 10;
const MAX_HISTORY_TOKENS: usize = 1_500;
const MAX_REPLY_TOKENS: u32 = 4_096;
/// Tokens of a reply of a small model, which may not stop by itself.
const MAX_CONSTRAINED_REPLY_TOKENS: u32 = 800;
/// Characters of a rejected reply that are shown to the model again.
const MAX_REJECTED_REPLY_CHARS: usize = 8_000;
/// Problems on which a small model gets advice.
const MAX_ADVISED_PROBLEMS: usize = 3;
/// Characters of the summary of a finished step.
const MAX_SUMMARY_CHARS: usize = 400;

/// Asks a model for a plan, or for an answer if no tool is needed.
#[derive(Clone)]
pub struct PlanningAgent {
    config: Arc<AgentConfig>,
    counter: Arc<dyn TokenCounter>,
    budget: PromptBudget,
}

impl fmt::Debug for PlanningAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlanningAgent").field("config", &self.config).finish_non_exhaustive()
    }
}

impl PlanningAgent {
    /// Plans on behalf of an agent.
    pub fn new(config: impl Into<Arc<AgentConfig>>, counter: Arc<dyn TokenCounter>) -> Self {
        let budget = PromptBudget { max_tokens: MAX_PROMPT_TOKENS, max_relevant_tools: MAX_RELEVANT_TOOLS };
        Self { config: config.into(), counter, budget }
    }

    /// Sets the budget of the system prompt.
    #[must_use]
    pub fn with_budget(mut self, budget: PromptBudget) -> Self {
        self.budget = budget;
        self
    }

    /// The request for a plan.
    pub fn plan_request(&self, context: &PlanningContext) -> ModelRequest {
        let mut request = match context.mode {
            ToolCalling::Native => self.native_request(context),
            ToolCalling::Text => self.text_request(context),
            ToolCalling::Schema => self.constrained_request(context),
        };
        request.messages.extend(recent_history(&context.history, MAX_HISTORY_TOKENS, &*self.counter));
        let is_constrained = context.mode == ToolCalling::Schema;
        let mut task = self.task_text(context);
        if is_constrained && !context.problems.is_empty() {
            task.push_str("\n\n");
            task.push_str(&fill(PROBLEMS_NOTE, &[("problems", &advice(&context.problems))]));
        }
        request.messages.push(ModelMessage::user(task));
        if let Some(rejected) = context.rejected_reply.as_ref().filter(|_| !is_constrained) {
            let rejected: String = rejected.chars().take(MAX_REJECTED_REPLY_CHARS).collect();
            request.messages.push(ModelMessage::assistant(rejected));
            request.messages.push(ModelMessage::user(self.correction_text(&context.problems)));
        }
        request.max_tokens =
            Some(if is_constrained { MAX_CONSTRAINED_REPLY_TOKENS } else { MAX_REPLY_TOKENS });
        request.temperature = Some(0.0);
        request
    }

    fn templates(&self) -> &'static RunTemplates {
        RunTemplates::of(self.config.language)
    }

    fn text_request(&self, context: &PlanningContext) -> ModelRequest {
        let (run, system) = (self.templates(), SystemTemplates::of(self.config.language));
        let rules = format!("{}\n{}", system.calling_rules, run.rules);
        let paragraphs = [
            system.calling_heading,
            system.call_format,
            run.planning_heading,
            run.text_format,
            &rules,
            system.tools_heading,
            system.tools_notice,
        ];
        let build = |budget| {
            let tools = available_tools(context, budget);
            build_with_paragraphs(&self.config, &paragraphs, tools, budget, &*self.counter)
        };
        let text = within_budget(self.budget, build).map(|prompt| prompt.text).unwrap_or_default();
        ModelRequest { messages: vec![ModelMessage::system(text.trim_end())], ..ModelRequest::default() }
    }

    /// For small models with constrained decoding: a short prompt, tool signatures, examples as conversation turns.
    fn constrained_request(&self, context: &PlanningContext) -> ModelRequest {
        let AgentConfig { description, instructions, language, .. } = &*self.config;
        let mut text = SCHEMA_MODE_PROMPT.to_owned();
        if !description.trim().is_empty() || !instructions.trim().is_empty() {
            text.push_str("\n\n");
            text.push_str(introduction(&self.config, SystemTemplates::of(*language)).trim_end());
        }
        let mut tools = self.fitting_tools(context, self.counter.count(&text));
        let omitted = context.tools.total.saturating_sub(tools.len());
        let search = (context.can_search && omitted > 0 && !tools.is_empty()).then(|| search_tool(omitted));
        if let Some(search) = &search {
            // Before the first tool under the heading of a server.
            let position = tools.iter().take_while(|tool| tool.server().is_none()).count();
            tools.insert(position, search);
        }
        for part in ["\n\n", SCHEMA_MODE_TOOLS_HEADING, "\n"] {
            text.push_str(part);
        }
        let mut server = None;
        for tool in &tools {
            // `insert_rows` alone does not say whether it is about a spreadsheet or a database.
            if let Some(name) = tool.server().filter(|name| server != Some(*name)) {
                text.push_str(&escape::name(name));
                text.push_str(":\n");
            }
            server = tool.server();
            text.push_str(&signature(tool));
        }
        text.truncate(text.trim_end().len());
        let mut messages = vec![ModelMessage::system(text)];
        messages.extend(example_turns());
        let schema =
            ResponseSchema { name: "plan".to_owned(), schema: RawJson::from_value(&plan_schema(&tools)) };
        ModelRequest { messages, schema: Some(schema), ..ModelRequest::default() }
    }

    /// The tools whose signatures fit: first the core tools, then the most relevant ones, each group sorted by server and name.
    fn fitting_tools<'a>(&self, context: &'a PlanningContext, fixed_tokens: usize) -> Vec<&'a PromptTool> {
        let mut tokens_left = self.budget.max_tokens.saturating_sub(fixed_tokens);
        if !self.config.capabilities.enable_tool_calling {
            return Vec::new();
        }
        let by_name = |mut tools: Vec<&'a PromptTool>| {
            tools.sort_by_key(|tool| (tool.server(), tool.name()));
            tools
        };
        let mut fits = |tool: &&'a PromptTool| {
            let rest = tokens_left.checked_sub(self.counter.count(&signature(tool)));
            tokens_left = rest.unwrap_or(tokens_left);
            rest.is_some()
        };
        let refused = refused_tools(context);
        let is_refused = |tool: &PromptTool| refused.iter().any(|name| name == tool.name());
        let core = context.tools.core.iter().filter(|tool| !is_refused(tool));
        let core = by_name(core.collect());
        let core: Vec<&PromptTool> = core.into_iter().filter(|tool| fits(tool)).collect();
        let is_core = |tool: &PromptTool| core.iter().any(|known| known.name() == tool.name());
        let is_wanted = |tool: &&PromptTool| !(is_core(tool) || is_refused(tool));
        let relevant = context.tools.relevant.iter().filter(is_wanted);
        let relevant = relevant.take(self.budget.max_relevant_tools).filter(|tool| fits(tool));
        core.iter().copied().chain(by_name(relevant.collect())).collect()
    }

    fn native_request(&self, context: &PlanningContext) -> ModelRequest {
        let Some(prompt) = self.native_prompt(context) else { return ModelRequest::default() };
        let system = prompt.body.pointer("/messages/0/content").and_then(Value::as_str).unwrap_or_default();
        let mut tools = Vec::new();
        if !prompt.tools.is_empty() {
            let names = prompt.tools.iter().map(|selected| selected.tool.name());
            tools.push(ModelTool {
                name: MAKE_PLAN_TOOL.to_owned(),
                description: self.templates().make_plan_description.to_owned(),
                parameters: RawJson::from_value(&make_plan_schema(names)),
            });
        }
        let defined = prompt.body.get("tools").and_then(Value::as_array).into_iter().flatten();
        tools.extend(defined.filter_map(tool_definition));
        ModelRequest { messages: vec![ModelMessage::system(system)], tools, ..ModelRequest::default() }
    }

    /// The system prompt and tool definitions for native tool calling; none if they cannot be built.
    pub(super) fn native_prompt(&self, context: &PlanningContext) -> Option<NativePrompt> {
        let templates = self.templates();
        let mut config = AgentConfig::clone(&self.config);
        let parts = [
            config.instructions.trim(),
            templates.planning_heading,
            templates.native_format,
            templates.rules,
        ];
        config.instructions =
            parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n");
        within_budget(self.budget, |budget| {
            let tools = available_tools(context, budget);
            build_native_prompt(&config, tools, budget, &*self.counter)
        })
    }

    /// The task and its progress.
    fn task_text(&self, context: &PlanningContext) -> String {
        let templates = self.templates();
        if context.finished.is_empty() {
            return context.question.clone();
        }
        let mut lines = vec![
            fill(templates.task, &[("question", &context.question)]),
            templates.progress_heading.to_owned(),
        ];
        for step in &context.finished {
            let summary = escape::sanitized_line(&step.summary);
            let summary: String = escape::markup(&summary).chars().take(MAX_SUMMARY_CHARS).collect();
            let template = if step.lacks_value { templates.step_failed } else { templates.step_done };
            let tool = escape::name(&step.tool);
            lines.push(fill(template, &[("step", &step.step), ("tool", &tool), ("shown", &summary)]));
        }
        lines.push(templates.plan_rest_request.to_owned());
        lines.join("\n")
    }

    fn correction_text(&self, problems: &[PlanProblem]) -> String {
        let templates = self.templates();
        let mut lines = vec![templates.problems_heading.to_owned()];
        lines.extend(problems.iter().map(|problem| format!("- {}", problem_text(problem))));
        lines.push(templates.correction_request.to_owned());
        lines.join("\n")
    }
}

/// Tools without which the model is asked again, because it would repeat their calls: that of a single call which refers to
/// results of steps that do not exist, such as a calculation before anything was read, and those of calls that failed before.
fn refused_tools(context: &PlanningContext) -> Vec<String> {
    let failed = context.problems.iter().filter_map(|problem| match problem {
        PlanProblem::RepeatsFailure { tool, .. } => Some(tool.clone()),
        _ => None,
    });
    let is_missing = |problem: &PlanProblem| matches!(problem, PlanProblem::MissingStep { .. });
    let rejected = context.rejected_reply.as_deref().filter(|_| context.problems.iter().any(is_missing));
    let reply = rejected.and_then(|text| serde_json::from_str::<Value>(text.trim()).ok());
    let tool = reply.as_ref().and_then(|reply| reply.pointer("/call/tool_type")?.as_str());
    failed.chain(tool.map(str::to_owned)).collect()
}

/// The tools of a context. Further tools are only mentioned if the model can search for them.
fn available_tools(context: &PlanningContext, budget: PromptBudget) -> AvailableTools<Vec<PromptTool>> {
    let mut available = context.tools.clone();
    available.relevant.truncate(budget.max_relevant_tools);
    let shown = available.core.len() + available.relevant.len();
    match available.total.checked_sub(shown) {
        Some(omitted) if omitted > 0 && context.can_search => {
            available.core.push(search_tool(omitted));
            available.total += 1;
        }
        _ => available.total = shown,
    }
    available
}

/// Builds a prompt within a budget. If not even the fixed texts fit, the budget applies to the tools alone.
fn within_budget<T>(
    budget: PromptBudget,
    build: impl Fn(PromptBudget) -> Result<T, PromptError>,
) -> Option<T> {
    match build(budget) {
        Ok(prompt) => Some(prompt),
        Err(PromptError::BudgetTooSmall { needed, .. }) => {
            build(PromptBudget { max_tokens: needed.saturating_add(budget.max_tokens), ..budget }).ok()
        }
    }
}

/// The parameters of `make_plan`: steps with the names of tools and any arguments.
fn make_plan_schema<'a>(tools: impl Iterator<Item = &'a str>) -> Value {
    let names: Vec<&str> = tools.chain([NO_TOOL]).collect();
    let step = json!({
        "type": "object",
        "properties": {
            "id": {"type": "string"},
            "description": {"type": "string"},
            "tool_type": {"enum": names},
            "arguments": {"type": "object"},
            "dependencies": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["id", "tool_type", "arguments"],
    });
    json!({"type": "object", "properties": {"steps": {"type": "array", "items": step}}, "required": ["steps"]})
}

/// A problem as sent to the model. The wording is part of the prompt, so it may differ from the message for users.
fn problem_text(problem: &PlanProblem) -> String {
    match problem {
        PlanProblem::Cycle { steps } => format!("these steps wait for each other: {}", steps.join(", ")),
        other => other.to_string(),
    }
}

/// Problems as advice for a small model, which is not shown the plan that had them.
fn advice(problems: &[PlanProblem]) -> String {
    let sentence = |problem: &PlanProblem| match problem {
        PlanProblem::Unreadable { .. } => "answer in one of the three forms.".to_owned(),
        PlanProblem::BadId { .. } => "every step has an id of its own.".to_owned(),
        PlanProblem::UnknownTool { tool, nearest: Some(nearest), .. } => {
            format!("there is no tool `{tool}`, but there is `{nearest}`.")
        }
        PlanProblem::UnknownTool { tool, nearest: None, .. } => format!("there is no tool `{tool}`."),
        PlanProblem::MissingStep { reference, .. } => {
            format!(
                "`{reference}` is no result of a step: first get the data in a step of its own, then refer to its id."
            )
        }
        PlanProblem::BadArguments { reason, .. } => format!("{reason}."),
        PlanProblem::Cycle { .. } => "a step can only need earlier steps.".to_owned(),
        PlanProblem::RepeatsFailure { tool, .. } => {
            format!("`{tool}` failed with these arguments; use another tool.")
        }
        PlanProblem::TooLong { limit, .. } => format!("at most {limit} steps."),
    };
    let mut sentences: Vec<String> = problems.iter().take(MAX_ADVISED_PROBLEMS).map(sentence).collect();
    sentences.dedup();
    sentences.join(" ")
}

fn tool_definition(tool: &Value) -> Option<ModelTool> {
    let function = tool.get("function")?;
    let text = |key: &str| function.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let parameters = RawJson::from_value(function.get("parameters")?);
    Some(ModelTool { name: text("name"), description: text("description"), parameters })
}

#[cfg(test)]
#[path = "agent_tests.rs"]
mod tests;
