//! `toolyard doctor`: checks settings, store, tools, skills, servers and models.

mod finding;
mod models;
mod serve;
mod servers;
mod tools;

use std::path::Path;

use toolyard::Toolyard;
use toolyard_tools::skill::TrustState;

pub(super) use self::servers::check_start;

use self::finding::{Finding, Severity};
use toolyard_store::Engine;

use crate::{
    commands::{serve::cluster, setup::open},
    config::CliContext,
    error::CliError,
    terminal::{Output, pluralize},
};

/// Runs all checks and prints their findings. Fails if there are problems.
pub(super) async fn run(config: Option<&Path>, output: &Output) -> Result<(), CliError> {
    let mut findings = Vec::new();
    match CliContext::load(config).await {
        Ok(context) => {
            findings.push(check_settings(&context));
            findings.extend(check_trust(&context));
            findings.push(check_store(&context).await);
            let toolyard = open(&context).await?;
            findings.extend(tools::check(&toolyard));
            findings.extend(check_source_names(&context, &toolyard));
            findings.extend(check_time_zone(&context));
            findings.push(check_web_search(&context));
            findings.extend(check_skills(&toolyard));
            findings.extend(servers::check(&context, &toolyard));
            findings.extend(serve::check(&context, &toolyard));
            findings.extend(serve::check_access_tokens(&context).await);
            findings.extend(models::check(&context));
            findings.extend(check_cluster(&context).await);
        }
        Err(failure) => findings
            .push(Finding::problem("settings", failure.message()).with_hint("no further checks were made")),
    }
    let is_problem = |finding: &&Finding| finding.severity == Severity::Problem;
    let problems: usize = findings.iter().filter(is_problem).map(Finding::count).sum();
    if output.is_json() {
        output.json(&findings);
    } else {
        findings.iter().for_each(|finding| finding.print(output));
    }
    if problems == 0 {
        return Ok(());
    }
    let failure = CliError::failed(format!("found {}", pluralize(problems, "problem")));
    Err(if output.is_json() { failure.without_message() } else { failure })
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

async fn check_cluster(context: &CliContext) -> Option<Finding> {
    let settings = context.settings.cluster.as_ref()?;
    let is_shared = context.store.as_ref().is_some_and(|store| store.engine() == Engine::Postgres);
    if !is_shared {
        let detail = "[cluster] needs a PostgreSQL store that all gateways share";
        let hint = "set `store = \"postgres://USER:PASSWORD@HOST/DATABASE\"`, or remove [cluster]; only workers (`toolyard worker NAME`) work without";
        return Some(Finding::problem("cluster", detail).with_hint(hint));
    }
    let connection = match cluster::connect(settings, context).await {
        Ok(connection) => connection,
        Err(error) => {
            let finding = Finding::problem("cluster", error.message());
            return Some(finding.with_hint("`toolyard serve --http` fails until this is fixed"));
        }
    };
    let finding = match connection.round_trip().await {
        Ok(()) => {
            let ((version, _), addresses) = (connection.server(), connection.addresses());
            Finding::ok("cluster", format!("NATS {version} at {addresses}"))
        }
        Err(error) => Finding::problem("cluster", error.to_string()),
    };
    connection.close().await;
    Some(finding)
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
