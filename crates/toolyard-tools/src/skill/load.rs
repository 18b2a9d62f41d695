//! Loads skills as tool sources, one per skill.

use std::{cmp::Reverse, fmt, path::PathBuf, sync::Arc, time::Duration};

use futures_util::{StreamExt, stream};
use serde::Serialize;
use toolyard_core::{ContentHash, SkillDescriptionCache, SourceId, SourceInfo, SourceKind, Tool};

use super::{
    content_hash::{program_cache_key, skill_content_hash},
    files::list_programs,
    instructions::SkillTool,
    program::{
        DescribeRequest, DescribeResult, Program, ProgramEnvironment, ProgramTool, describe_all, file_name,
    },
    scan::{RejectedSkill, ShadowedSkill, Skill, SkillFolder, SkillScope, scan_all, select_by_name},
    trust::{TrustState, TrustedSkills},
};

const MAX_CONCURRENT_SKILLS: usize = 8;
/// Time limit for `--describe` of all programs together.
const DESCRIBE_TIMEOUT: Duration = Duration::from_secs(10);

/// The inputs of [`load`].
#[derive(Clone)]
pub struct SkillSettings<'a> {
    /// The folders to search.
    pub folders: Vec<SkillFolder>,
    /// The user's trust decisions.
    pub trust: &'a TrustedSkills,
    /// Cached program descriptions; [`MemoryDescriptionCache`](super::MemoryDescriptionCache) without a store.
    pub descriptions: Arc<dyn SkillDescriptionCache>,
    /// Environment variables of programs, besides `TOOLYARD_SKILL_DIR`; most programs need `PATH`.
    pub environment: Vec<(String, String)>,
    /// The working directory of programs.
    pub working_directory: PathBuf,
}

/// The result of [`load`].
#[derive(Default)]
#[non_exhaustive]
pub struct LoadedSkills {
    /// One source per skill, with its tools.
    pub sources: Vec<(SourceInfo, Vec<Arc<dyn Tool>>)>,
    /// The status of the same skills, for display.
    pub skills: Vec<SkillStatus>,
    /// Folders that cannot be used as skills.
    pub rejected: Vec<RejectedSkill>,
    /// Skills that are overridden by another one of the same name.
    pub shadowed: Vec<ShadowedSkill>,
}

/// The status of a loaded skill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SkillStatus {
    /// The name in use, see [`Skill::name`].
    pub name: String,
    /// What the skill does and when to use it.
    pub description: String,
    /// The scope.
    pub scope: SkillScope,
    /// The folder.
    pub path: PathBuf,
    /// Whether the skill's programs may run.
    pub trust: TrustState,
    /// The names of the tools.
    pub tools: Vec<String>,
    /// Warnings and errors of its SKILL.md and its programs.
    pub problems: Vec<String>,
}

/// Loads all skills. Problems of one skill never affect another.
///
/// Of several skills with the same name, those that may run programs take precedence, then project over user over
/// shared, then the earlier folder. `--describe` of all programs together may take ten seconds; a program that fails
/// is retried when its skill changes, or at the next load if the failure may be temporary.
pub async fn load(settings: SkillSettings<'_>) -> LoadedSkills {
    load_within(settings, DESCRIBE_TIMEOUT).await
}

async fn load_within(settings: SkillSettings<'_>, describe_timeout: Duration) -> LoadedSkills {
    let environment = Arc::new(ProgramEnvironment::new(settings.environment, settings.working_directory));
    let folders = settings.folders;
    // Joining fails only when the runtime shuts down.
    let (found, rejected) = tokio::task::spawn_blocking(move || scan_all(&folders)).await.unwrap_or_default();
    let trust = Arc::new(settings.trust.clone());
    let checks = found.into_iter().map(|skill| check_trust(Arc::clone(&trust), skill));
    let mut checked: Vec<CheckedSkill> = stream::iter(checks).buffered(MAX_CONCURRENT_SKILLS).collect().await;
    // The sort is stable: among equals, the order of the folders decides.
    checked.sort_by_key(|checked| Reverse((checked.trust.allows_programs(), checked.skill.scope)));
    let (checked, shadowed) = select_by_name(checked, |checked| &checked.skill);

    let inspections = checked.into_iter().map(|checked| inspect(checked, Arc::clone(&environment)));
    let inspected: Vec<InspectedSkill> =
        stream::iter(inspections).buffered(MAX_CONCURRENT_SKILLS).collect().await;
    let requests = inspected.iter().flat_map(InspectedSkill::describe_requests).collect();
    let mut results = describe_all(requests, settings.descriptions, describe_timeout).await.into_iter();
    let mut loaded = LoadedSkills { rejected, shadowed, ..LoadedSkills::default() };
    for skill in inspected {
        let (status, tools) = skill.into_tools(&mut results);
        let source = SourceInfo::new(format!("{}{}", SourceId::SKILL_PREFIX, status.name), SourceKind::Skill)
            .trusted(status.trust.allows_programs())
            .exclusive(false);
        loaded.sources.push((source, tools));
        loaded.skills.push(status);
    }
    loaded
}

/// A skill with its trust state.
struct CheckedSkill {
    skill: Skill,
    trust: TrustState,
    /// The trusted content hash, if it is the current one.
    trusted_content: Option<ContentHash>,
    problems: Vec<String>,
}

async fn check_trust(trusted: Arc<TrustedSkills>, skill: Skill) -> CheckedSkill {
    let (decisions, subject) = (Arc::clone(&trusted), skill.clone());
    let state = tokio::task::spawn_blocking(move || decisions.state(&subject)).await;
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
    let trusted_content = trusted.trusted_content(&skill).filter(|_| trust == TrustState::Trusted);
    CheckedSkill { skill, trust, trusted_content, problems }
}

/// A skill with its programs, none of which has run yet.
struct InspectedSkill {
    skill: Skill,
    trust: TrustState,
    /// Only the programs that may run.
    programs: Vec<Arc<Program>>,
    /// The content hash of the skill, if it has programs that may run.
    content: Option<ContentHash>,
    problems: Vec<String>,
}

async fn inspect(checked: CheckedSkill, environment: Arc<ProgramEnvironment>) -> InspectedSkill {
    let CheckedSkill { skill, trust, trusted_content, mut problems } = checked;
    let (folder, may_run) = (skill.path.clone(), trust.allows_programs());
    let task = tokio::task::spawn_blocking(move || {
        let paths = list_programs(&folder).unwrap_or_default();
        let content_hash = || trusted_content.map_or_else(|| skill_content_hash(&folder), Ok);
        let content = (may_run && !paths.is_empty()).then(content_hash);
        (paths, content)
    });
    let (paths, content) = task.await.unwrap_or_default();
    let content = content.and_then(|content| {
        let report = |error| problems.push(format!("descriptions of programs are not cached: {error}"));
        content.map_err(report).ok()
    });
    let mut inspected = InspectedSkill { skill, trust, programs: Vec::new(), content, problems };
    if trust.allows_programs() {
        let program = |path| Program {
            path,
            skill_folder: inspected.skill.path.clone(),
            environment: Arc::clone(&environment),
            trusted_content,
        };
        inspected.programs = paths.into_iter().map(|path| Arc::new(program(path))).collect();
    } else if !paths.is_empty() {
        let reason = match trust {
            TrustState::Changed => "the skill changed since it was trusted",
            _ => "the skill is not trusted",
        };
        inspected.problems.push(format!("programs are disabled: {reason}"));
    }
    inspected
}

impl InspectedSkill {
    fn describe_requests(&self) -> Vec<DescribeRequest> {
        let request = |(index, program): (usize, &Arc<Program>)| DescribeRequest {
            cache_key: self.content.map(|content| program_cache_key(&content, &program.path)),
            program: Arc::clone(program),
            index,
        };
        self.programs.iter().enumerate().map(request).collect()
    }

    /// The status and tools of the skill. Takes one result per describe request.
    fn into_tools(
        mut self,
        results: &mut impl Iterator<Item = DescribeResult>,
    ) -> (SkillStatus, Vec<Arc<dyn Tool>>) {
        let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
        for (program, result) in self.programs.iter().zip(results) {
            let name = file_name(&program.path);
            let description = match result {
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
                    let problem =
                        format!("{name}: another program already provides the tool `{}`", spec.name);
                    self.problems.push(problem);
                } else {
                    tools.push(Arc::new(ProgramTool::new(spec, Arc::clone(program))));
                }
            }
        }
        // A program's tool with the skill's own name replaces the instructions tool.
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
        // Environment variables may hold secrets.
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
