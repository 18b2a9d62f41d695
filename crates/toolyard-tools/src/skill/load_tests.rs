//! Skills from folder to tool: trust, cached descriptions, and the examples.

use std::{
    ffi::OsStr,
    fs,
    os::unix::{ffi::OsStrExt, fs::PermissionsExt},
    path::Path,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tempfile::TempDir;
use toolyard_core::{
    BoxFuture, CallContext, ContentHash, ErrorKind, RawJson, ToolCallRequest, ToolError, ToolOutput,
};

use super::*;
use crate::skill::{MemoryDescriptionCache, scan};

/// Skills of one scope in a temporary folder; each start of a program appends a line to `runs`.
struct Fixture {
    root: TempDir,
    scope: SkillScope,
    trust: TrustedSkills,
    descriptions: Arc<MemoryDescriptionCache>,
}

impl Fixture {
    fn new(scope: SkillScope) -> Self {
        let root = TempDir::new().unwrap();
        fs::create_dir(root.path().join("skills")).unwrap();
        Self { root, scope, trust: TrustedSkills::default(), descriptions: Arc::default() }
    }

    fn add_skill(&self, name: &str) -> &Self {
        let folder = self.root.path().join("skills").join(name);
        fs::create_dir_all(&folder).unwrap();
        let text = format!("---\nname: {name}\ndescription: Does {name}.\n---\nInstructions of {name}\n");
        fs::write(folder.join("SKILL.md"), text).unwrap();
        self
    }

    fn add_program(&self, skill: &str, file: &str, body: &str) -> &Self {
        let path = self.root.path().join("skills").join(skill).join(file);
        let runs = self.root.path().join("runs");
        fs::write(&path, format!("#!/bin/sh\necho run >> '{}'\n{body}\n", runs.display())).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        self
    }

    /// A program with one tool that returns its input.
    fn add_echo_program(&self, skill: &str, tool: &str) -> &Self {
        let body = format!(
            r#"if [ "$1" = --describe ]; then echo '{{"name":"{tool}","description":"Echo"}}'; else cat; fi"#
        );
        self.add_program(skill, "echo.sh", &body)
    }

    fn runs(&self) -> usize {
        fs::read_to_string(self.root.path().join("runs")).unwrap_or_default().lines().count()
    }

    fn trust_all(&mut self) {
        for skill in scan(&self.folders()).skills {
            self.trust.insert(TrustedSkills::decision_for(&skill, 0).unwrap());
        }
    }

    /// The cache key of the description of a skill's `echo.sh`.
    fn description_key(&self, skill: &str) -> ContentHash {
        let folder = self.root.path().canonicalize().unwrap().join("skills").join(skill);
        program_cache_key(&skill_content_hash(&folder).unwrap(), &folder.join("echo.sh"))
    }

    async fn cache_description(&self, program: &ContentHash, tools: &str) {
        let tools = RawJson::parse(tools.to_owned()).unwrap();
        self.descriptions.put_description(program, &tools).await;
    }

    fn folders(&self) -> Vec<SkillFolder> {
        vec![SkillFolder { path: self.root.path().join("skills"), scope: self.scope }]
    }

    async fn load(&self) -> LoadedSkills {
        self.load_with(Arc::<MemoryDescriptionCache>::clone(&self.descriptions)).await
    }

    /// Loads with a short time limit for `--describe`.
    async fn load_within(&self, limit: Duration) -> LoadedSkills {
        let descriptions = Arc::<MemoryDescriptionCache>::clone(&self.descriptions);
        load_within(settings(self.folders(), &self.trust, descriptions, self.root.path()), limit).await
    }

    async fn load_with(&self, descriptions: Arc<dyn SkillDescriptionCache>) -> LoadedSkills {
        load_folders(self.folders(), &self.trust, descriptions, self.root.path()).await
    }
}

fn settings<'a>(
    folders: Vec<SkillFolder>,
    trust: &'a TrustedSkills,
    descriptions: Arc<dyn SkillDescriptionCache>,
    root: &Path,
) -> SkillSettings<'a> {
    SkillSettings {
        folders,
        trust,
        descriptions,
        environment: vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())],
        working_directory: root.to_owned(),
    }
}

async fn load_folders(
    folders: Vec<SkillFolder>,
    trust: &TrustedSkills,
    descriptions: Arc<dyn SkillDescriptionCache>,
    root: &Path,
) -> LoadedSkills {
    load(settings(folders, trust, descriptions, root)).await
}

async fn call(skills: &LoadedSkills, tool: &str, arguments: Value) -> Result<ToolOutput, ToolError> {
    let mut tools = skills.sources.iter().flat_map(|(_, tools)| tools);
    let found = tools.find(|candidate| *candidate.spec().name == *tool).expect("the tool is there");
    let context = CallContext::until(Instant::now() + Duration::from_secs(30));
    found.call(&ToolCallRequest::new(tool, arguments), &context).await
}

#[tokio::test]
async fn each_skill_is_a_source_with_its_tools() {
    let fixture = Fixture::new(SkillScope::User);
    fixture.add_skill("notes").add_skill("echo").add_echo_program("echo", "repeat");
    let skills = fixture.load().await;
    let sources: Vec<(&str, bool)> =
        skills.sources.iter().map(|(source, _)| (source.id.as_str(), source.trusted)).collect();
    assert_eq!(sources, [("skill:echo", true), ("skill:notes", true)]);
    assert_eq!(skills.skills[0].tools, ["echo", "repeat"]);
    assert_eq!(skills.skills[1].tools, ["notes"]);
    assert_eq!(call(&skills, "repeat", json!({"a": 1})).await.unwrap().to_json(), json!({"a": 1}));
    assert!(call(&skills, "notes", json!({})).await.unwrap().to_text().contains("Instructions of notes"));
}

#[tokio::test]
async fn a_program_may_provide_the_tool_named_like_its_skill() {
    let fixture = Fixture::new(SkillScope::User);
    fixture.add_skill("echo").add_echo_program("echo", "echo");
    let skills = fixture.load().await;
    assert_eq!(skills.skills[0].tools, ["echo"]);
    assert_eq!(call(&skills, "echo", json!({"a": 1})).await.unwrap().to_json(), json!({"a": 1}));
}

#[tokio::test]
async fn an_untrusted_program_is_never_started() {
    for scope in [SkillScope::Project, SkillScope::Shared] {
        let fixture = Fixture::new(scope);
        fixture.add_skill("evil").add_echo_program("evil", "repeat");
        let skills = fixture.load().await;
        assert_eq!(fixture.runs(), 0);
        assert_eq!(skills.skills[0].tools, ["evil"]);
        assert_eq!(skills.skills[0].problems, ["programs are disabled: the skill is not trusted"]);
        assert!(!skills.sources[0].0.trusted);
        assert!(call(&skills, "evil", json!({})).await.is_ok(), "instructions can be read");
        assert_eq!(fixture.runs(), 0);
    }
}

#[tokio::test]
async fn a_trusted_program_runs_until_it_changes() {
    let mut fixture = Fixture::new(SkillScope::Project);
    fixture.add_skill("tool").add_echo_program("tool", "repeat");
    fixture.trust_all();
    let skills = fixture.load().await;
    assert_eq!(skills.skills[0].trust, TrustState::Trusted);
    assert!(call(&skills, "repeat", json!({})).await.is_ok());
    let runs = fixture.runs();

    fixture.add_program("tool", "echo.sh", "echo '\"changed\"'");
    let error = call(&skills, "repeat", json!({})).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert!(error.message().contains("changed since it was trusted"));
    let skills = fixture.load().await;
    assert_eq!(skills.skills[0].trust, TrustState::Changed);
    assert_eq!(skills.skills[0].tools, ["tool"]);
    assert_eq!(fixture.runs(), runs, "the changed program was started");
}

#[tokio::test]
async fn an_untrusted_program_has_no_tools_even_if_its_description_is_cached() {
    let fixture = Fixture::new(SkillScope::Project);
    fixture.add_skill("evil").add_echo_program("evil", "repeat");
    fixture.cache_description(&fixture.description_key("evil"), r#"[{"name":"repeat"}]"#).await;
    assert_eq!(fixture.load().await.skills[0].tools, ["evil"]);
    assert_eq!(fixture.runs(), 0);
}

#[tokio::test]
async fn a_program_is_described_once_per_content() {
    let fixture = Fixture::new(SkillScope::User);
    fixture.add_skill("tool").add_echo_program("tool", "repeat");
    for _ in 0..3 {
        assert_eq!(fixture.load().await.skills[0].tools, ["tool", "repeat"]);
    }
    assert_eq!(fixture.runs(), 1);
    let entry = fixture.descriptions.description(&fixture.description_key("tool")).await.unwrap().to_value();
    assert_eq!(
        entry,
        json!([{"name": "repeat", "description": "Echo", "inputSchema": {"type": "object"}}]),
        "the list of tools, and nothing else"
    );

    fixture.add_echo_program("tool", "other");
    assert_eq!(fixture.load().await.skills[0].tools, ["tool", "other"]);
    assert_eq!(fixture.runs(), 2);
}

#[tokio::test]
async fn a_program_with_a_cached_description_is_not_started() {
    let fixture = Fixture::new(SkillScope::User);
    fixture.add_skill("tool").add_echo_program("tool", "repeat");
    fixture.cache_description(&fixture.description_key("tool"), r#"[{"name":"known"}]"#).await;
    assert_eq!(fixture.load().await.skills[0].tools, ["tool", "known"]);
    assert_eq!(fixture.runs(), 0);
}

#[tokio::test]
async fn a_corrupt_cache_entry_is_ignored() {
    let fixture = Fixture::new(SkillScope::User);
    fixture.add_skill("tool").add_echo_program("tool", "repeat");
    let content = fixture.description_key("tool");
    fixture.cache_description(&ContentHash::of("another program"), r#"[{"name":"forged"}]"#).await;
    let corrupt = [
        "null",
        "7",
        "{}",
        "[]",
        r#""repeat""#,
        r#"[[{"name":"forged"}]]"#,
        r#"[{"name":"not a name"}]"#,
        r#"[{"name":"forged"},7]"#,
        r#"[{"name":"forged"},{"name":"forged"}]"#,
        r#"[{"name":"forged","inputSchema":"none"}]"#,
        r#"{"version":1,"tools":[{"name":"forged"}]}"#,
    ];
    for (index, text) in corrupt.into_iter().enumerate() {
        fixture.cache_description(&content, text).await;
        for _ in 0..2 {
            assert_eq!(fixture.load().await.skills[0].tools, ["tool", "repeat"], "{text}");
            assert_eq!(fixture.runs(), index + 1, "the program runs again, once: {text}");
        }
    }
}

#[tokio::test]
async fn the_same_wrapper_in_two_skills_does_not_swap_their_descriptions() {
    let mut fixture = Fixture::new(SkillScope::User);
    let wrapper = r#"cat "$TOOLYARD_SKILL_DIR/tools.json""#;
    fixture
        .add_skill("one")
        .add_program("one", "run", wrapper)
        .add_skill("two")
        .add_program("two", "run", wrapper);
    let skills = fixture.root.path().join("skills");
    for scope in [SkillScope::User, SkillScope::Shared] {
        fixture.scope = scope;
        fs::write(skills.join("one/tools.json"), format!(r#"{{"name":"first-{scope:?}"}}"#)).unwrap();
        fs::write(skills.join("two/tools.json"), format!(r#"{{"name":"second-{scope:?}"}}"#)).unwrap();
        fixture.trust_all();
        let loaded = fixture.load().await;
        assert_eq!(loaded.skills[0].tools, ["one".to_owned(), format!("first-{scope:?}")]);
        assert_eq!(loaded.skills[1].tools, ["two".to_owned(), format!("second-{scope:?}")]);
    }
}

#[tokio::test]
async fn one_file_under_two_names_may_be_two_programs() {
    let fixture = Fixture::new(SkillScope::User);
    let body = r#"printf '{"name":"%s"}' "$(basename "$0")""#;
    fixture.add_skill("box").add_program("box", "first", body).add_program("box", "second", body);
    for _ in 0..2 {
        assert_eq!(fixture.load().await.skills[0].tools, ["box", "first", "second"]);
    }
    assert_eq!(fixture.runs(), 2);
}

#[tokio::test]
async fn a_failure_to_describe_is_cached_until_the_skill_changes() {
    for (body, problem) in [
        ("echo usage: tool", "the description is not a JSON object or list of objects"),
        ("echo no such option >&2; exit 2", "the program exited with code 2: no such option"),
        ("echo '[{\"name\":\"not a name\"}]'", "`not a name` is not a valid tool name"),
        ("kill -9 $$", "the program was killed by signal 9"),
        ("yes", "the program wrote more than"),
        ("exit 0", "the program printed nothing"),
    ] {
        let fixture = Fixture::new(SkillScope::User);
        fixture.add_skill("tool").add_program("tool", "echo.sh", body);
        let first = fixture.load().await.skills.remove(0);
        assert_eq!(first.problems.len(), 1, "{body}");
        assert!(first.problems[0].starts_with(&format!("echo.sh: {problem}")), "{:?}", first.problems);
        assert!(first.problems[0].ends_with("; retried when the skill changes"), "{:?}", first.problems);
        assert_eq!(fixture.load().await.skills.remove(0), first, "{body}");
        assert_eq!(fixture.runs(), 1, "{body}");
        let entry =
            fixture.descriptions.description(&fixture.description_key("tool")).await.unwrap().to_value();
        assert!(entry["failed"].as_str().unwrap().starts_with(problem), "{entry}");

        fixture.add_echo_program("tool", "repeat");
        assert_eq!(fixture.load().await.skills[0].tools, ["tool", "repeat"]);
    }
}

#[tokio::test]
async fn transient_failures_are_not_cached() {
    let fixture = Fixture::new(SkillScope::User);
    fixture.add_skill("tool").add_echo_program("tool", "repeat");
    let program = fixture.root.path().join("skills/tool/echo.sh");
    fs::write(&program, "#!/no/such/interpreter\n").unwrap();
    let status = fixture.load().await.skills.remove(0);
    assert!(status.problems[0].contains("failed to start the program"), "{:?}", status.problems);
    assert!(status.problems[0].ends_with("; retried at the next load"), "{:?}", status.problems);
    assert_eq!(
        fixture.descriptions.description(&fixture.description_key("tool")).await,
        None,
        "it may be installed later"
    );
}

#[tokio::test]
async fn hanging_programs_share_one_limit_and_are_not_run_again() {
    let fixture = Fixture::new(SkillScope::User);
    for name in ["a", "b", "c"] {
        fixture
            .add_skill(name)
            .add_program(name, "hang-1", "sleep 60")
            .add_program(name, "hang-2", "sleep 60");
    }
    fixture.add_skill("good").add_echo_program("good", "repeat");
    let start = Instant::now();
    let limit = Duration::from_millis(1_500);
    let first = fixture.load_within(limit).await;
    assert!(start.elapsed() < 2 * limit, "took {:?}", start.elapsed());
    assert_eq!(first.skills[3].tools, ["good", "repeat"]);
    let killed = "the program did not exit in time and was killed; retried when the skill changes";
    assert_eq!(first.skills[0].problems, [format!("hang-1: {killed}"), format!("hang-2: {killed}")]);
    assert_eq!(fixture.runs(), 7);

    let start = Instant::now();
    let again = fixture.load().await;
    assert!(start.elapsed() < Duration::from_secs(1), "took {:?}", start.elapsed());
    assert_eq!((again.skills, fixture.runs()), (first.skills, 7));
}

#[tokio::test]
async fn hanging_programs_neither_delay_the_others_nor_mark_them_as_failed() {
    let fixture = Fixture::new(SkillScope::User);
    fixture.add_skill("a-crowd").add_skill("honest").add_echo_program("honest", "repeat");
    for index in 0..12 {
        fixture.add_program("a-crowd", &format!("hang-{index:02}"), "sleep 60");
    }
    let limit = Duration::from_millis(1_500);
    let start = Instant::now();
    let first = fixture.load_within(limit).await;
    assert!(start.elapsed() < 2 * limit, "took {:?}", start.elapsed());
    assert_eq!(first.skills[1].tools, ["honest", "repeat"], "the first program of each skill goes first");
    let cached_failures = |skills: &LoadedSkills| {
        let problems = &skills.skills[0].problems;
        problems.iter().filter(|problem| problem.ends_with("when the skill changes")).count()
    };
    let described = cached_failures(&first);
    assert!((7..=8).contains(&described), "{:#?}", first.skills[0].problems);
    assert!(first.skills[0].problems[11].ends_with("retried at the next load"));
    assert_eq!(cached_failures(&fixture.load_within(limit).await), 12, "programs that had no time run now");
}

#[tokio::test]
async fn a_program_that_started_late_is_retried_at_the_next_load() {
    let fixture = Fixture::new(SkillScope::User);
    for name in ["a", "b", "c", "d", "e", "f", "g", "h"] {
        let slow = format!(r#"sleep 2; echo '{{"name":"slow-{name}"}}'"#);
        fixture.add_skill(name).add_program(name, "1-slow", &slow);
    }
    // The program needs longer than the rest of the limit, but less than the whole limit.
    fixture.add_program("a", "2-late", r#"sleep 1.5; echo '{"name":"late"}'"#);
    let limit = Duration::from_secs(3);
    let first = fixture.load_within(limit).await;
    let problem = "2-late: the program did not exit in time and was killed; retried at the next load";
    assert_eq!(first.skills[0].problems, [problem]);
    assert_eq!(fixture.load_within(limit).await.skills[0].tools, ["a", "slow-a", "late"]);
}

#[tokio::test]
async fn a_skill_with_too_many_files_works_without_caching_and_reports_it() {
    let fixture = Fixture::new(SkillScope::User);
    fixture.add_skill("huge").add_echo_program("huge", "repeat");
    let modules = fixture.root.path().join("skills/huge/node_modules");
    fs::create_dir(&modules).unwrap();
    for index in 0..4_100 {
        fs::write(modules.join(index.to_string()), "").unwrap();
    }
    for runs in 1..3 {
        let status = fixture.load().await.skills.remove(0);
        assert_eq!(status.tools, ["huge", "repeat"]);
        assert!(status.problems[0].starts_with("descriptions of programs are not cached: "), "{status:?}");
        assert_eq!(fixture.runs(), runs);
    }
}

/// A cache that stores nothing.
struct NoCache;

impl SkillDescriptionCache for NoCache {
    fn description<'a>(&'a self, _program: &'a ContentHash) -> BoxFuture<'a, Option<RawJson>> {
        Box::pin(async { None })
    }

    fn put_description<'a>(&'a self, _program: &'a ContentHash, _tools: &'a RawJson) -> BoxFuture<'a, ()> {
        Box::pin(async {})
    }
}

#[tokio::test]
async fn a_cache_that_stores_nothing_only_costs_time() {
    let fixture = Fixture::new(SkillScope::User);
    fixture.add_skill("tool").add_echo_program("tool", "repeat");
    for runs in 1..3 {
        assert_eq!(fixture.load_with(Arc::new(NoCache)).await.skills[0].tools, ["tool", "repeat"]);
        assert_eq!(fixture.runs(), runs);
    }
}

#[tokio::test]
async fn programs_of_a_skill_whose_path_is_not_utf8_are_disabled() {
    let fixture = Fixture::new(SkillScope::Project);
    fixture.add_skill("tool").add_echo_program("tool", "repeat");
    let skills = fixture.root.path().join("skills");
    fs::rename(skills.join("tool"), skills.join(OsStr::from_bytes(b"to\xffol"))).unwrap();
    let loaded = fixture.load().await;
    let status = &loaded.skills[0];
    assert_eq!((status.trust, status.tools.as_slice()), (TrustState::Untrusted, &["tool".to_owned()][..]));
    assert!(
        status.problems.iter().any(|problem| problem.ends_with("its path is not UTF-8 text")),
        "{status:?}"
    );
    assert_eq!(fixture.runs(), 0);
}

#[tokio::test]
async fn a_program_that_fails_to_describe_does_not_affect_the_others() {
    let fixture = Fixture::new(SkillScope::User);
    fixture.add_skill("good").add_echo_program("good", "repeat");
    fixture
        .add_skill("bad")
        .add_program("bad", "1-silent", "exit 0")
        .add_program("bad", "2-noisy", "echo usage: noisy")
        .add_program("bad", "3-failing", "echo sorry >&2; exit 2")
        .add_program("bad", "4-flood", "yes")
        .add_program("bad", "5-good", r#"echo '[{"name":"fine"},{"name":"not fine"}]'"#)
        .add_program("bad", "6-same", r#"echo '{"name":"fine"}'"#);
    let skills = fixture.load().await;
    assert_eq!(skills.skills[0].tools, ["bad", "fine"]);
    assert_eq!(skills.skills[1].tools, ["good", "repeat"]);
    let problems = &skills.skills[0].problems;
    assert_eq!(problems.len(), 6, "{problems:#?}");
    assert_eq!(problems[0], "1-silent: the program printed nothing; retried when the skill changes");
    assert_eq!(
        problems[2],
        "3-failing: the program exited with code 2: sorry; retried when the skill changes"
    );
    assert_eq!(problems[4], "5-good: `not fine` is not a valid tool name");
    assert_eq!(problems[5], "6-same: another program already provides the tool `fine`");
}

#[tokio::test]
async fn programs_in_subfolders_and_hidden_ones_are_not_tools() {
    let fixture = Fixture::new(SkillScope::User);
    fixture.add_skill("tool").add_skill("tool/scripts").add_echo_program("tool/scripts", "inner");
    fixture.add_program("tool", ".hidden", "echo '{\"name\":\"hidden\"}'");
    assert_eq!(fixture.load().await.skills[0].tools, ["tool"]);
    assert_eq!(fixture.runs(), 0);
}

#[tokio::test]
async fn rejected_and_shadowed_skills_are_reported() {
    let (shared, project) = (Fixture::new(SkillScope::Shared), Fixture::new(SkillScope::Project));
    shared.add_skill("same").add_echo_program("same", "repeat");
    project.add_skill("same").add_echo_program("same", "repeat").add_skill("broken");
    fs::write(project.root.path().join("skills/broken/SKILL.md"), "no frontmatter").unwrap();
    let folders = [shared.folders(), project.folders()].concat();
    let skills =
        load_folders(folders, &shared.trust, Arc::<MemoryDescriptionCache>::default(), shared.root.path())
            .await;
    assert_eq!((skills.rejected.len(), skills.shadowed.len(), skills.skills.len()), (1, 1, 1));
    let used = (skills.skills[0].scope, skills.skills[0].trust);
    assert_eq!(used, (SkillScope::Project, TrustState::Untrusted));
    assert_eq!((shared.runs(), project.runs()), (0, 0));
}

/// The scope of the skill `same` that is used, the shadowed scopes, and the scope that would win without trust.
async fn resolve_same_name(
    fixtures: [&Fixture; 3],
    trust: &TrustedSkills,
) -> (SkillScope, Vec<SkillScope>, SkillScope) {
    let folders = fixtures.map(Fixture::folders).concat();
    let by_scope = scan(&folders).skills.remove(0).scope;
    let descriptions = Arc::<MemoryDescriptionCache>::default();
    let loaded = load_folders(folders, trust, descriptions, fixtures[0].root.path()).await;
    let (used, shadowed) = (&loaded.skills[0], &loaded.shadowed);
    assert_eq!(loaded.skills.len(), 1);
    assert!(shadowed.iter().all(|shadowed| shadowed.by == used.path && shadowed.name == "same"));
    let mut scopes: Vec<SkillScope> = shadowed.iter().map(|shadowed| shadowed.scope).collect();
    scopes.sort();
    (used.scope, scopes, by_scope)
}

#[tokio::test]
async fn an_untrusted_project_skill_does_not_override_a_trusted_one() {
    use SkillScope::{Project, Shared, User};
    let (user, mut project, mut shared) = (Fixture::new(User), Fixture::new(Project), Fixture::new(Shared));
    for fixture in [&user, &project, &shared] {
        fixture.add_skill("same").add_echo_program("same", "repeat");
    }
    let all = [&user, &project, &shared];
    assert_eq!(resolve_same_name(all, &user.trust).await, (User, vec![Shared, Project], Project));
    assert_eq!((user.runs(), project.runs(), shared.runs()), (1, 0, 0));

    project.trust_all();
    let all = [&user, &project, &shared];
    assert_eq!(resolve_same_name(all, &project.trust).await, (Project, vec![Shared, User], Project));
    project.add_echo_program("same", "changed");
    assert_eq!(resolve_same_name(all, &project.trust).await, (User, vec![Shared, Project], Project));

    shared.trust_all();
    let nothing = Fixture::new(User);
    let without_user = [&nothing, &project, &shared];
    assert_eq!(resolve_same_name(without_user, &shared.trust).await, (Shared, vec![Project], Project));
}

#[tokio::test]
async fn the_example_skills_work() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/skills");
    let root = TempDir::new().unwrap();
    fs::write(root.path().join("file"), vec![b'x'; 10_000]).unwrap();
    let folders = vec![SkillFolder { path: examples, scope: SkillScope::User }];
    let skills = load_folders(
        folders,
        &TrustedSkills::default(),
        Arc::<MemoryDescriptionCache>::default(),
        root.path(),
    )
    .await;
    let tools: Vec<&str> = skills.skills.iter().flat_map(|skill| &skill.tools).map(String::as_str).collect();
    assert_eq!(tools, ["disk-usage", "disk_usage", "release-notes", "word-count", "count_words"]);
    assert!(skills.skills.iter().all(|skill| skill.problems.is_empty()), "{:?}", skills.skills);

    let style = call(&skills, "release-notes", json!({"resource": "references/style.md"})).await.unwrap();
    assert!(style.to_text().starts_with("# Style of a line"));
    let counted = call(&skills, "count_words", json!({"text": "你好 world,\nit's me"})).await.unwrap();
    assert_eq!(counted.to_json(), json!({"words": 5, "characters": 17, "lines": 2}));
    assert!(call(&skills, "count_words", json!({"text": 7})).await.is_err());

    let used = call(&skills, "disk_usage", json!({"path": "file"})).await.unwrap().to_json();
    assert_eq!((&used["path"], &used["complete"]), (&json!("file"), &json!(true)));
    assert!(used["kilobytes"].as_u64().unwrap() >= 8);
    for hostile in
        ["$(touch pwned)", "`touch pwned`", "x\"; touch pwned; \"", "-x", "a\nb", "--files0-from=file"]
    {
        assert!(call(&skills, "disk_usage", json!({"path": hostile})).await.is_err(), "{hostile}");
    }
    assert!(!root.path().join("pwned").exists());
}
