//! Edits the configuration files of clients and preserves order, comments and formatting.

use jsonc_parser::cst::{CstInputValue, CstObject, CstRootNode};
use serde_json::{Map, Value};
use toml_edit::{DocumentMut, Item, Table, TableLike};

use super::Client;
use crate::config::{
    DocumentError,
    client_file::document::{json_error, json_options, parse_json, toml_error},
    settings_file::{parse, without_positions},
};

/// Why a client's file cannot be edited.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what the variants mean")]
pub enum ClientFileError {
    #[error(transparent)]
    Unreadable(#[from] DocumentError),
    /// The configuration file of a client is not an object, so no server can be added to it.
    ///
    /// Remedy: correct the file, or delete it and let the client write it again.
    #[error("the file is not a JSON object")]
    NotAnObject,
    /// The place where the client keeps its servers has another type.
    ///
    /// Remedy: correct the file: the servers are an object or table by name.
    #[error("`{0}` is not a table of servers")]
    NotATable(&'static str),
    /// `inputs` of VS Code has another type than a list.
    ///
    /// Remedy: make `inputs` a list in the file of VS Code, or remove it.
    #[error("`inputs` is not an array")]
    InputsNotAnArray,
    /// The entry of a server that `toolyard connect` puts into the file of Codex has values that TOML cannot express.
    /// Nothing was changed.
    ///
    /// Remedy: correct the entry of the server in the file, or change the file by hand.
    #[error("a server cannot be written as TOML: {0}")]
    Unwritable(String),
    /// The file has a form that Toolyard cannot change without touching other servers, so it changes nothing.
    ///
    /// Remedy: change the file by hand, or bring it into the form that the client itself writes, and try again.
    #[error("the edit would change other servers")]
    Lossy,
}

/// An edit of a client's file.
#[derive(Debug, Default)]
pub struct ClientFileEdit<'a> {
    /// Servers to remove.
    pub remove: Vec<&'a str>,
    /// Servers to insert or replace.
    pub insert: Vec<(&'a str, &'a Value)>,
    /// An input with which VS Code prompts for a secret.
    pub input: Option<InputEdit<'a>>,
}

/// An edit of VS Code's `inputs`.
#[derive(Debug, Clone, Copy)]
pub struct InputEdit<'a> {
    /// The id of the input.
    pub id: &'a str,
    /// The input to add, if it does not exist; `None` removes it.
    pub input: Option<&'a Value>,
}

/// A client's servers by name, as JSON.
pub fn client_servers(client: Client, text: &str) -> Result<Map<String, Value>, ClientFileError> {
    let table = table_name(client);
    if client == Client::Codex {
        let document: toml::Table =
            toml::from_str(text).map_err(|error| toml_error(text, error.message(), error.span()))?;
        let servers = document.get(table).cloned().unwrap_or(toml::Value::Table(toml::Table::new()));
        return match serde_json::to_value(servers) {
            Ok(Value::Object(servers)) => Ok(servers),
            _ => Err(ClientFileError::NotATable(table)),
        };
    }
    match parse_object(text)?.get(table) {
        None => Ok(Map::new()),
        Some(Value::Object(servers)) => Ok(servers.clone()),
        Some(_) => Err(ClientFileError::NotATable(table)),
    }
}

/// A document of this client with a single server.
pub fn single_server_document(client: Client, name: &str, server: &Value) -> String {
    let document = serde_json::json!({ table_name(client): { name: server } });
    match client {
        Client::Codex => toml::to_string(&document).unwrap_or_default(),
        _ => document.to_string(),
    }
}

/// The text after the edit. Fails if the text is invalid or the edit would change other servers.
pub fn edit_client_file(
    client: Client,
    text: &str,
    edit: &ClientFileEdit<'_>,
) -> Result<String, ClientFileError> {
    let edited =
        if client == Client::Codex { edit_toml(text, edit)? } else { edit_json(client, text, edit)? };
    let (mut expected, actual) = (client_servers(client, text)?, client_servers(client, &edited)?);
    expected.retain(|name, _| !edit.remove.contains(&name.as_str()));
    for (name, server) in &edit.insert {
        expected.insert((*name).to_owned(), (*server).clone());
    }
    let is_same = expected.len() == actual.len()
        && expected.iter().all(|(name, server)| actual.get(name) == Some(server));
    if is_same { Ok(edited) } else { Err(ClientFileError::Lossy) }
}

fn table_name(client: Client) -> &'static str {
    match client {
        Client::VsCode => "servers",
        Client::Codex => "mcp_servers",
        _ => "mcpServers",
    }
}

/// A JSON object; an empty file counts as an empty object.
fn parse_object(text: &str) -> Result<Map<String, Value>, ClientFileError> {
    if text.trim().is_empty() {
        return Ok(Map::new());
    }
    match parse_json(text)? {
        Value::Object(object) => Ok(object),
        _ => Err(ClientFileError::NotAnObject),
    }
}

fn edit_json(client: Client, text: &str, edit: &ClientFileEdit<'_>) -> Result<String, ClientFileError> {
    parse_object(text)?;
    let text = if text.trim().is_empty() { "{}\n" } else { text };
    let root = CstRootNode::parse(text, &json_options()).map_err(|error| json_error(&error))?;
    let document = root.object_value().ok_or(ClientFileError::NotAnObject)?;
    let table = table_name(client);
    let servers = document.object_value_or_create(table).ok_or(ClientFileError::NotATable(table))?;
    for name in &edit.remove {
        if let Some(server) = servers.get(name) {
            server.remove();
        }
    }
    for (name, server) in &edit.insert {
        match servers.get(name) {
            Some(existing) => existing.set_value(input_value(server)),
            None => {
                servers.append(name, input_value(server));
            }
        }
    }
    if let Some(edit) = edit.input.filter(|_| client == Client::VsCode) {
        edit_input(&document, edit)?;
    }
    Ok(root.to_string())
}

fn edit_input(document: &CstObject, edit: InputEdit<'_>) -> Result<(), ClientFileError> {
    if document.get("inputs").is_none() && edit.input.is_none() {
        return Ok(());
    }
    let inputs = document.array_value_or_create("inputs").ok_or(ClientFileError::InputsNotAnArray)?;
    let has_id = |value: &Value| value.get("id").is_some_and(|id| id == edit.id);
    let existing =
        inputs.elements().into_iter().find(|input| input.to_serde_value().as_ref().is_some_and(has_id));
    match (existing, edit.input) {
        (None, Some(input)) => {
            inputs.append(input_value(input));
        }
        (Some(existing), None) => {
            existing.remove();
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
        Value::Bool(flag) => CstInputValue::Bool(*flag),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(input_value).collect()),
        Value::Object(fields) => CstInputValue::Object(
            fields.iter().map(|(key, value)| (key.clone(), input_value(value))).collect(),
        ),
    }
}

fn edit_toml(text: &str, edit: &ClientFileEdit<'_>) -> Result<String, ClientFileError> {
    let mut document: DocumentMut = parse(text)?;
    let table = table_name(Client::Codex);
    let servers = document.entry(table).or_insert_with(|| {
        let mut servers = Table::new();
        servers.set_implicit(true);
        Item::Table(servers)
    });
    let servers: &mut dyn TableLike = servers.as_table_like_mut().ok_or(ClientFileError::NotATable(table))?;
    for name in &edit.remove {
        servers.remove(name);
    }
    for (name, server) in &edit.insert {
        let unwritable = |error: &dyn std::fmt::Display| ClientFileError::Unwritable(error.to_string());
        let table_text = toml::to_string(server).map_err(|error| unwritable(&error))?;
        let server_table: DocumentMut =
            table_text.parse().map_err(|error: toml_edit::TomlError| unwritable(&error))?;
        servers.insert(name, Item::Table(without_positions(server_table.as_table())));
    }
    if servers.is_empty() {
        document.remove(table);
    }
    Ok(document.to_string())
}

#[cfg(test)]
#[path = "client_file_edit_tests.rs"]
mod tests;
