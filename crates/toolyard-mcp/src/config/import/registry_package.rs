//! A package of the registry as a program to start: npm with npx, PyPI with uvx, images with docker.

use super::registry::Filler;
use crate::config::{ServerSettings, Template, document::Node, entry::EntryProblem};

/// How a package is started, before its arguments are known.
pub(super) struct Start {
    runtime: String,
    kind: Kind,
    target: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Npm,
    Pypi,
    Image,
}

/// Says how a package is started, if it can be.
pub(super) fn read(package: &Node) -> Result<Start, EntryProblem> {
    let text = |names: &[&str]| package.either(names).and_then(Node::text);
    let registry =
        text(&["registryType", "registry_type", "registryName", "registry_name"]).unwrap_or_default();
    let kind = match registry {
        "npm" => Kind::Npm,
        "pypi" => Kind::Pypi,
        "oci" | "docker" => Kind::Image,
        _ => return Err(EntryProblem::Unsupported("its package is neither npm, PyPI nor an image")),
    };
    let transport = package.get("transport").and_then(|transport| transport.get("type")).and_then(Node::text);
    if transport.is_some_and(|kind| kind != "stdio") {
        return Err(EntryProblem::Unsupported(
            "its package opens an address of its own; start it and add its `url`",
        ));
    }
    let identifier = text(&["identifier", "name"])
        .filter(|name| !name.is_empty() && !name.starts_with('-'))
        .ok_or(EntryProblem::Unsupported("its package has no usable name"))?;
    let version = text(&["version"]).filter(|version| !version.is_empty() && *version != "latest");
    let has_tag = identifier.rsplit('/').next().is_some_and(|last| last.contains([':', '@']));
    let target = match (kind, version) {
        (Kind::Npm | Kind::Pypi, Some(version)) => format!("{identifier}@{version}"),
        (Kind::Image, Some(version)) if !has_tag => format!("{identifier}:{version}"),
        _ => identifier.to_owned(),
    };
    let usual = match kind {
        Kind::Npm => "npx",
        Kind::Pypi => "uvx",
        Kind::Image => "docker",
    };
    // Only runtimes that are known: a file from the net does not choose the program that is run here.
    let runtime = text(&["runtimeHint", "runtime_hint"])
        .filter(|hint| matches!(*hint, "npx" | "bunx" | "pnpx" | "uvx" | "pipx" | "docker" | "podman"));
    Ok(Start { runtime: runtime.unwrap_or(usual).to_owned(), kind, target: Template::escape(&target) })
}

impl Start {
    /// The whole start, with inputs filled in.
    pub(super) fn settings(self, package: &Node, filler: &mut Filler<'_>) -> ServerSettings {
        let list = |names: &[&str]| package.either(names).map(Node::items).unwrap_or_default();
        let inputs = list(&["environmentVariables", "environment_variables"]);
        let env: std::collections::BTreeMap<String, String> = inputs
            .iter()
            .filter_map(|input| {
                let name = input.get("name").and_then(Node::text)?;
                Some((name.to_owned(), filler.input(input, name, false)?))
            })
            .collect();
        let runtime_arguments = arguments(list(&["runtimeArguments", "runtime_arguments"]), filler);
        if !runtime_arguments.is_empty() {
            let note = format!(
                "its file gives options to `{}` itself: look at them before you use it",
                self.runtime
            );
            filler.notes.push(note);
        }
        let mut args = Vec::new();
        if self.kind == Kind::Image && runtime_arguments.first().is_none_or(|first| first != "run") {
            args.extend(["run", "-i", "--rm"].map(str::to_owned));
        }
        if self.runtime == "npx" && !runtime_arguments.iter().any(|word| word == "-y" || word == "--yes") {
            args.push("-y".to_owned());
        }
        if self.runtime == "pipx" && runtime_arguments.is_empty() {
            args.push("run".to_owned());
        }
        args.extend(runtime_arguments);
        if self.kind == Kind::Image {
            args.extend(env.keys().flat_map(|name| ["-e".to_owned(), name.clone()]));
        }
        args.push(self.target);
        args.extend(arguments(list(&["packageArguments", "package_arguments"]), filler));
        ServerSettings { command: Some(self.runtime), args, env, ..ServerSettings::default() }
    }
}

fn arguments(inputs: &[Node], filler: &mut Filler<'_>) -> Vec<String> {
    inputs.iter().flat_map(|input| argument(input, filler)).collect()
}

/// One argument: a word in its place, or a name with a value after it.
fn argument(input: &Node, filler: &mut Filler<'_>) -> Vec<String> {
    let text = |names: &[&str]| input.either(names).and_then(Node::text).unwrap_or_default();
    let name = text(&["name"]);
    if text(&["type"]) != "named" {
        let hint = text(&["valueHint", "value_hint", "name", "description"]);
        return filler.input(input, hint, true).into_iter().collect();
    }
    let is_flag =
        text(&["format"]) == "boolean" || input.either(&["value", "default", "valueHint"]).is_none();
    let is_required = input.either(&["isRequired", "is_required"]).is_some_and(Node::is_true);
    if is_flag && !input.either(&["isSecret", "is_secret"]).is_some_and(Node::is_true) {
        let is_on =
            input.either(&["value", "default"]).and_then(Node::plain).is_some_and(|value| value == "true");
        return if is_on || is_required { vec![Template::escape(name)] } else { Vec::new() };
    }
    match filler.input(input, name.trim_start_matches('-'), true) {
        Some(value) => vec![Template::escape(name), value],
        None => Vec::new(),
    }
}
