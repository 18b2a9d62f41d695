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
use crate::skill::{MemoryDescriptions, scan};

/// A place for skills of one scope; programs leave a line in `runs` whenever they are started.
struct Yard {
    root: TempDir,
    scope: SkillScope,
    trust: TrustBook,
    descriptions: Arc<MemoryDescriptions>,
}

impl Yard {
    fn new(scope: SkillScope) -> Self {
        let root = TempDir::new().unwrap();
        fs::create_dir(root.path().join("skills")).unwrap();
        Self { root, scope, trust: TrustBook::default(), descriptions: Arc::default() }
    }

    fn skill(&self, name: &str) -> &Self {
        let folder = self.root.path().join("skills").join(name);
        fs::create_dir_all(&folder).unwrap();
        let text = format!("---\nname: {name}\ndescription: Does {name}.\n---\nInstructions of {name}\n");
        fs::write(folder.join("SKILL.md"), text).unwrap();
        self
    }

    fn program(&self, skill: &str, file: &str, body: &str) -> &Self {
        let path = self.root.path().join("skills").join(skill).join(file);
        let runs = self.root.path().join("runs");
        fs::write(&path, format!("#!/bin/sh\necho run >> '{}'\n{body}\n", runs.display())).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        self
    }

    /// A program with one tool that answers with its input.
    fn echo(&self, skill: &str, tool: &str) -> &Self {
        let body = format!(
            r#"if [ "$1" = --describe ]; then echo '{{"name":"{tool}","description":"Echo"}}'; else cat; fi"#
        );
        self.program(skill, "echo.sh", &body)
    }

    fn runs(&self) -> usize {
        fs::read_to_string(self.root.path().join("runs")).unwrap_or_default().lines().count()
    }

    fn trust(&mut self) {
        for skill in scan(&self.folders()).skills {
            self.trust.insert(TrustBook::decision_for(&skill, 0).unwrap());
        }
    }

    /// The content under which the description of a skill's `echo.sh` is kept.
    fn content(&self, skill: &str) -> ContentHash {
        let folder = self.root.path().canonicalize().unwrap().join("skills").join(skill);
        of_program(&of_skill(&folder).unwrap(), &folder.join("echo.sh"))
    }

    async fn keep(&self, program: &ContentHash, tools: &str) {
        let tools = RawJson::parse(tools.to_owned()).unwrap();
        self.descriptions.keep_description(program, &tools).await;
    }

    fn folders(&self) -> Vec<SkillFolder> {
        vec![SkillFolder { path: self.root.path().join("skills"), scope: self.scope }]
    }

    async fn load(&self) -> LoadedSkills {
        self.load_with(Arc::<MemoryDescriptions>::clone(&self.descriptions)).await
    }

    /// Loads with little time for programs to describe themselves.
    async fn load_soon(&self, limit: Duration) -> LoadedSkills {
        let descriptions = Arc::<MemoryDescriptions>::clone(&self.descriptions);
        load_within(settings(self.folders(), &self.trust, descriptions, self.root.path()), limit).await
    }

    async fn load_with(&self, descriptions: Arc<dyn Descriptions>) -> LoadedSkills {
        load_folders(self.folders(), &self.trust, descriptions, self.root.path()).await
    }
}

fn settings<'a>(
    folders: Vec<SkillFolder>,
    trust: &'a TrustBook,
    descriptions: Arc<dyn Descriptions>,
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
    trust: &TrustBook,
    descriptions: Arc<dyn Descriptions>,
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
    let yard = Yard::new(SkillScope::Own);
    yard.skill("notes").skill("echo").echo("echo", "repeat");
    let skills = yard.load().await;
    let sources: Vec<(&str, bool)> =
        skills.sources.iter().map(|(source, _)| (source.id.as_str(), source.trusted)).collect();
    assert_eq!(sources, [("skill:echo", true), ("skill:notes", true)]);
    assert_eq!(skills.skills[0].tools, ["echo", "repeat"]);
    assert_eq!(skills.skills[1].tools, ["notes"]);
    assert_eq!(call(&skills, "repeat", json!({"a": 1})).await.unwrap().to_json(), json!({"a": 1}));
    assert!(call(&skills, "notes", json!({})).await.unwrap().to_text().contains("Instructions of notes"));
}

#[tokio::test]
async fn a_program_may_speak_for_its_skill() {
    let yard = Yard::new(SkillScope::Own);
    yard.skill("echo").echo("echo", "echo");
    let skills = yard.load().await;
    assert_eq!(skills.skills[0].tools, ["echo"]);
    assert_eq!(call(&skills, "echo", json!({"a": 1})).await.unwrap().to_json(), json!({"a": 1}));
}

#[tokio::test]
async fn an_untrusted_program_is_never_started() {
    for scope in [SkillScope::Project, SkillScope::Shared] {
        let yard = Yard::new(scope);
        yard.skill("evil").echo("evil", "repeat");
        let skills = yard.load().await;
        assert_eq!(yard.runs(), 0);
        assert_eq!(skills.skills[0].tools, ["evil"]);
        assert_eq!(skills.skills[0].problems, ["its programs are not run: the skill is not trusted"]);
        assert!(!skills.sources[0].0.trusted);
        assert!(call(&skills, "evil", json!({})).await.is_ok(), "instructions can be read");
        assert_eq!(yard.runs(), 0);
    }
}

#[tokio::test]
async fn a_trusted_program_runs_until_it_changes() {
    let mut yard = Yard::new(SkillScope::Project);
    yard.skill("tool").echo("tool", "repeat");
    yard.trust();
    let skills = yard.load().await;
    assert_eq!(skills.skills[0].trust, TrustState::Trusted);
    assert!(call(&skills, "repeat", json!({})).await.is_ok());
    let runs = yard.runs();

    yard.program("tool", "echo.sh", "echo '\"changed\"'");
    let error = call(&skills, "repeat", json!({})).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert!(error.message().contains("changed since it was trusted"));
    let skills = yard.load().await;
    assert_eq!(skills.skills[0].trust, TrustState::Changed);
    assert_eq!(skills.skills[0].tools, ["tool"]);
    assert_eq!(yard.runs(), runs, "the changed program was started");
}

#[tokio::test]
async fn an_untrusted_program_has_no_tools_even_if_its_description_is_known() {
    let yard = Yard::new(SkillScope::Project);
    yard.skill("evil").echo("evil", "repeat");
    yard.keep(&yard.content("evil"), r#"[{"name":"repeat"}]"#).await;
    assert_eq!(yard.load().await.skills[0].tools, ["evil"]);
    assert_eq!(yard.runs(), 0);
}

#[tokio::test]
async fn a_program_is_asked_once_per_content() {
    let yard = Yard::new(SkillScope::Own);
    yard.skill("tool").echo("tool", "repeat");
    for _ in 0..3 {
        assert_eq!(yard.load().await.skills[0].tools, ["tool", "repeat"]);
    }
    assert_eq!(yard.runs(), 1);
    let kept = yard.descriptions.description(&yard.content("tool")).await.unwrap().to_value();
    assert_eq!(
        kept,
        json!([{"name": "repeat", "description": "Echo", "inputSchema": {"type": "object"}}]),
        "the list of tools, and nothing else"
    );

    yard.echo("tool", "other");
    assert_eq!(yard.load().await.skills[0].tools, ["tool", "other"]);
    assert_eq!(yard.runs(), 2);
}

#[tokio::test]
async fn a_program_whose_description_is_known_is_not_started() {
    let yard = Yard::new(SkillScope::Own);
    yard.skill("tool").echo("tool", "repeat");
    yard.keep(&yard.content("tool"), r#"[{"name":"known"}]"#).await;
    assert_eq!(yard.load().await.skills[0].tools, ["tool", "known"]);
    assert_eq!(yard.runs(), 0);
}

#[tokio::test]
async fn a_corrupt_description_is_no_description() {
    let yard = Yard::new(SkillScope::Own);
    yard.skill("tool").echo("tool", "repeat");
    let content = yard.content("tool");
    yard.keep(&ContentHash::of("another program"), r#"[{"name":"forged"}]"#).await;
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
        yard.keep(&content, text).await;
        for _ in 0..2 {
            assert_eq!(yard.load().await.skills[0].tools, ["tool", "repeat"], "{text}");
            assert_eq!(yard.runs(), index + 1, "it is asked again, and once: {text}");
        }
    }
}

#[tokio::test]
async fn the_same_wrapper_in_two_skills_does_not_swap_their_descriptions() {
    let mut yard = Yard::new(SkillScope::Own);
    let wrapper = r#"cat "$TOOLYARD_SKILL_DIR/tools.json""#;
    yard.skill("one").program("one", "run", wrapper).skill("two").program("two", "run", wrapper);
    let skills = yard.root.path().join("skills");
    for scope in [SkillScope::Own, SkillScope::Shared] {
        yard.scope = scope;
        fs::write(skills.join("one/tools.json"), format!(r#"{{"name":"first-{scope:?}"}}"#)).unwrap();
        fs::write(skills.join("two/tools.json"), format!(r#"{{"name":"second-{scope:?}"}}"#)).unwrap();
        yard.trust();
        let loaded = yard.load().await;
        assert_eq!(loaded.skills[0].tools, ["one".to_owned(), format!("first-{scope:?}")]);
        assert_eq!(loaded.skills[1].tools, ["two".to_owned(), format!("second-{scope:?}")]);
    }
}

#[tokio::test]
async fn one_file_under_two_names_may_be_two_programs() {
    let yard = Yard::new(SkillScope::Own);
    let body = r#"printf '{"name":"%s"}' "$(basename "$0")""#;
    yard.skill("box").program("box", "first", body).program("box", "second", body);
    for _ in 0..2 {
        assert_eq!(yard.load().await.skills[0].tools, ["box", "first", "second"]);
    }
    assert_eq!(yard.runs(), 2);
}

#[tokio::test]
async fn a_failure_to_describe_is_remembered_until_the_skill_changes() {
    for (body, problem) in [
        ("echo usage: tool", "its description is not a JSON object or list of objects"),
        ("echo no such option >&2; exit 2", "the program ended with code 2: no such option"),
        ("echo '[{\"name\":\"not a name\"}]'", "`not a name` is not a tool name"),
        ("kill -9 $$", "the program was ended by signal 9"),
        ("yes", "the program wrote more than"),
        ("exit 0", "the program printed nothing"),
    ] {
        let yard = Yard::new(SkillScope::Own);
        yard.skill("tool").program("tool", "echo.sh", body);
        let first = yard.load().await.skills.remove(0);
        assert_eq!(first.problems.len(), 1, "{body}");
        assert!(first.problems[0].starts_with(&format!("echo.sh: {problem}")), "{:?}", first.problems);
        assert!(first.problems[0].ends_with("; asked again when the skill changes"), "{:?}", first.problems);
        assert_eq!(yard.load().await.skills.remove(0), first, "{body}");
        assert_eq!(yard.runs(), 1, "{body}");
        let kept = yard.descriptions.description(&yard.content("tool")).await.unwrap().to_value();
        assert!(kept["failed"].as_str().unwrap().starts_with(problem), "{kept}");

        yard.echo("tool", "repeat");
        assert_eq!(yard.load().await.skills[0].tools, ["tool", "repeat"]);
    }
}

#[tokio::test]
async fn what_says_nothing_about_a_program_is_not_remembered() {
    let yard = Yard::new(SkillScope::Own);
    yard.skill("tool").echo("tool", "repeat");
    let program = yard.root.path().join("skills/tool/echo.sh");
    fs::write(&program, "#!/no/such/interpreter\n").unwrap();
    let status = yard.load().await.skills.remove(0);
    assert!(status.problems[0].contains("could not be started"), "{:?}", status.problems);
    assert!(status.problems[0].ends_with("; asked again at the next load"), "{:?}", status.problems);
    assert_eq!(yard.descriptions.description(&yard.content("tool")).await, None, "it may be installed later");
}

#[tokio::test]
async fn programs_that_hang_share_one_limit_and_cost_nothing_the_next_time() {
    let yard = Yard::new(SkillScope::Own);
    for name in ["a", "b", "c"] {
        yard.skill(name).program(name, "hang-1", "sleep 60").program(name, "hang-2", "sleep 60");
    }
    yard.skill("good").echo("good", "repeat");
    let start = Instant::now();
    let limit = Duration::from_millis(1_500);
    let first = yard.load_soon(limit).await;
    assert!(start.elapsed() < 2 * limit, "took {:?}", start.elapsed());
    assert_eq!(first.skills[3].tools, ["good", "repeat"]);
    let late = "the program did not end in time and was stopped; asked again when the skill changes";
    assert_eq!(first.skills[0].problems, [format!("hang-1: {late}"), format!("hang-2: {late}")]);
    assert_eq!(yard.runs(), 7);

    let start = Instant::now();
    let again = yard.load().await;
    assert!(start.elapsed() < Duration::from_secs(1), "took {:?}", start.elapsed());
    assert_eq!((again.skills, yard.runs()), (first.skills, 7));
}

#[tokio::test]
async fn a_crowd_of_hanging_programs_neither_starves_nor_blames_the_others() {
    let yard = Yard::new(SkillScope::Own);
    yard.skill("a-crowd").skill("honest").echo("honest", "repeat");
    for index in 0..12 {
        yard.program("a-crowd", &format!("hang-{index:02}"), "sleep 60");
    }
    let limit = Duration::from_millis(1_500);
    let start = Instant::now();
    let first = yard.load_soon(limit).await;
    assert!(start.elapsed() < 2 * limit, "took {:?}", start.elapsed());
    assert_eq!(first.skills[1].tools, ["honest", "repeat"], "the first program of each skill goes first");
    let remembered = |skills: &LoadedSkills| {
        let problems = &skills.skills[0].problems;
        problems.iter().filter(|problem| problem.ends_with("when the skill changes")).count()
    };
    let asked = remembered(&first);
    assert!((7..=8).contains(&asked), "{:#?}", first.skills[0].problems);
    assert!(first.skills[0].problems[11].ends_with("asked again at the next load"));
    assert_eq!(remembered(&yard.load_soon(limit).await), 12, "those that had no time are asked now");
}

#[tokio::test]
async fn a_program_that_was_asked_late_gets_another_chance() {
    let yard = Yard::new(SkillScope::Own);
    for name in ["a", "b", "c", "d", "e", "f", "g", "h"] {
        let slow = format!(r#"sleep 2; echo '{{"name":"slow-{name}"}}'"#);
        yard.skill(name).program(name, "1-slow", &slow);
    }
    // It needs longer than what is left of the limit, and not longer than the limit.
    yard.program("a", "2-late", r#"sleep 1.5; echo '{"name":"late"}'"#);
    let limit = Duration::from_secs(3);
    let first = yard.load_soon(limit).await;
    let problem = "2-late: the program did not end in time and was stopped; asked again at the next load";
    assert_eq!(first.skills[0].problems, [problem]);
    assert_eq!(yard.load_soon(limit).await.skills[0].tools, ["a", "slow-a", "late"]);
}

#[tokio::test]
async fn a_skill_with_too_many_files_still_works_and_says_what_it_costs() {
    let yard = Yard::new(SkillScope::Own);
    yard.skill("huge").echo("huge", "repeat");
    let modules = yard.root.path().join("skills/huge/node_modules");
    fs::create_dir(&modules).unwrap();
    for index in 0..4_100 {
        fs::write(modules.join(index.to_string()), "").unwrap();
    }
    for runs in 1..3 {
        let status = yard.load().await.skills.remove(0);
        assert_eq!(status.tools, ["huge", "repeat"]);
        assert!(status.problems[0].starts_with("its programs are asked at every load: "), "{status:?}");
        assert_eq!(yard.runs(), runs);
    }
}

/// A store that has lost everything and keeps nothing.
struct Forgetful;

impl Descriptions for Forgetful {
    fn description<'a>(&'a self, _program: &'a ContentHash) -> BoxFuture<'a, Option<RawJson>> {
        Box::pin(async { None })
    }

    fn keep_description<'a>(&'a self, _program: &'a ContentHash, _tools: &'a RawJson) -> BoxFuture<'a, ()> {
        Box::pin(async {})
    }
}

#[tokio::test]
async fn a_store_that_keeps_nothing_costs_time_and_nothing_else() {
    let yard = Yard::new(SkillScope::Own);
    yard.skill("tool").echo("tool", "repeat");
    for runs in 1..3 {
        assert_eq!(yard.load_with(Arc::new(Forgetful)).await.skills[0].tools, ["tool", "repeat"]);
        assert_eq!(yard.runs(), runs);
    }
}

#[tokio::test]
async fn a_path_that_is_not_text_is_a_problem_and_its_programs_are_not_run() {
    let yard = Yard::new(SkillScope::Project);
    yard.skill("tool").echo("tool", "repeat");
    let skills = yard.root.path().join("skills");
    fs::rename(skills.join("tool"), skills.join(OsStr::from_bytes(b"to\xffol"))).unwrap();
    let loaded = yard.load().await;
    let status = &loaded.skills[0];
    assert_eq!((status.trust, status.tools.as_slice()), (TrustState::Untrusted, &["tool".to_owned()][..]));
    assert!(
        status.problems.iter().any(|problem| problem.ends_with("its path is not UTF-8 text")),
        "{status:?}"
    );
    assert_eq!(yard.runs(), 0);
}

#[tokio::test]
async fn a_program_that_cannot_describe_itself_costs_only_itself() {
    let yard = Yard::new(SkillScope::Own);
    yard.skill("good").echo("good", "repeat");
    yard.skill("bad")
        .program("bad", "1-silent", "exit 0")
        .program("bad", "2-noisy", "echo usage: noisy")
        .program("bad", "3-failing", "echo sorry >&2; exit 2")
        .program("bad", "4-flood", "yes")
        .program("bad", "5-good", r#"echo '[{"name":"fine"},{"name":"not fine"}]'"#)
        .program("bad", "6-same", r#"echo '{"name":"fine"}'"#);
    let skills = yard.load().await;
    assert_eq!(skills.skills[0].tools, ["bad", "fine"]);
    assert_eq!(skills.skills[1].tools, ["good", "repeat"]);
    let problems = &skills.skills[0].problems;
    assert_eq!(problems.len(), 6, "{problems:#?}");
    assert_eq!(problems[0], "1-silent: the program printed nothing; asked again when the skill changes");
    assert_eq!(
        problems[2],
        "3-failing: the program ended with code 2: sorry; asked again when the skill changes"
    );
    assert_eq!(problems[4], "5-good: `not fine` is not a tool name");
    assert_eq!(problems[5], "6-same: another program has a tool `fine` already");
}

#[tokio::test]
async fn programs_in_subfolders_and_hidden_ones_are_not_tools() {
    let yard = Yard::new(SkillScope::Own);
    yard.skill("tool").skill("tool/scripts").echo("tool/scripts", "inner");
    yard.program("tool", ".hidden", "echo '{\"name\":\"hidden\"}'");
    assert_eq!(yard.load().await.skills[0].tools, ["tool"]);
    assert_eq!(yard.runs(), 0);
}

#[tokio::test]
async fn rejected_and_shadowed_skills_are_reported() {
    let (shared, project) = (Yard::new(SkillScope::Shared), Yard::new(SkillScope::Project));
    shared.skill("same").echo("same", "repeat");
    project.skill("same").echo("same", "repeat").skill("broken");
    fs::write(project.root.path().join("skills/broken/SKILL.md"), "no frontmatter").unwrap();
    let folders = [shared.folders(), project.folders()].concat();
    let skills =
        load_folders(folders, &shared.trust, Arc::<MemoryDescriptions>::default(), shared.root.path()).await;
    assert_eq!((skills.rejected.len(), skills.shadowed.len(), skills.skills.len()), (1, 1, 1));
    let used = (skills.skills[0].scope, skills.skills[0].trust);
    assert_eq!(used, (SkillScope::Project, TrustState::Untrusted));
    assert_eq!((shared.runs(), project.runs()), (0, 0));
}

/// Which skill `same` is used, which are shadowed, and which by scope alone.
async fn used_of_one_name(yards: [&Yard; 3], trust: &TrustBook) -> (SkillScope, Vec<SkillScope>, SkillScope) {
    let folders = yards.map(Yard::folders).concat();
    let by_scope = scan(&folders).skills.remove(0).scope;
    let descriptions = Arc::<MemoryDescriptions>::default();
    let loaded = load_folders(folders, trust, descriptions, yards[0].root.path()).await;
    let (used, shadowed) = (&loaded.skills[0], &loaded.shadowed);
    assert_eq!(loaded.skills.len(), 1);
    assert!(shadowed.iter().all(|shadowed| shadowed.by == used.path && shadowed.name == "same"));
    let mut scopes: Vec<SkillScope> = shadowed.iter().map(|shadowed| shadowed.scope).collect();
    scopes.sort();
    (used.scope, scopes, by_scope)
}

#[tokio::test]
async fn a_project_cannot_replace_a_skill_that_is_trusted_by_one_that_is_not() {
    use SkillScope::{Own, Project, Shared};
    let (own, mut project, mut shared) = (Yard::new(Own), Yard::new(Project), Yard::new(Shared));
    for yard in [&own, &project, &shared] {
        yard.skill("same").echo("same", "repeat");
    }
    let all = [&own, &project, &shared];
    assert_eq!(used_of_one_name(all, &own.trust).await, (Own, vec![Shared, Project], Project));
    assert_eq!((own.runs(), project.runs(), shared.runs()), (1, 0, 0));

    project.trust();
    let all = [&own, &project, &shared];
    assert_eq!(used_of_one_name(all, &project.trust).await, (Project, vec![Shared, Own], Project));
    project.echo("same", "changed");
    assert_eq!(used_of_one_name(all, &project.trust).await, (Own, vec![Shared, Project], Project));

    shared.trust();
    let nothing = Yard::new(Own);
    let without_own = [&nothing, &project, &shared];
    assert_eq!(used_of_one_name(without_own, &shared.trust).await, (Shared, vec![Project], Project));
}

#[tokio::test]
async fn the_example_skills_work() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/skills");
    let root = TempDir::new().unwrap();
    fs::write(root.path().join("file"), vec![b'x'; 10_000]).unwrap();
    let folders = vec![SkillFolder { path: examples, scope: SkillScope::Own }];
    let skills =
        load_folders(folders, &TrustBook::default(), Arc::<MemoryDescriptions>::default(), root.path()).await;
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
