//! `toolyard settings show`: the settings in effect and where each value comes from.

use serde_json::Value;
use toolyard_gateway::{SettingOrigin, SettingValue};

use crate::{config::CliContext, error::CliError, terminal::Output};

/// Prints the settings; those that nobody set only with `all` or as JSON.
pub(super) fn run(all: bool, context: &CliContext, output: &Output) -> Result<(), CliError> {
    let report = context.settings_report()?;
    if output.is_json() {
        output.json(&report);
        return Ok(());
    }
    let is_set = |value: &&SettingValue| all || value.origin != SettingOrigin::Default;
    let rows: Vec<[String; 3]> = report.values.iter().filter(is_set).map(row).collect();
    if rows.is_empty() {
        output.message("Nothing is set: all settings have their defaults");
        output.message("  hint: show them: toolyard settings show --all");
        return Ok(());
    }
    output.table(["KEY", "VALUE", "FROM"], rows);
    Ok(())
}

fn row(setting: &SettingValue) -> [String; 3] {
    let value = match &setting.value {
        Value::Null if setting.secret && setting.origin != SettingOrigin::Default => "(secret)".to_owned(),
        Value::Null => "(not set)".to_owned(),
        Value::String(text) => text.clone(),
        value => value.to_string(),
    };
    let origin = match setting.origin {
        SettingOrigin::Default => "default".to_owned(),
        SettingOrigin::File => setting.file.clone().unwrap_or_default(),
        SettingOrigin::CommandLine => "command line".to_owned(),
    };
    [setting.key.clone(), value, origin]
}
