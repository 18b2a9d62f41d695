//! Tool definitions for models that call tools by themselves, in the forms of OpenAI and Anthropic.

use std::collections::{BTreeMap, HashSet};

use serde_json::{Map, Value, json};

use super::{
    PromptError,
    call_schema::arguments_schema,
    choose::{Chosen, Limit, Offer, Shown, choose},
    closing,
    details::Form,
    fence, is_searchable, opening,
    schema_walk::visit,
    tool::PromptTool,
    words::Words,
};
use crate::{AgentConfig, TokenCount};

/// What a name may be long.
const MAX_NAME: usize = 64;
/// A tool without its parameters cannot be called, so there is no shorter form.
const FORMS: [Form; 3] = [Form::Full, Form::Compact, Form::Brief];
/// Words of a schema that say nothing to a model.
const NOISE: [&str; 4] = ["$schema", "$id", "$comment", "title"];

/// Whose form it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Provider {
    /// `tools` with `function`, and the system prompt as a message.
    OpenAi,
    /// `tools` with `input_schema`, and `system`.
    Anthropic,
}

/// The part of a request that tells a model who it is and which tools it has.
#[derive(Debug, Clone, PartialEq)]
pub struct NativePrompt {
    /// The fields of the request's body.
    pub body: Value,
    /// The tools in it, in their order.
    pub shown: Vec<Shown>,
    /// How many tools there are besides.
    pub left_out: usize,
    /// How large it is, about: what a provider makes of definitions is known to nobody else.
    pub tokens: usize,
    /// What a tool is really called, for those whose name a provider does not take.
    pub aliases: BTreeMap<String, String>,
}

/// The same as [`super::build_agent_system_prompt_with_tools`] for a model that calls tools by itself.
pub fn build_native_prompt(
    agent: &AgentConfig,
    provider: Provider,
    mut offer: Offer<impl IntoIterator<Item = PromptTool>>,
    limit: Limit,
    counter: &dyn TokenCount,
) -> Result<NativePrompt, PromptError> {
    let words = Words::of(agent.language);
    if !agent.capabilities.enable_tool_calling {
        offer.exist = 0;
    }
    let exist = offer.exist;
    let fixed = counter.count(&system(agent, exist, exist, true, words));
    let room = limit
        .tokens
        .checked_sub(fixed)
        .ok_or(PromptError::TooSmall { budget: limit.tokens, needed: fixed })?;
    let mut chosen = if exist == 0 {
        Chosen::default()
    } else {
        let piece = |tool: &PromptTool, form| {
            Some(format!("{},", definition(tool, &tool.name, form, provider, Place::Anywhere)?))
        };
        choose(offer, &FORMS, room, limit.others, counter, piece)
    };
    let mut less = 1;
    loop {
        let prompt = assembled(agent, provider, &chosen, exist, counter);
        if prompt.tokens <= limit.tokens {
            return Ok(prompt);
        }
        if chosen.len() == 0 {
            return Err(PromptError::TooSmall { budget: limit.tokens, needed: prompt.tokens });
        }
        chosen.shrink(less);
        less *= 2;
    }
}

/// Who the agent is, what it must keep to, and how many tools there are.
fn system(agent: &AgentConfig, shown: usize, left_out: usize, searchable: bool, words: &Words) -> String {
    let mut text = opening(agent, words);
    if shown + left_out > 0 {
        for paragraph in [words.calling_heading, words.calling_rules, words.native_notice] {
            text.push_str(paragraph);
            text.push_str("\n\n");
        }
        text.push_str(&closing(shown, left_out, searchable, words));
    }
    text.trim_end().to_owned()
}

fn assembled(
    agent: &AgentConfig,
    provider: Provider,
    chosen: &Chosen,
    exist: usize,
    counter: &dyn TokenCount,
) -> NativePrompt {
    let left_out = exist.saturating_sub(chosen.len());
    let system = system(agent, chosen.len(), left_out, is_searchable(chosen), Words::of(agent.language));
    let mut others: Vec<&Shown> = chosen.others.iter().collect();
    others.sort_by(|one, other| one.tool.name.cmp(&other.tool.name));
    let shown: Vec<Shown> = chosen.core.iter().chain(others).cloned().collect();
    let mut taken = HashSet::new();
    let mut aliases = BTreeMap::new();
    let mut tools = Vec::with_capacity(shown.len());
    for (at, Shown { tool, form, .. }) in shown.iter().enumerate() {
        let name = native_name(&tool.name, &mut taken);
        let place = if at + 1 == chosen.core.len() { Place::LastOfCore } else { Place::Anywhere };
        tools.extend(definition(tool, &name, *form, provider, place));
        if name != tool.name {
            aliases.insert(name, tool.name.clone());
        }
    }
    let tokens = counter.count(&system) + counter.count(&json!(tools).to_string());
    let mut body = match provider {
        Provider::OpenAi => json!({"messages": [{"role": "system", "content": system}]}),
        Provider::Anthropic => json!({"system": system}),
    };
    if let (Value::Object(fields), false) = (&mut body, tools.is_empty()) {
        fields.insert("tools".to_owned(), json!(tools));
    }
    NativePrompt { body, shown, left_out, tokens, aliases }
}

/// Where a tool stands. Behind the last core tool Anthropic's cache is told to begin: what is before it stays the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    LastOfCore,
    Anywhere,
}

/// A tool's definition; nothing where its schema holds control tokens in places that cannot be rewritten.
fn definition(tool: &PromptTool, name: &str, form: Form, provider: Provider, place: Place) -> Option<Value> {
    let description = match form {
        Form::Brief | Form::Name => tool.first_sentence(),
        Form::Full | Form::Plain | Form::Compact => tool.description(),
    };
    let description = fence::defused(&description);
    let schema = native_schema(tool, form)?;
    Some(match provider {
        Provider::OpenAi => json!({
            "type": "function",
            "function": {"name": name, "description": description, "parameters": schema},
        }),
        Provider::Anthropic => {
            let mut definition = json!({"name": name, "description": description, "input_schema": schema});
            if place == Place::LastOfCore
                && let Value::Object(fields) = &mut definition
            {
                fields.insert("cache_control".to_owned(), json!({"type": "ephemeral"}));
            }
            definition
        }
    })
}

/// The schema of a tool's arguments, with clean descriptions, in the form a model is shown.
fn native_schema(tool: &PromptTool, form: Form) -> Option<Value> {
    let mut schema = arguments_schema(&tool.schema);
    describe_properties(&mut schema, tool);
    visit(&mut schema, &mut |words| {
        for word in NOISE {
            if words.get(word).is_some_and(Value::is_string) {
                words.shift_remove(word);
            }
        }
        match words.get("description") {
            Some(Value::String(text)) if form == Form::Full => {
                let text = fence::defused(&fence::one_line(text)).into_owned();
                words.insert("description".to_owned(), json!(text));
            }
            Some(_) => {
                words.shift_remove("description");
            }
            None => {}
        }
        if form != Form::Full {
            words.shift_remove("examples");
        }
    });
    (!holds_control_tokens(&schema)).then_some(schema)
}

/// Puts what was found about parameters in the description where a model looks for it.
fn describe_properties(schema: &mut Value, tool: &PromptTool) {
    let Some(Value::Object(properties)) = schema.get_mut("properties") else { return };
    for param in &tool.params {
        if let (Some(Value::Object(words)), Some(text)) =
            (properties.get_mut(&param.name), &param.description)
        {
            words.insert("description".to_owned(), json!(text));
        }
    }
}

pub(super) fn holds_control_tokens(value: &Value) -> bool {
    let of_entries = |entries: &Map<String, Value>| {
        entries.iter().any(|(key, value)| fence::has_control_token(key) || holds_control_tokens(value))
    };
    match value {
        Value::String(text) => fence::has_control_token(text),
        Value::Array(items) => items.iter().any(holds_control_tokens),
        Value::Object(entries) => of_entries(entries),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// A name that providers take (letters, digits, `_`, `-`), and that no other tool has.
fn native_name(name: &str, taken: &mut HashSet<String>) -> String {
    let is_taken = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    let plain: String =
        name.chars().map(|letter| if is_taken(letter) { letter } else { '_' }).take(MAX_NAME).collect();
    let plain = if plain.is_empty() { "_".to_owned() } else { plain };
    let mut free = plain.clone();
    let mut number = 1;
    while !taken.insert(free.clone()) {
        number += 1;
        let end = format!("_{number}");
        let start: String = plain.chars().take(MAX_NAME - end.len()).collect();
        free = format!("{start}{end}");
    }
    free
}

#[cfg(test)]
#[path = "native_tests.rs"]
mod tests;
