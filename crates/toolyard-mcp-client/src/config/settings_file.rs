//! Edits `toolyard.toml` and preserves order, comments and formatting.

use toml_edit::{DocumentMut, Item, Table, TableLike, Value};

use super::{
    ConfigError, DocumentError, ServerSettings,
    client_file::document::{check_text, toml_error},
    redacted::safe_preview,
};

/// Why `toolyard.toml` cannot be changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what the variants mean")]
pub enum EditError {
    #[error(transparent)]
    Unreadable(#[from] DocumentError),
    #[error(transparent)]
    Invalid(#[from] ConfigError),
    /// `servers` in `toolyard.toml` has another type than a table.
    ///
    /// Remedy: write each server as `[servers.NAME]`.
    #[error("`servers` is not a table: write `[servers.NAME]`")]
    NotATable,
    /// The settings have a server of this name.
    ///
    /// Remedy: change it with `toolyard servers edit NAME --set KEY=VALUE`, remove it with `toolyard servers remove
    /// NAME`, or choose another name.
    #[error("server `{0}` exists already: remove it first, or choose another name")]
    NameTaken(String),
}

/// The text with a server added.
pub fn add_server(text: &str, name: &str, settings: &ServerSettings) -> Result<String, EditError> {
    let mut document = parse(text)?;
    if servers(&document).is_some_and(|servers| servers.contains_key(name)) {
        return Err(EditError::NameTaken(safe_preview(name)));
    }
    put_server(&mut document, name, settings)?;
    Ok(document.to_string())
}

/// The text without a server; `None` if it does not exist.
pub fn remove_server(text: &str, name: &str) -> Result<Option<String>, EditError> {
    let mut document = parse(text)?;
    let Some(servers) = document.get_mut("servers") else { return Ok(None) };
    let servers = servers.as_table_like_mut().ok_or(EditError::NotATable)?;
    if servers.remove(name).is_none() {
        return Ok(None);
    }
    if servers.is_empty() {
        document.remove("servers");
    }
    Ok(Some(document.to_string()))
}

/// The text with other settings of a server; `None` if it does not exist. Comments of unchanged settings are kept.
pub fn change_server(text: &str, name: &str, settings: &ServerSettings) -> Result<Option<String>, EditError> {
    let mut document = parse(text)?;
    if !servers(&document).is_some_and(|servers| servers.contains_key(name)) {
        return Ok(None);
    }
    put_server(&mut document, name, settings)?;
    Ok(Some(document.to_string()))
}

pub(super) fn parse(text: &str) -> Result<DocumentMut, DocumentError> {
    let text = check_text(text)?;
    text.parse().map_err(|error: toml_edit::TomlError| toml_error(text, error.message(), error.span()))
}

pub(super) fn servers(document: &DocumentMut) -> Option<&dyn TableLike> {
    document.get("servers").and_then(Item::as_table_like)
}

pub(super) fn put_server(
    document: &mut DocumentMut,
    name: &str,
    settings: &ServerSettings,
) -> Result<(), EditError> {
    settings.clone().into_config(name, std::path::Path::new("/"))?;
    let servers = document.entry("servers").or_insert_with(|| {
        let mut table = Table::new();
        table.set_implicit(true);
        Item::Table(table)
    });
    let table = server_table(settings);
    if let Some(inline) = servers.as_inline_table_mut() {
        inline.insert(name, Value::InlineTable(table.into_inline_table()));
        return Ok(());
    }
    let servers = servers.as_table_mut().ok_or(EditError::NotATable)?;
    match servers.get_mut(name) {
        Some(Item::Table(old)) => replace_contents(old, table),
        Some(other) => *other = Item::Table(table),
        None => {
            servers.insert(name, Item::Table(table));
        }
    }
    Ok(())
}

/// Replaces the contents of a table, keeping its position and the comments of unchanged items.
fn replace_contents(old: &mut Table, new: Table) {
    let removed_keys: Vec<String> =
        old.iter().map(|(key, _)| key.to_owned()).filter(|key| !new.contains_key(key)).collect();
    for key in removed_keys {
        old.remove(&key);
    }
    for (key, item) in new {
        match (old.get_mut(&key), item) {
            (Some(Item::Table(old)), Item::Table(new)) => replace_contents(old, new),
            (Some(old), item) if unformatted_value(old) == unformatted_value(&item) => {}
            (Some(Item::Value(old)), Item::Value(mut new)) => {
                *new.decor_mut() = old.decor().clone();
                *old = new;
            }
            (_, item) => {
                old.insert(&key, item);
            }
        }
    }
}

/// The value of an item, without formatting.
fn unformatted_value(item: &Item) -> Option<toml::Value> {
    let text = match item {
        Item::Value(value) => value.clone().decorated("", "").to_string(),
        Item::Table(table) => table.clone().into_inline_table().to_string(),
        Item::None | Item::ArrayOfTables(_) => return None,
    };
    toml::from_str::<toml::Table>(&format!("v = {}", text.trim())).ok()?.remove("v")
}

/// Settings as a table: plain fields first, then `env`, `headers` and `oauth` as tables of their own.
pub(super) fn server_table(settings: &ServerSettings) -> Table {
    let text = toml::to_string(settings).unwrap_or_default();
    let document: DocumentMut = text.parse().unwrap_or_default();
    without_positions(document.as_table())
}

/// A copy without positions in the source document, which would scatter its subtables over the target.
pub(super) fn without_positions(table: &Table) -> Table {
    let mut copy = Table::new();
    for (key, item) in table {
        let item =
            item.as_table().map_or_else(|| item.clone(), |inner| Item::Table(without_positions(inner)));
        copy.insert(key, item);
    }
    copy
}
