//! `toolyard doctor`: checks settings, store, tools, skills, servers and models.

mod models;
mod serve;
mod servers;

use std::path::Path;

use serde::Serialize;
use toolyard::Toolyard;
use toolyard_tools::skill::TrustState;

use crate::{
    commands::setup::open,
    config::CliContext,
    error::CliError,
    terminal::{Output, pluralize},
};

#[derive(Debug, Serialize)]
struct Finding {
    severity: Severity,
    subject: &'static str,
    detail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Severity {
    Ok,
    Note,
    Problem,
}

impl Finding {
    fn new(severity: Severity, subject: &'static str, detail: impl Into<String>) -> Self {
        Self { severity, subject, detail: detail.into(), hint: None }
    }

    fn ok(subject: &'static str, detail: impl Into<String>) -> Self {
        Self::new(Severity::Ok, subject, detail)
    }

    fn note(subject: &'static str, detail: impl Into<String>) -> Self {
        Self::new(Severity::Note, subject, detail)
    }

    fn problem(subject: &'static str, detail: impl Into<String>) -> Self {
        Self::new(Severity::Problem, subject, detail)
    }

    fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// Runs all checks and prints their findings. Fails if there are problems.
pub(super) async fn run(config: Option<&Path>, output: &Output) -> Result<(), CliError> {
    let mut findings = Vec::new();
    match CliContext::load(config).await {
        Ok(context) => {
            findings.push(check_settings(&context));
            findings.extend(check_trust(&context));
            findings.push(check_store(&context).await);
            let toolyard = open(&context).await?;
            findings.extend(check_tools(&toolyard));
            findings.extend(check_source_names(&context, &toolyard));
            findings.extend(check_time_zone(&context));
            findings.push(check_web_search(&context));
            findings.extend(check_skills(&toolyard));
            findings.extend(servers::check(&context, &toolyard));
            findings.extend(serve::check(&context, &toolyard));
            findings.extend(models::check(&context));
        }
        Err(failure) => findings
            .push(Finding::problem("settings", failure.message()).with_hint("no further checks were made")),
    }
    let problems = findings.iter().filter(|finding| finding.severity == Severity::Problem).count();
    if output.is_json() {
        output.json(&findings);
    } else {
        findings.iter().for_each(|finding| print(finding, output));
    }
    if problems == 0 {
        return Ok(());
    }
    let failure = CliError::failed(format!("found {}", pluralize(problems, "problem")));
    Err(if output.is_json() { failure.without_message() } else { failure })
}

fn print(finding: &Finding, output: &Output) {
    let severity = match finding.severity {
        Severity::Ok => "ok",
        Severity::Note => "note",
        Severity::Problem => "PROBLEM",
    };
    output.line(&format!("{severity:<8} {:<9} {}", finding.subject, finding.detail));
    if let Some(hint) = &finding.hint {
        output.line(&format!("{:<8} {:<9} hint: {hint}", "", ""));
    }
}

fn check_settings(context: &CliContext) -> Finding {
    let files: Vec<String> = context.settings_files.iter().map(|file| file.display().to_string()).collect();
    match files.as_slice() {
        [] => Finding::ok("settings", "no settings file; using defaults"),
        files => Finding::ok("settings", files.join(", ")),
    }
}

fn check_trust(context: &CliContext) -> Option<Finding> {
    let names = context.untrusted_settings.join(", ");
    let finding = Finding::note("settings", format!("ignored until trusted: {names}"));
    (!names.is_empty()).then(|| finding.with_hint("review it, then run: toolyard trust"))
}

async fn check_store(context: &CliContext) -> Finding {
    let Some(store) = &context.store else {
        return Finding::problem("store", "the default data folder is not writable; no state is stored")
            .with_hint("set `store` in toolyard.toml, or make the folder writable");
    };
    match store.check().await {
        Ok(health) if health.is_healthy() => Finding::ok("store", store.location().to_string()),
        Ok(_) => Finding::problem("store", format!("{} is damaged", store.location()))
            .with_hint("toolyard store check"),
        Err(error) => Finding::problem("store", error.to_string()),
    }
}

fn check_tools(toolyard: &Toolyard) -> Vec<Finding> {
    let snapshot = toolyard.hub().snapshot();
    let tools = pluralize(snapshot.name_count(), "tool");
    let sources = pluralize(toolyard.hub().sources().len(), "source");
    let mut findings = vec![Finding::ok("tools", format!("{tools} from {sources}"))];
    for collision in snapshot.collisions() {
        let source_names = |tools: &[std::sync::Arc<toolyard_hub::ToolCandidate>]| {
            tools.iter().map(|tool| tool.source_id().to_string()).collect::<Vec<_>>().join(", ")
        };
        let detail = match collision.equivalents.as_slice() {
            // Reported below.
            [] => continue,
            used => format!("`{}` exists in several sources; {} is used", collision.name, source_names(used)),
        };
        let finding = Finding::note("tools", detail);
        findings.push(match collision.others.as_slice() {
            [] => finding,
            others => finding.with_hint(format!(
                "{} is used only with --source; change this with [routing.pin] or [equivalent]",
                source_names(others)
            )),
        });
    }
    findings.extend(check_name_owners(&snapshot));
    findings
}

/// Reports names whose owners do not offer them now.
fn check_name_owners(snapshot: &toolyard_hub::Snapshot) -> Vec<Finding> {
    let unowned = snapshot.candidates_by_name().filter(|(_, found)| found.equivalents.is_empty());
    let finding = |(name, found): (&std::sync::Arc<str>, toolyard_hub::NameMatches<'_>)| {
        let first = found.all().next()?;
        let (source, owner) = (first.source_id(), first.yields_to.as_ref()?);
        let detail =
            format!("`{name}` belongs to {owner}, which does not offer it; {source} has a tool of this name");
        let decision = format!("toolyard servers approve {source} {name} --take-names");
        let hint = format!("call it as {source}.{name}, or give it the name: {decision}");
        Some(Finding::note("tools", detail).with_hint(hint))
    };
    let mut findings: Vec<Finding> = unowned.filter_map(finding).collect();
    findings.sort_by(|one, other| one.detail.cmp(&other.detail));
    findings
}

/// Reports settings that name unknown sources.
fn check_source_names(context: &CliContext, toolyard: &Toolyard) -> Vec<Finding> {
    let snapshot = toolyard.hub().snapshot();
    let settings = &context.settings;
    let pins = settings.routing.pin.iter().map(|(tool, source)| ("routing.pin", tool, source));
    let equivalents = settings.equivalent.iter();
    let equivalents = equivalents
        .flat_map(|(tool, sources)| sources.iter().map(move |source| ("equivalent", tool, source)));
    let hints = settings.hints.iter();
    let hints = hints.flat_map(|(source, tools)| tools.keys().map(move |tool| ("hints", tool, source)));
    let missing = pins.chain(equivalents).chain(hints).filter(|(_, _, source)| !snapshot.has_source(source));
    missing
        .map(|(table, tool, source)| {
            Finding::problem("settings", format!("[{table}] {tool}: source `{source}` does not exist"))
                .with_hint("list sources: toolyard tools list")
        })
        .collect()
}

fn check_time_zone(context: &CliContext) -> Option<Finding> {
    let zone = context.settings.time.zone.as_deref()?;
    let is_unknown = jiff::tz::TimeZone::get(zone).is_err();
    is_unknown.then(|| Finding::problem("settings", format!("[time] time zone `{zone}` does not exist")))
}

fn check_web_search(context: &CliContext) -> Finding {
    if let Err(error) = context.settings.search_engine(|name| std::env::var(name).ok()) {
        return Finding::problem("search", error.to_string())
            .with_hint("the tool search_web fails until this is fixed");
    }
    match &context.settings.web_search {
        Some(search) => Finding::ok("search", format!("{:?}", search.engine).to_lowercase()),
        None => Finding::note("search", "no search engine is set; the tool search_web is not available")
            .with_hint("[web_search] engine = \"searxng\", url = \"http://localhost:8888\""),
    }
}

fn check_skills(toolyard: &Toolyard) -> Vec<Finding> {
    let loaded = toolyard.skills();
    let mut findings = vec![Finding::ok("skills", format!("{} found", loaded.skills.len()))];
    for skill in &loaded.skills {
        findings.extend(skill.problems.iter().map(|problem| {
            let finding = Finding::note("skills", format!("{}: {problem}", skill.name));
            match skill.trust {
                TrustState::Untrusted | TrustState::Changed => {
                    finding.with_hint(format!("toolyard skills trust {}", skill.name))
                }
                TrustState::Implicit | TrustState::Trusted => finding,
            }
        }));
    }
    findings.extend(loaded.rejected.iter().map(|rejected| {
        Finding::note("skills", format!("ignored: {}: {}", rejected.path.display(), rejected.reason))
    }));
    findings.extend(loaded.shadowed.iter().map(|shadowed| {
        Finding::note(
            "skills",
            format!("ignored: {}: another skill has the same name", shadowed.path.display()),
        )
    }));
    findings
}
