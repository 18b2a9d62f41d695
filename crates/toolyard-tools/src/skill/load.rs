//! Turns folders into sources of tools: one source per skill.

use std::{cmp::Reverse, fmt, path::PathBuf, sync::Arc, time::Duration};

use futures_util::{StreamExt, stream};
use serde::Serialize;
use toolyard_core::{ContentHash, Descriptions, SourceInfo, SourceKind, Tool};

use super::{
    content::{of_program, of_skill},
    describe::{Answer, Question, answers},
    folder::programs,
    instructions::SkillTool,
    program::{Program, ProgramTool, Surroundings, file_name},
    scan::{RejectedSkill, ShadowedSkill, Skill, SkillFolder, SkillScope, everything, first_of_each_name},
    trust::{TrustBook, TrustState},
};

/// How many skills are looked at at the same time.
const CONCURRENT: usize = 8;
/// How long all programs together may take to describe themselves.
const DESCRIBING_TIME: Duration = Duration::from_secs(10);

/// Everything that loading skills needs to know.
#[derive(Clone)]
pub struct SkillSettings<'a> {
    /// Where to look.
    pub folders: Vec<SkillFolder>,
    /// Whose programs may run.
    pub trust: &'a TrustBook,
    /// What programs said about themselves before; [`MemoryDescriptions`](super::MemoryDescriptions) without a store.
    pub descriptions: Arc<dyn Descriptions>,
    /// All variables that programs see, besides `TOOLYARD_SKILL_DIR`; most need `PATH`.
    pub environment: Vec<(String, String)>,
    /// Where programs run.
    pub working_directory: PathBuf,
}

/// What became of the folders.
#[derive(Default)]
#[non_exhaustive]
pub struct LoadedSkills {
    /// One source per skill, with its tools, ready to be registered.
    pub sources: Vec<(SourceInfo, Vec<Arc<dyn Tool>>)>,
    /// The same skills as a person would like to hear of them.
    pub skills: Vec<SkillStatus>,
    /// Folders that were not accepted.
    pub rejected: Vec<RejectedSkill>,
    /// Skills that stay unused because another one has their name.
    pub shadowed: Vec<ShadowedSkill>,
}

/// One loaded skill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SkillStatus {
    /// The name it goes by.
    pub name: String,
    /// What it does and when to use it.
    pub description: String,
    /// Whose it is.
    pub scope: SkillScope,
    /// Its folder.
    pub path: PathBuf,
    /// Whether its programs may run.
    pub trust: TrustState,
    /// The names of its tools.
    pub tools: Vec<String>,
    /// What is wrong with it, for a person.
    pub problems: Vec<String>,
}

/// Loads all skills. What is wrong with one skill never costs another.
///
/// Of several skills with one name, one that may run programs goes before one that may not; between equals, project
/// goes before own before shared, and the earlier folder before the later. All programs together have ten seconds to
/// describe themselves. Those that fail to are asked again when their skill changes.
pub async fn load(settings: SkillSettings<'_>) -> LoadedSkills {
    load_within(settings, DESCRIBING_TIME).await
}

async fn load_within(settings: SkillSettings<'_>, describing_time: Duration) -> LoadedSkills {
    let surroundings = Arc::new(Surroundings {
        environment: settings.environment,
        working_directory: settings.working_directory,
    });
    let folders = settings.folders;
    // Only a shutdown of the runtime can keep the scan from running.
    let (found, rejected) =
        tokio::task::spawn_blocking(move || everything(&folders)).await.unwrap_or_default();
    let trust = Arc::new(settings.trust.clone());
    let judging = found.into_iter().map(|skill| judge(Arc::clone(&trust), skill));
    let mut judged: Vec<Judged> = stream::iter(judging).buffered(CONCURRENT).collect().await;
    // A stable sort: among equals, the order of the folders decides.
    judged.sort_by_key(|judged| Reverse((judged.trust.allows_programs(), judged.skill.scope)));
    let (judged, shadowed) = first_of_each_name(judged, |judged| &judged.skill);

    let looking = judged.into_iter().map(|judged| look_at(judged, Arc::clone(&surroundings)));
    let looks: Vec<Look> = stream::iter(looking).buffered(CONCURRENT).collect().await;
    let questions = looks.iter().flat_map(Look::questions).collect();
    let mut answers = answers(questions, settings.descriptions, describing_time).await.into_iter();
    let mut loaded = LoadedSkills { rejected, shadowed, ..LoadedSkills::default() };
    for look in looks {
        let (status, tools) = look.finished(&mut answers);
        let source = SourceInfo::new(format!("skill:{}", status.name), SourceKind::Skill)
            .trusted(status.trust.allows_programs())
            .exclusive(false);
        loaded.sources.push((source, tools));
        loaded.skills.push(status);
    }
    loaded
}

/// A skill, and whether its programs may run.
struct Judged {
    skill: Skill,
    trust: TrustState,
    /// The content that was trusted, and that the skill still had a moment ago.
    trusted_content: Option<ContentHash>,
    problems: Vec<String>,
}

async fn judge(book: Arc<TrustBook>, skill: Skill) -> Judged {
    let (asked, judged) = (Arc::clone(&book), skill.clone());
    let state = tokio::task::spawn_blocking(move || asked.state(&judged)).await;
    let mut problems = skill.warnings.clone();
    let trust = match state {
        Ok(Ok(trust)) => trust,
        Ok(Err(error)) => {
            problems.push(error.to_string());
            TrustState::Untrusted
        }
        // The runtime shuts down.
        Err(_) => TrustState::Untrusted,
    };
    let trusted_content = book.trusted_content(&skill).filter(|_| trust == TrustState::Trusted);
    Judged { skill, trust, trusted_content, problems }
}

/// What can be seen of a skill without running anything.
struct Look {
    skill: Skill,
    trust: TrustState,
    /// Only the programs that may run.
    programs: Vec<Arc<Program>>,
    /// The content of the skill, if it has programs that may run.
    content: Option<ContentHash>,
    problems: Vec<String>,
}

async fn look_at(judged: Judged, surroundings: Arc<Surroundings>) -> Look {
    let Judged { skill, trust, trusted_content, mut problems } = judged;
    let (folder, may_run) = (skill.path.clone(), trust.allows_programs());
    let looking = tokio::task::spawn_blocking(move || {
        let paths = programs(&folder).unwrap_or_default();
        let current = || trusted_content.map_or_else(|| of_skill(&folder), Ok);
        let content = (may_run && !paths.is_empty()).then(current);
        (paths, content)
    });
    let (paths, content) = looking.await.unwrap_or_default();
    let content = content.and_then(|content| {
        let unknown = |error| problems.push(format!("its programs are asked at every load: {error}"));
        content.map_err(unknown).ok()
    });
    let mut look = Look { skill, trust, programs: Vec::new(), content, problems };
    if trust.allows_programs() {
        let program = |path| Program {
            path,
            skill_folder: look.skill.path.clone(),
            surroundings: Arc::clone(&surroundings),
            trusted_content,
        };
        look.programs = paths.into_iter().map(|path| Arc::new(program(path))).collect();
    } else if !paths.is_empty() {
        let reason = match trust {
            TrustState::Changed => "the skill changed since it was trusted",
            _ => "the skill is not trusted",
        };
        look.problems.push(format!("its programs are not run: {reason}"));
    }
    look
}

impl Look {
    fn questions(&self) -> Vec<Question> {
        let question = |(turn, program): (usize, &Arc<Program>)| Question {
            key: self.content.map(|content| of_program(&content, &program.path)),
            program: Arc::clone(program),
            turn,
        };
        self.programs.iter().enumerate().map(question).collect()
    }

    /// The skill with its tools. Takes as many answers as there were questions.
    fn finished(mut self, answers: &mut impl Iterator<Item = Answer>) -> (SkillStatus, Vec<Arc<dyn Tool>>) {
        let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
        for (program, answer) in self.programs.iter().zip(answers) {
            let name = file_name(&program.path);
            let description = match answer {
                Ok(description) => description,
                Err(problem) => {
                    self.problems.push(format!("{name}: {problem}"));
                    continue;
                }
            };
            let problems = description.problems.into_iter().map(|problem| format!("{name}: {problem}"));
            self.problems.extend(problems);
            for spec in description.tools {
                if tools.iter().any(|tool| tool.spec().name == spec.name) {
                    let problem = format!("{name}: another program has a tool `{}` already", spec.name);
                    self.problems.push(problem);
                } else {
                    tools.push(Arc::new(ProgramTool::new(spec, Arc::clone(program))));
                }
            }
        }
        // A program may take the skill's own name, and then speaks for it.
        if tools.iter().all(|tool| *tool.spec().name != *self.skill.name) {
            tools.insert(0, Arc::new(SkillTool::new(&self.skill)));
        }
        let status = SkillStatus {
            tools: tools.iter().map(|tool| tool.spec().name.to_string()).collect(),
            name: self.skill.name,
            description: self.skill.manifest.description,
            scope: self.skill.scope,
            path: self.skill.path,
            trust: self.trust,
            problems: self.problems,
        };
        (status, tools)
    }
}

impl fmt::Debug for SkillSettings<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Variables may hold secrets.
        f.debug_struct("SkillSettings")
            .field("folders", &self.folders)
            .field("trust", &self.trust)
            .field("working_directory", &self.working_directory)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for LoadedSkills {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoadedSkills")
            .field("skills", &self.skills)
            .field("rejected", &self.rejected)
            .field("shadowed", &self.shadowed)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "load_tests.rs"]
mod tests;
