//! [`PlanningAgent`]: asks a model for a plan, or for an answer at once, and reads what it says.
//!
//! What stays the same stands first, so that prompt caches hit: who the agent is, how it answers, the core tools, the
//! tools for this task; then what was said before, the task, and what became of it so far.

mod examples;
pub(crate) mod lenient;
mod mend;
pub(crate) mod read;
mod reading;
pub(crate) mod schema;
mod signature;
pub(crate) mod text;
mod tidy;
pub(crate) mod words;

use std::{fmt, sync::Arc};

use serde_json::{Value, json};
use toolyard_core::RawJson;
use toolyard_model::{ModelMessage, ModelRequest, ToolCalling, ToolDefinition, WantedSchema};

pub use self::mend::PlanNotes;
use self::{
    schema::plan_schema,
    signature::signature,
    words::{Words, filled},
};
use crate::{
    AgentConfig, NO_TOOL, Plan, PlanProblem, SEARCH_TOOLS, TokenCount,
    chat::recent,
    prompt::{
        Limit, NativePrompt, Offer, PromptError, PromptTool, Provider, build_native_prompt,
        build_with_paragraphs, fence, opening, words::Words as PromptWords,
    },
};

/// The function by which a model that calls tools by itself gives a whole plan.
pub const MAKE_PLAN: &str = "make_plan";
/// What the part of a request that is about the agent and its tools may take.
const PROMPT_TOKENS: usize = 4_000;
/// So many tools are shown besides the core ones: what the seeds show.
const OTHERS: usize = 10;
/// What was said before may take as much.
const HISTORY_TOKENS: usize = 1_500;
/// A plan that is longer is cut off.
const MAX_TOKENS: u32 = 4_096;
/// The same for a small model, which would write for ever.
const HELD_TOKENS: u32 = 800;
/// What a model said before is shown again up to here.
const MAX_PREVIOUS: usize = 8_000;
/// More problems than this confuse a small model.
const MOST_NOTES: usize = 3;
/// What is shown of a step that is over.
const MAX_SHOWN: usize = 400;

/// Everything that a plan is asked for with.
#[derive(Debug, Clone)]
pub struct Situation {
    /// The question or task.
    pub question: String,
    /// What was said before it, the oldest first.
    pub history: Vec<ModelMessage>,
    /// How the model calls tools.
    pub mode: ToolCalling,
    /// The tools for this task.
    pub tools: Offer<Vec<PromptTool>>,
    /// What was wrong with the plan before, if there was one.
    pub problems: Vec<PlanProblem>,
    /// The plan before as the model wrote it.
    pub previous: Option<String>,
    /// What was done so far, when the rest is planned anew.
    pub done: Vec<Digest>,
}

/// A step that is over, for whoever plans the rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Digest {
    /// Its name.
    pub step: String,
    /// What it was for.
    pub description: String,
    /// The tool.
    pub tool: String,
    /// The shape of its value, or why it failed.
    pub shown: String,
    /// Whether it failed.
    pub failed: bool,
}

/// What a model decided.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// It can answer at once.
    Answer(String),
    /// It has a plan; not checked yet.
    Plan(Plan),
}

/// Asks for plans.
#[derive(Clone)]
pub struct PlanningAgent {
    config: AgentConfig,
    counter: Arc<dyn TokenCount>,
    limit: Limit,
}

impl fmt::Debug for PlanningAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlanningAgent").field("config", &self.config).finish_non_exhaustive()
    }
}

impl Situation {
    /// A question with nothing before it.
    pub fn new(question: impl Into<String>, mode: ToolCalling, tools: Offer<Vec<PromptTool>>) -> Self {
        Self {
            question: question.into(),
            history: Vec::new(),
            mode,
            tools,
            problems: Vec::new(),
            previous: None,
            done: Vec::new(),
        }
    }

    /// Everything that a plan may take a name from.
    fn all_said(&self) -> String {
        let history = self.history.iter().map(|message| message.text.as_str());
        let done = self.done.iter().map(|digest| digest.shown.as_str());
        history.chain(done).chain([self.question.as_str()]).collect::<Vec<_>>().join("\n")
    }

    fn done_ids(&self) -> Vec<&str> {
        self.done.iter().map(|digest| digest.step.as_str()).collect()
    }
}

impl PlanningAgent {
    /// Plans for this agent.
    pub fn new(config: AgentConfig, counter: Arc<dyn TokenCount>) -> Self {
        Self { config, counter, limit: Limit { tokens: PROMPT_TOKENS, others: OTHERS } }
    }

    /// The same with another limit on what is said about the agent and its tools.
    #[must_use]
    pub fn with_limit(mut self, limit: Limit) -> Self {
        self.limit = limit;
        self
    }

    /// What a model is asked.
    pub fn request(&self, situation: &Situation) -> ModelRequest {
        let mut request = match situation.mode {
            ToolCalling::Native => self.native(situation),
            ToolCalling::Text => self.in_text(situation),
            ToolCalling::Schema => self.held(situation),
        };
        request.messages.extend(recent(&situation.history, HISTORY_TOKENS, &*self.counter));
        let is_held = situation.mode == ToolCalling::Schema;
        let mut task = self.task(situation);
        if is_held && !situation.problems.is_empty() {
            task.push_str("\n\n");
            task.push_str(&filled(self.words().note, &[("problems", &noted(&situation.problems))]));
        }
        request.messages.push(ModelMessage::user(task));
        if let Some(previous) = situation.previous.as_ref().filter(|_| !is_held) {
            let previous: String = previous.chars().take(MAX_PREVIOUS).collect();
            request.messages.push(ModelMessage::assistant(previous));
            request.messages.push(ModelMessage::user(self.objection(&situation.problems)));
        }
        request.max_tokens = Some(if is_held { HELD_TOKENS } else { MAX_TOKENS });
        request.temperature = Some(0.0);
        request
    }

    fn words(&self) -> &'static Words {
        Words::of(self.config.language)
    }

    fn in_text(&self, situation: &Situation) -> ModelRequest {
        let (words, prompt) = (self.words(), PromptWords::of(self.config.language));
        let rules = format!("{}\n{}", prompt.calling_rules, words.rules);
        let paragraphs = [
            prompt.calling_heading,
            prompt.calling_form,
            words.planning_heading,
            words.form_text,
            &rules,
            words.tools_heading,
            prompt.tools_notice,
        ];
        let build = |limit| {
            build_with_paragraphs(&self.config, &paragraphs, offered(situation), limit, &*self.counter)
        };
        let text = within(self.limit, build).map(|prompt| prompt.text).unwrap_or_default();
        ModelRequest { messages: vec![ModelMessage::system(text.trim_end())], ..ModelRequest::default() }
    }

    /// For models that are held to a schema, which are the small ones: few words, signatures, examples as turns.
    fn held(&self, situation: &Situation) -> ModelRequest {
        let words = self.words();
        let AgentConfig { description, instructions, language, .. } = &self.config;
        let mut text = words.form_schema.to_owned();
        if !description.trim().is_empty() || !instructions.trim().is_empty() {
            text.push_str("\n\n");
            text.push_str(opening(&self.config, PromptWords::of(*language)).trim_end());
        }
        let tools = self.fitting(situation, self.counter.count(&text));
        for part in ["\n\n", words.schema_tools, "\n"] {
            text.push_str(part);
        }
        for tool in &tools {
            text.push_str(&signature(tool));
        }
        text.truncate(text.trim_end().len());
        let mut messages = vec![ModelMessage::system(text)];
        messages.extend(examples::turns());
        ModelRequest { messages, schema: Some(wanted(&plan_schema(&tools))), ..ModelRequest::default() }
    }

    /// The tools that fit: the core ones by name, then the most relevant ones, those by name too.
    fn fitting<'a>(&self, situation: &'a Situation, fixed: usize) -> Vec<&'a PromptTool> {
        let mut room = self.limit.tokens.saturating_sub(fixed);
        if !self.config.capabilities.enable_tool_calling {
            return Vec::new();
        }
        let by_name = |mut tools: Vec<&'a PromptTool>| {
            tools.sort_by(|one, other| one.name().cmp(other.name()));
            tools
        };
        let mut fits = |tool: &&'a PromptTool| {
            let left = room.checked_sub(self.counter.count(&signature(tool)));
            room = left.unwrap_or(room);
            left.is_some()
        };
        let core = by_name(situation.tools.core.iter().collect());
        let core: Vec<&PromptTool> = core.into_iter().filter(|tool| fits(tool)).collect();
        let is_core = |tool: &PromptTool| core.iter().any(|known| known.name() == tool.name());
        let others = situation.tools.others.iter().filter(|tool| !is_core(tool)).take(self.limit.others);
        let others = by_name(others.filter(|tool| fits(tool)).collect());
        core.iter().copied().chain(others).collect()
    }

    fn native(&self, situation: &Situation) -> ModelRequest {
        let Some(prompt) = self.native_prompt(situation) else { return ModelRequest::default() };
        let system = prompt.body.pointer("/messages/0/content").and_then(Value::as_str).unwrap_or_default();
        let mut tools = Vec::new();
        if !prompt.shown.is_empty() {
            let names = prompt.shown.iter().map(|shown| shown.tool.name());
            tools.push(ToolDefinition {
                name: MAKE_PLAN.to_owned(),
                description: self.words().make_plan.to_owned(),
                parameters: RawJson::from_value(&make_plan_schema(names)),
            });
        }
        let defined = prompt.body.get("tools").and_then(Value::as_array).into_iter().flatten();
        tools.extend(defined.filter_map(definition));
        ModelRequest { messages: vec![ModelMessage::system(system)], tools, ..ModelRequest::default() }
    }

    fn native_prompt(&self, situation: &Situation) -> Option<NativePrompt> {
        let words = self.words();
        let mut config = self.config.clone();
        let said = [config.instructions.trim(), words.planning_heading, words.form_native, words.rules];
        config.instructions =
            said.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n");
        within(self.limit, |limit| {
            build_native_prompt(&config, Provider::OpenAi, offered(situation), limit, &*self.counter)
        })
    }

    /// The task, and what was done of it.
    fn task(&self, situation: &Situation) -> String {
        let words = self.words();
        if situation.done.is_empty() {
            return situation.question.clone();
        }
        let mut lines =
            vec![filled(words.task, &[("question", &situation.question)]), words.so_far.to_owned()];
        for digest in &situation.done {
            let shown: String =
                fence::escaped(&fence::one_line(&digest.shown)).chars().take(MAX_SHOWN).collect();
            let sentence = if digest.failed { words.has_failed } else { words.is_done };
            let tool = fence::name(&digest.tool);
            lines.push(filled(sentence, &[("step", &digest.step), ("tool", &tool), ("shown", &shown)]));
        }
        lines.push(words.plan_rest.to_owned());
        lines.join("\n")
    }

    fn objection(&self, problems: &[PlanProblem]) -> String {
        let words = self.words();
        let mut lines = vec![words.problems.to_owned()];
        lines.extend(problems.iter().map(|problem| format!("- {problem}")));
        lines.push(words.again.to_owned());
        lines.join("\n")
    }
}

/// The tools of a situation. Whoever plans cannot look for others, unless there is a tool for that.
fn offered(situation: &Situation) -> Offer<Vec<PromptTool>> {
    let mut offer = situation.tools.clone();
    let can_search = offer.core.iter().chain(&offer.others).any(|tool| tool.name() == SEARCH_TOOLS);
    if !can_search {
        offer.exist = offer.core.len() + offer.others.len();
    }
    offer
}

/// A prompt within a limit; where not even the fixed words fit, those and a few tools.
fn within<T>(limit: Limit, build: impl Fn(Limit) -> Result<T, PromptError>) -> Option<T> {
    match build(limit) {
        Ok(prompt) => Some(prompt),
        Err(PromptError::TooSmall { needed, .. }) => {
            build(Limit { tokens: needed.saturating_add(limit.tokens), ..limit }).ok()
        }
    }
}

/// What `make_plan` takes: steps with tools by their names, and whatever arguments those take.
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

/// Problems as advice for somebody who does not remember the plan that had them.
fn noted(problems: &[PlanProblem]) -> String {
    let advice = |problem: &PlanProblem| match problem {
        PlanProblem::Unreadable { .. } => "answer in one of the three forms.".to_owned(),
        PlanProblem::BadId { .. } => "every step has an id of its own.".to_owned(),
        PlanProblem::UnknownTool { tool, nearest: Some(nearest), .. } => {
            format!("there is no tool `{tool}`, but there is `{nearest}`.")
        }
        PlanProblem::UnknownTool { tool, nearest: None, .. } => format!("there is no tool `{tool}`."),
        PlanProblem::MissingStep { reference, .. } => {
            format!("`{reference}` is no result of a step; refer only to earlier steps, by their ids.")
        }
        PlanProblem::BadArguments { reason, .. } => format!("{reason}."),
        PlanProblem::Cycle { .. } => "a step can only need earlier steps.".to_owned(),
        PlanProblem::TooLong { limit, .. } => format!("at most {limit} steps."),
    };
    let mut said: Vec<String> = problems.iter().take(MOST_NOTES).map(advice).collect();
    said.dedup();
    said.join(" ")
}

fn wanted(schema: &Value) -> WantedSchema {
    WantedSchema { name: "plan".to_owned(), schema: RawJson::from_value(schema) }
}

fn definition(tool: &Value) -> Option<ToolDefinition> {
    let function = tool.get("function")?;
    let text = |key: &str| function.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let parameters = RawJson::from_value(function.get("parameters")?);
    Some(ToolDefinition { name: text("name"), description: text("description"), parameters })
}

#[cfg(test)]
#[path = "planning_tests.rs"]
mod tests;
