//! `toolyard doctor`: is everything as it should be, and what to do if not.

use std::path::Path;

use serde::Serialize;
use toolyard::Toolyard;
use toolyard_tools::skill::TrustState;

use crate::{
    commands::{doctor_models, doctor_serve, doctor_servers, open},
    failure::{Code, Failure},
    folders::{Workplace, workplace},
    output::{Output, harmless},
};

/// One thing that was looked at.
#[derive(Debug, Serialize)]
pub(super) struct Finding {
    state: State,
    about: &'static str,
    detail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum State {
    Fine,
    Note,
    Problem,
}

impl Finding {
    pub(super) fn new(state: State, about: &'static str, detail: impl Into<String>) -> Self {
        Self { state, about, detail: detail.into(), hint: None }
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// Looks at everything and says what it found; fails when something is broken.
pub(crate) async fn run(config: Option<&Path>, output: &Output) -> Result<(), Failure> {
    let mut findings = Vec::new();
    match workplace(config).await {
        Ok(workplace) => {
            findings.push(settings(&workplace));
            findings.extend(not_trusted(&workplace));
            findings.push(store(&workplace).await);
            let yard = open(&workplace).await?;
            findings.extend(tools(&yard));
            findings.extend(unknown_names(&workplace, &yard));
            findings.extend(zone(&workplace));
            findings.push(search(&workplace));
            findings.extend(skills(&yard));
            findings.extend(doctor_servers::servers(&workplace, &yard));
            findings.extend(doctor_serve::serve(&workplace, &yard));
            findings.extend(doctor_models::models(&workplace));
        }
        Err(failure) => findings.push(
            Finding::new(State::Problem, "settings", failure.message()).hint("nothing else was looked at"),
        ),
    }
    let problems = findings.iter().filter(|finding| finding.state == State::Problem).count();
    if output.wants_json() {
        output.json(&findings);
    } else {
        findings.iter().for_each(|finding| tell(finding, output));
    }
    let failure = match problems {
        0 => return Ok(()),
        1 => Failure::new(Code::Failed, "1 problem was found"),
        more => Failure::new(Code::Failed, format!("{more} problems were found")),
    };
    Err(if output.wants_json() { failure.silent() } else { failure })
}

fn tell(finding: &Finding, output: &Output) {
    let word = match finding.state {
        State::Fine => "ok",
        State::Note => "note",
        State::Problem => "PROBLEM",
    };
    output.line(&harmless(&format!("{word:<8} {:<9} {}", finding.about, finding.detail)));
    if let Some(hint) = &finding.hint {
        output.line(&harmless(&format!("{:<8} {:<9} hint: {hint}", "", "")));
    }
}

fn settings(workplace: &Workplace) -> Finding {
    match &workplace.settings_file {
        Some(file) => Finding::new(State::Fine, "settings", format!("{}", file.display())),
        None => Finding::new(State::Fine, "settings", "none, defaults are used"),
    }
}

fn not_trusted(workplace: &Workplace) -> Option<Finding> {
    let names = workplace.not_trusted.join(", ");
    let finding =
        Finding::new(State::Note, "settings", format!("not used, because the file is not trusted: {names}"));
    (!names.is_empty()).then(|| finding.hint("look at it, then: toolyard trust"))
}

async fn store(workplace: &Workplace) -> Finding {
    let Some(store) = &workplace.store else {
        return Finding::new(State::Problem, "store", "the usual folder cannot be written; nothing is kept")
            .hint("set `store` in toolyard.toml, or make the folder writable");
    };
    match store.check().await {
        Ok(health) if health.is_sound() => Finding::new(State::Fine, "store", store.location().to_string()),
        Ok(_) => Finding::new(State::Problem, "store", format!("{} is not sound", store.location()))
            .hint("toolyard store check"),
        Err(error) => Finding::new(State::Problem, "store", error.to_string()),
    }
}

fn tools(yard: &Toolyard) -> Vec<Finding> {
    let snapshot = yard.hub().snapshot();
    let count = |number: usize, word: &str| format!("{number} {word}{}", if number == 1 { "" } else { "s" });
    let (names, sources) = (count(snapshot.names(), "tool"), count(yard.hub().sources().len(), "source"));
    let mut findings = vec![Finding::new(State::Fine, "tools", format!("{names} from {sources}"))];
    for collision in snapshot.collisions() {
        let named = |tools: &[std::sync::Arc<toolyard_hub::ToolCandidate>]| {
            tools.iter().map(|tool| tool.source_id().to_string()).collect::<Vec<_>>().join(", ")
        };
        let detail =
            format!("`{}` is in several sources: {} answers", collision.name, named(&collision.used));
        let finding = Finding::new(State::Note, "tools", detail);
        findings.push(match collision.passed_over.as_slice() {
            [] => finding,
            others => finding
                .hint(format!("{} only when named; [routing.pin] and [equivalent] decide", named(others))),
        });
    }
    findings
}

/// Pins, equals and hints that name nobody are most likely misspelt; a server may just not be here yet.
fn unknown_names(workplace: &Workplace, yard: &Toolyard) -> Vec<Finding> {
    let snapshot = yard.hub().snapshot();
    let settings = &workplace.settings;
    let pins = settings.routing.pin.iter().map(|(tool, source)| ("routing.pin", tool, source));
    let equals = settings.equivalent.iter();
    let equals =
        equals.flat_map(|(tool, sources)| sources.iter().map(move |source| ("equivalent", tool, source)));
    let hints = settings.hints.iter();
    let hints = hints.flat_map(|(source, tools)| tools.keys().map(move |tool| ("hints", tool, source)));
    let missing = pins.chain(equals).chain(hints).filter(|(_, _, source)| !snapshot.has_source(source));
    missing
        .map(|(table, tool, source)| {
            Finding::new(
                State::Problem,
                "settings",
                format!("[{table}] {tool}: there is no source `{source}`"),
            )
            .hint("see the ids with `toolyard tools list`")
        })
        .collect()
}

fn zone(workplace: &Workplace) -> Option<Finding> {
    let zone = workplace.settings.time.zone.as_deref()?;
    let unknown = jiff::tz::TimeZone::get(zone).is_err();
    unknown.then(|| Finding::new(State::Problem, "settings", format!("[time] there is no zone `{zone}`")))
}

fn search(workplace: &Workplace) -> Finding {
    if let Err(error) = workplace.settings.search(|name| std::env::var(name).ok()) {
        return Finding::new(State::Problem, "search", error.to_string())
            .hint("search_web cannot be used until then");
    }
    match &workplace.settings.search {
        Some(search) => Finding::new(State::Fine, "search", format!("{:?}", search.engine).to_lowercase()),
        None => Finding::new(State::Note, "search", "no search engine is set, so search_web cannot be used")
            .hint("[search] engine = \"searxng\", url = \"http://localhost:8888\""),
    }
}

fn skills(yard: &Toolyard) -> Vec<Finding> {
    let loaded = yard.skills();
    let mut findings = vec![Finding::new(State::Fine, "skills", format!("{} found", loaded.skills.len()))];
    for skill in &loaded.skills {
        findings.extend(skill.problems.iter().map(|problem| {
            let finding = Finding::new(State::Note, "skills", format!("{}: {problem}", skill.name));
            match skill.trust {
                TrustState::Untrusted | TrustState::Changed => {
                    finding.hint(format!("toolyard skills trust {}", skill.name))
                }
                TrustState::ByNature | TrustState::Trusted => finding,
            }
        }));
    }
    findings.extend(loaded.rejected.iter().map(|rejected| {
        Finding::new(
            State::Note,
            "skills",
            format!("not used: {}: {}", rejected.path.display(), rejected.reason),
        )
    }));
    findings.extend(loaded.shadowed.iter().map(|shadowed| {
        Finding::new(
            State::Note,
            "skills",
            format!("not used: {}: its name is taken", shadowed.path.display()),
        )
    }));
    findings
}
