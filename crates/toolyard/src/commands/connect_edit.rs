//! Changes to the files of other clients that keep what a person wrote: order, comments, spelling.

use jsonc_parser::{
    ParseOptions,
    cst::{CstInputValue, CstObject, CstRootNode},
};
use serde_json::{Map, Value};
use toml_edit::{DocumentMut, Item, Table, TableLike};
use toolyard_mcp::config::import::Client;

/// The name of our own entry.
pub(super) const OWN: &str = "toolyard";
/// What VS Code asks a person for, once.
pub(super) const INPUT: &str = "toolyard-token";

/// A client's servers by the names they have there, as JSON.
pub(super) fn servers(client: Client, text: &str) -> Result<Map<String, Value>, String> {
    let table = table_name(client);
    if client == Client::Codex {
        let document: toml::Table = toml::from_str(text).map_err(|error| error.message().to_owned())?;
        let servers = document.get(table).cloned().unwrap_or(toml::Value::Table(toml::Table::new()));
        return match serde_json::to_value(servers) {
            Ok(Value::Object(servers)) => Ok(servers),
            _ => Err(format!("`{table}` is no table")),
        };
    }
    match json(text)?.get(table) {
        None => Ok(Map::new()),
        Some(Value::Object(servers)) => Ok(servers.clone()),
        Some(_) => Err(format!("`{table}` is no object")),
    }
}

/// One server of a client as a document of its own.
pub(super) fn alone(client: Client, name: &str, server: &Value) -> String {
    let document = serde_json::json!({ table_name(client): { name: server } });
    match client {
        Client::Codex => toml::to_string(&document).unwrap_or_default(),
        _ => document.to_string(),
    }
}

/// What is to be done to a client's file.
#[derive(Debug, Default)]
pub(super) struct Edit<'a> {
    /// Servers that are taken out.
    pub(super) out: Vec<&'a str>,
    /// Servers that are put in, in place of others of the same name.
    pub(super) put: Vec<(&'a str, &'a Value)>,
    /// Whether a person is asked for the token, or not any more.
    pub(super) input: Option<bool>,
}

/// The text with the changes. A text that cannot be understood is never changed.
pub(super) fn edited(client: Client, text: &str, edit: &Edit<'_>) -> Result<String, String> {
    let new = if client == Client::Codex { in_toml(text, edit)? } else { in_json(client, text, edit)? };
    let (before, after) = (servers(client, text)?, servers(client, &new)?);
    let mut expected = before;
    expected.retain(|name, _| !edit.out.contains(&name.as_str()));
    for (name, server) in &edit.put {
        expected.insert((*name).to_owned(), (*server).clone());
    }
    let same =
        expected.len() == after.len() && expected.iter().all(|(name, one)| after.get(name) == Some(one));
    if same { Ok(new) } else { Err("it cannot be changed without losing something".to_owned()) }
}

fn table_name(client: Client) -> &'static str {
    match client {
        Client::VsCode => "servers",
        Client::Codex => "mcp_servers",
        _ => "mcpServers",
    }
}

fn options() -> ParseOptions {
    ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    }
}

fn json(text: &str) -> Result<Value, String> {
    if text.trim().is_empty() {
        return Ok(Value::Object(Map::new()));
    }
    match jsonc_parser::parse_to_serde_value(text, &options()) {
        Ok(value @ Value::Object(_)) => Ok(value),
        Ok(_) => Err("it is no JSON object".to_owned()),
        Err(error) => Err(format!("it is not JSON: {error}")),
    }
}

fn in_json(client: Client, text: &str, edit: &Edit<'_>) -> Result<String, String> {
    json(text)?;
    let text = if text.trim().is_empty() { "{}\n" } else { text };
    let root = CstRootNode::parse(text, &options()).map_err(|error| format!("it is not JSON: {error}"))?;
    let document = root.object_value().ok_or("it is no JSON object")?;
    let wrong = |name: &str| format!("`{name}` is no object");
    let table = table_name(client);
    let servers = document.object_value_or_create(table).ok_or_else(|| wrong(table))?;
    for name in &edit.out {
        if let Some(server) = servers.get(name) {
            server.remove();
        }
    }
    for (name, server) in &edit.put {
        match servers.get(name) {
            Some(known) => known.set_value(input_value(server)),
            None => {
                servers.append(name, input_value(server));
            }
        }
    }
    if let Some(wanted) = edit.input.filter(|_| client == Client::VsCode) {
        ask_for_token(&document, wanted)?;
    }
    Ok(root.to_string())
}

/// Sees to it that VS Code asks a person for the token, or does not any more.
fn ask_for_token(document: &CstObject, wanted: bool) -> Result<(), String> {
    if document.get("inputs").is_none() && !wanted {
        return Ok(());
    }
    let inputs = document.array_value_or_create("inputs").ok_or("`inputs` is no array")?;
    let is_ours = |value: &Value| value.get("id").is_some_and(|id| id == INPUT);
    let ours =
        inputs.elements().into_iter().find(|input| input.to_serde_value().as_ref().is_some_and(is_ours));
    match (ours, wanted) {
        (None, true) => {
            let input = serde_json::json!({"type": "promptString", "id": INPUT, "description": "Token of toolyard serve", "password": true});
            inputs.append(input_value(&input));
        }
        (Some(ours), false) => {
            ours.remove();
            if inputs.elements().is_empty()
                && let Some(inputs) = document.get("inputs")
            {
                inputs.remove();
            }
        }
        _ => {}
    }
    Ok(())
}

fn input_value(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(truth) => CstInputValue::Bool(*truth),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(input_value).collect()),
        Value::Object(fields) => CstInputValue::Object(
            fields.iter().map(|(key, value)| (key.clone(), input_value(value))).collect(),
        ),
    }
}

fn in_toml(text: &str, edit: &Edit<'_>) -> Result<String, String> {
    let mut document: DocumentMut = text.parse().map_err(|error| format!("it is not TOML: {error}"))?;
    let table = table_name(Client::Codex);
    let servers = document.entry(table).or_insert_with(|| {
        let mut servers = Table::new();
        servers.set_implicit(true);
        Item::Table(servers)
    });
    let servers: &mut dyn TableLike = servers.as_table_like_mut().ok_or(format!("`{table}` is no table"))?;
    for name in &edit.out {
        servers.remove(name);
    }
    for (name, server) in &edit.put {
        let written = toml::to_string(server).map_err(|error| format!("it cannot be written: {error}"))?;
        let written: DocumentMut =
            written.parse().map_err(|error| format!("it cannot be written: {error}"))?;
        servers.insert(name, Item::Table(fresh(written.as_table())));
    }
    if servers.is_empty() {
        document.remove(table);
    }
    Ok(document.to_string())
}

/// A table without the places it had in another document, which would scatter it over this one.
fn fresh(table: &Table) -> Table {
    let mut copy = Table::new();
    for (key, item) in table {
        let item = item.as_table().map_or_else(|| item.clone(), |inner| Item::Table(fresh(inner)));
        copy.insert(key, item);
    }
    copy
}

#[cfg(test)]
#[path = "connect_edit_tests.rs"]
mod tests;
