//! Changes to `toolyard.toml` that keep what a person wrote: order, comments, spelling.

use toml_edit::{DocumentMut, Item, Table, TableLike, Value};

use super::{
    ConfigError, DocumentError, ServerSettings, check_name,
    document::{checked, not_toml},
    hidden::shown,
    valid_name,
};

/// Why `toolyard.toml` cannot be changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EditError {
    /// It cannot be read.
    #[error(transparent)]
    Unreadable(#[from] DocumentError),
    /// What would be written makes no sense.
    #[error(transparent)]
    Invalid(#[from] ConfigError),
    /// `servers` is there and is something else.
    #[error("`servers` is no table: write `[servers.NAME]`")]
    NotATable,
    /// The name is taken.
    #[error("server `{0}` is there already: remove it first, or choose another name")]
    Taken(String),
}

/// The text with one more server.
pub fn add_server(text: &str, name: &str, settings: &ServerSettings) -> Result<String, EditError> {
    let mut document = parse(text)?;
    if servers(&document).is_some_and(|servers| servers.contains_key(name)) {
        return Err(EditError::Taken(shown(name)));
    }
    put_server(&mut document, name, settings)?;
    Ok(document.to_string())
}

/// The text without a server; none when it is not there.
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

pub(super) fn parse(text: &str) -> Result<DocumentMut, DocumentError> {
    let text = checked(text)?;
    text.parse().map_err(|error: toml_edit::TomlError| not_toml(text, error.message(), error.span()))
}

pub(super) fn servers(document: &DocumentMut) -> Option<&dyn TableLike> {
    document.get("servers").and_then(Item::as_table_like)
}

/// Writes a server into the document, in place of one of the same name.
pub(super) fn put_server(
    document: &mut DocumentMut,
    name: &str,
    settings: &ServerSettings,
) -> Result<(), EditError> {
    check_name(name).map_err(|problem| ConfigError::Name {
        name: shown(name),
        problem,
        better: valid_name(name),
    })?;
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
        Some(Item::Table(old)) => replace(old, table),
        Some(other) => *other = Item::Table(table),
        None => {
            servers.insert(name, Item::Table(table));
        }
    }
    Ok(())
}

/// Changes a table into another one, keeping where it stands and the comments of what stays the same.
fn replace(old: &mut Table, new: Table) {
    let gone: Vec<String> =
        old.iter().map(|(key, _)| key.to_owned()).filter(|key| !new.contains_key(key)).collect();
    for key in gone {
        old.remove(&key);
    }
    for (key, item) in new {
        match (old.get_mut(&key), item) {
            (Some(Item::Table(old)), Item::Table(new)) => replace(old, new),
            (Some(old), item) if plain(old) == plain(&item) => {}
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

/// What an item says, without how it is written.
fn plain(item: &Item) -> Option<toml::Value> {
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
    fresh(document.as_table())
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
