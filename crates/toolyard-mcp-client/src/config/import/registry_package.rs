//! A package of the registry as a program to start: npm with npx, PyPI with uvx, images with docker.

use super::registry_input::{InputResolver, VariablePrefix};
use crate::config::{
    ServerSettings, Template, client_file::document::Node, client_file::server_entry::EntryError,
};

pub(super) struct PackageCommand {
    runtime: String,
    kind: PackageKind,
    /// The package with its version, as an argument of the runtime.
    target: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum PackageKind {
    Npm,
    Pypi,
    Image,
}

pub(super) fn parse(package: &Node) -> Result<PackageCommand, EntryError> {
    let text = |names: &[&str]| package.get_any(names).and_then(Node::text);
    let registry =
        text(&["registryType", "registry_type", "registryName", "registry_name"]).unwrap_or_default();
    let kind = match registry {
        "npm" => PackageKind::Npm,
        "pypi" => PackageKind::Pypi,
        "oci" | "docker" => PackageKind::Image,
        _ => return Err(EntryError::Unsupported("the package is neither npm, PyPI nor an image")),
    };
    let transport = package.get("transport").and_then(|transport| transport.get("type")).and_then(Node::text);
    if transport.is_some_and(|kind| kind != "stdio") {
        return Err(EntryError::Unsupported("the package serves HTTP; start it and add its `url`"));
    }
    let identifier = text(&["identifier", "name"])
        .filter(|name| !name.is_empty() && !name.starts_with('-'))
        .ok_or(EntryError::Unsupported("the package has no valid name"))?;
    let version = text(&["version"]).filter(|version| !version.is_empty() && *version != "latest");
    let has_tag = identifier.rsplit('/').next().is_some_and(|last| last.contains([':', '@']));
    let target = match (kind, version) {
        (PackageKind::Npm | PackageKind::Pypi, Some(version)) => format!("{identifier}@{version}"),
        (PackageKind::Image, Some(version)) if !has_tag => format!("{identifier}:{version}"),
        _ => identifier.to_owned(),
    };
    let default_runtime = match kind {
        PackageKind::Npm => "npx",
        PackageKind::Pypi => "uvx",
        PackageKind::Image => "docker",
    };
    // Only known runtimes: a downloaded file must not choose the program.
    let runtime = text(&["runtimeHint", "runtime_hint"])
        .filter(|hint| matches!(*hint, "npx" | "bunx" | "pnpx" | "uvx" | "pipx" | "docker" | "podman"));
    Ok(PackageCommand {
        runtime: runtime.unwrap_or(default_runtime).to_owned(),
        kind,
        target: Template::escape(&target),
    })
}

impl PackageCommand {
    pub(super) fn into_settings(self, package: &Node, resolver: &mut InputResolver<'_>) -> ServerSettings {
        let list = |names: &[&str]| package.get_any(names).map(Node::items).unwrap_or_default();
        let inputs = list(&["environmentVariables", "environment_variables"]);
        let env: std::collections::BTreeMap<String, String> = inputs
            .iter()
            .filter_map(|input| {
                let name = input.get("name").and_then(Node::text)?;
                Some((name.to_owned(), resolver.input(input, name, VariablePrefix::None)?))
            })
            .collect();
        let runtime_arguments = arguments(list(&["runtimeArguments", "runtime_arguments"]), resolver);
        if !runtime_arguments.is_empty() {
            let note = format!("the file passes options to `{}`: review them", self.runtime);
            resolver.notes.push(note);
        }
        let mut args = Vec::new();
        if self.kind == PackageKind::Image && runtime_arguments.first().is_none_or(|first| first != "run") {
            args.extend(["run", "-i", "--rm"].map(str::to_owned));
        }
        if self.runtime == "npx" && !runtime_arguments.iter().any(|word| word == "-y" || word == "--yes") {
            args.push("-y".to_owned());
        }
        if self.runtime == "pipx" && runtime_arguments.is_empty() {
            args.push("run".to_owned());
        }
        args.extend(runtime_arguments);
        if self.kind == PackageKind::Image {
            args.extend(env.keys().flat_map(|name| ["-e".to_owned(), name.clone()]));
        }
        args.push(self.target);
        args.extend(arguments(list(&["packageArguments", "package_arguments"]), resolver));
        ServerSettings { command: Some(self.runtime), args, env, ..ServerSettings::default() }
    }
}

fn arguments(inputs: &[Node], resolver: &mut InputResolver<'_>) -> Vec<String> {
    inputs.iter().flat_map(|input| argument(input, resolver)).collect()
}

/// A positional argument, or a name followed by a value.
fn argument(input: &Node, resolver: &mut InputResolver<'_>) -> Vec<String> {
    let text = |names: &[&str]| input.get_any(names).and_then(Node::text).unwrap_or_default();
    let name = text(&["name"]);
    if text(&["type"]) != "named" {
        let hint = text(&["valueHint", "value_hint", "name", "description"]);
        return resolver.input(input, hint, VariablePrefix::ServerName).into_iter().collect();
    }
    let is_flag =
        text(&["format"]) == "boolean" || input.get_any(&["value", "default", "valueHint"]).is_none();
    let is_required = input.get_any(&["isRequired", "is_required"]).is_some_and(Node::is_true);
    if is_flag && !input.get_any(&["isSecret", "is_secret"]).is_some_and(Node::is_true) {
        let is_on = input
            .get_any(&["value", "default"])
            .and_then(Node::scalar_text)
            .is_some_and(|value| value == "true");
        return if is_on || is_required { vec![Template::escape(name)] } else { Vec::new() };
    }
    match resolver.input(input, name.trim_start_matches('-'), VariablePrefix::ServerName) {
        Some(value) => vec![Template::escape(name), value],
        None => Vec::new(),
    }
}
