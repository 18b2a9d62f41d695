//! `toolyard doctor`: is everything as it should be, and what to do if not.

use serde::Serialize;
use toolyard::Toolyard;
use toolyard_tools::skill::TrustState;

use crate::{
    commands::open,
    failure::{Code, Failure},
    folders::Workplace,
    output::{Output, harmless},
};

/// One thing that was looked at.
#[derive(Debug, Serialize)]
struct Finding {
    state: State,
    about: &'static str,
    detail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Fine,
    Note,
    Problem,
}

impl Finding {
    fn new(state: State, about: &'static str, detail: impl Into<String>) -> Self {
        Self { state, about, detail: detail.into(), hint: None }
    }

    fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// Looks at everything and says what it found; fails when something is broken.
pub(crate) async fn run(workplace: &Workplace, output: &Output) -> Result<(), Failure> {
    let yard = open(workplace).await?;
    let mut findings = vec![settings(workplace), results(workplace)];
    findings.extend(tools(&yard));
    findings.extend(unknown_names(workplace, &yard));
    findings.push(search(workplace));
    findings.extend(skills(&yard));
    let problems = findings.iter().filter(|finding| finding.state == State::Problem).count();
    if output.wants_json() {
        output.json(&findings);
    } else {
        for finding in &findings {
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
    }
    match problems {
        0 => Ok(()),
        1 => Err(Failure::new(Code::Failed, "1 problem was found")),
        more => Err(Failure::new(Code::Failed, format!("{more} problems were found"))),
    }
}

fn settings(workplace: &Workplace) -> Finding {
    match &workplace.settings_file {
        Some(file) => Finding::new(State::Fine, "settings", format!("{}", file.display())),
        None => Finding::new(State::Fine, "settings", "none, defaults are used"),
    }
}

fn results(workplace: &Workplace) -> Finding {
    let folder = &workplace.surroundings.results_folder;
    match std::fs::create_dir_all(folder).and_then(|()| tempfile_in(folder)) {
        Ok(()) => Finding::new(State::Fine, "results", format!("{} can be written", folder.display())),
        Err(error) => Finding::new(State::Problem, "results", format!("{}: {error}", folder.display()))
            .hint("long answers are cut and the rest is lost; make the folder writable"),
    }
}

fn tempfile_in(folder: &std::path::Path) -> std::io::Result<()> {
    let probe = folder.join(".probe");
    std::fs::write(&probe, "")?;
    std::fs::remove_file(probe)
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

/// Pins and equals that name nobody are most likely misspelt.
fn unknown_names(workplace: &Workplace, yard: &Toolyard) -> Vec<Finding> {
    let snapshot = yard.hub().snapshot();
    let pins = workplace.settings.routing.pin.iter().map(|(tool, source)| ("routing.pin", tool, source));
    let equals = workplace.settings.equivalent.iter();
    let equals =
        equals.flat_map(|(tool, sources)| sources.iter().map(move |source| ("equivalent", tool, source)));
    let missing = pins.chain(equals).filter(|(_, _, source)| !snapshot.has_source(source));
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

fn search(workplace: &Workplace) -> Finding {
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
