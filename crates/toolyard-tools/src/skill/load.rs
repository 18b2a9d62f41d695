//! Turns folders into sources of tools: one source per skill.

use std::{fmt, path::PathBuf, sync::Arc};

use futures_util::{StreamExt, stream};
use serde::Serialize;
use toolyard_core::{SourceInfo, SourceKind, Tool};

use super::{
    content::of_program,
    describe_cache::DescribeCache,
    description::Description,
    folder::programs,
    instructions::SkillTool,
    program::{Program, ProgramTool, Surroundings, file_name},
    scan::{RejectedSkill, ShadowedSkill, Skill, SkillFolder, SkillScope, scan},
    trust::{TrustFile, TrustState},
};

/// How many skills are asked for their programs' descriptions at the same time.
const CONCURRENT: usize = 4;

/// Everything that loading skills needs to know.
#[derive(Debug, Clone)]
pub struct SkillSettings<'a> {
    /// Where to look.
    pub folders: Vec<SkillFolder>,
    /// Whose programs may run.
    pub trust: &'a TrustFile,
    /// Where descriptions of programs are remembered.
    pub cache_folder: PathBuf,
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
pub async fn load(settings: SkillSettings<'_>) -> LoadedSkills {
    let loader = Arc::new(Loader {
        trust: settings.trust.clone(),
        cache: DescribeCache::new(settings.cache_folder),
        surroundings: Arc::new(Surroundings {
            environment: settings.environment,
            working_directory: settings.working_directory,
        }),
    });
    let folders = settings.folders;
    // Only a shutdown of the runtime can keep the scan from running.
    let found = tokio::task::spawn_blocking(move || scan(&folders)).await.unwrap_or_default();
    let loaded: Vec<Loaded> = stream::iter(found.skills)
        .map(|skill| load_one(Arc::clone(&loader), skill))
        .buffered(CONCURRENT)
        .collect()
        .await;
    let mut skills =
        LoadedSkills { rejected: found.rejected, shadowed: found.shadowed, ..LoadedSkills::default() };
    for Loaded { status, tools } in loaded {
        let source = SourceInfo::new(format!("skill:{}", status.name), SourceKind::Skill)
            .trusted(status.trust.allows_programs())
            .exclusive(false);
        skills.sources.push((source, tools));
        skills.skills.push(status);
    }
    skills
}

struct Loader {
    trust: TrustFile,
    cache: DescribeCache,
    surroundings: Arc<Surroundings>,
}

struct Loaded {
    status: SkillStatus,
    tools: Vec<Arc<dyn Tool>>,
}

async fn load_one(loader: Arc<Loader>, skill: Skill) -> Loaded {
    let look = {
        let (loader, skill) = (Arc::clone(&loader), skill.clone());
        tokio::task::spawn_blocking(move || loader.look_at(&skill)).await
    };
    let Look { trust, programs, mut problems } = look.unwrap_or_else(|_| Look::untrusted());
    problems.splice(0..0, skill.warnings.iter().cloned());
    let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
    for program in programs {
        let name = file_name(&program.path);
        let program = Arc::new(program);
        match loader.description(&program).await {
            Ok(description) => {
                problems.extend(description.problems.into_iter().map(|problem| format!("{name}: {problem}")));
                for spec in description.tools {
                    if tools.iter().any(|tool| tool.spec().name == spec.name) {
                        problems.push(format!("{name}: another program has a tool `{}` already", spec.name));
                    } else {
                        tools.push(Arc::new(ProgramTool::new(spec, Arc::clone(&program))));
                    }
                }
            }
            Err(problem) => problems.push(format!("{name}: {problem}")),
        }
    }
    // A program may take the skill's own name, and then speaks for it.
    if tools.iter().all(|tool| *tool.spec().name != *skill.name) {
        tools.insert(0, Arc::new(SkillTool::new(&skill)));
    }
    let status = SkillStatus {
        tools: tools.iter().map(|tool| tool.spec().name.to_string()).collect(),
        name: skill.name,
        description: skill.manifest.description,
        scope: skill.scope,
        path: skill.path,
        trust,
        problems,
    };
    Loaded { status, tools }
}

/// What can be seen of a skill without running anything.
struct Look {
    trust: TrustState,
    /// Only the programs that may run.
    programs: Vec<Program>,
    problems: Vec<String>,
}

impl Look {
    fn untrusted() -> Self {
        Self { trust: TrustState::Untrusted, programs: Vec::new(), problems: Vec::new() }
    }
}

impl Loader {
    fn look_at(&self, skill: &Skill) -> Look {
        let mut look = Look::untrusted();
        match self.trust.state(skill) {
            Ok(state) => look.trust = state,
            Err(error) => look.problems.push(error.to_string()),
        }
        let paths = programs(&skill.path).unwrap_or_default();
        if look.trust.allows_programs() {
            let trusted_content =
                self.trust.trusted_content(skill).filter(|_| look.trust == TrustState::Trusted).cloned();
            look.programs = paths
                .into_iter()
                .map(|path| Program {
                    path,
                    skill_folder: skill.path.clone(),
                    surroundings: Arc::clone(&self.surroundings),
                    trusted_content: trusted_content.clone(),
                })
                .collect();
        } else if !paths.is_empty() {
            let reason = match look.trust {
                TrustState::Changed => "the skill changed since it was trusted",
                _ => "the skill is not trusted",
            };
            look.problems.push(format!("its programs are not run: {reason}"));
        }
        look
    }

    /// Runs the program only if a program of this content was never asked before.
    async fn description(self: &Arc<Self>, program: &Arc<Program>) -> Result<Description, String> {
        let (loader, asked) = (Arc::clone(self), Arc::clone(program));
        let known = tokio::task::spawn_blocking(move || {
            let content = of_program(&asked.skill_folder, &asked.path).map_err(|error| error.to_string())?;
            let description = loader.cache.get(&content);
            Ok::<_, String>((content, description))
        });
        let (content, description) = known.await.map_err(|error| error.to_string())??;
        if let Some(description) = description {
            return Ok(description);
        }
        let description = program.describe().await?;
        let (loader, kept) = (Arc::clone(self), description.clone());
        let keeping = tokio::task::spawn_blocking(move || loader.cache.put(&content, &kept));
        keeping.await.map_err(|error| error.to_string())?;
        Ok(description)
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
