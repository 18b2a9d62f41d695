//! Skills from folder to tool: trust, cached descriptions, and the examples.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tempfile::TempDir;
use toolyard_core::{CallContext, ErrorKind, ToolCallRequest, ToolError, ToolOutput};

use super::*;

/// A place for skills of one scope; programs leave a line in `runs` whenever they are started.
struct Yard {
    root: TempDir,
    scope: SkillScope,
}

impl Yard {
    fn new(scope: SkillScope) -> Self {
        let root = TempDir::new().unwrap();
        fs::create_dir(root.path().join("skills")).unwrap();
        Self { root, scope }
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

    fn trust_file(&self) -> TrustFile {
        TrustFile::load(self.root.path().join("trust.json")).unwrap()
    }

    fn trust(&self) {
        let mut trust = self.trust_file();
        for skill in scan(&self.folders()).skills {
            trust.trust(&skill).unwrap();
        }
        trust.save().unwrap();
    }

    fn folders(&self) -> Vec<SkillFolder> {
        vec![SkillFolder { path: self.root.path().join("skills"), scope: self.scope }]
    }

    async fn load(&self) -> LoadedSkills {
        load_folders(self.folders(), &self.trust_file(), self.root.path()).await
    }
}

async fn load_folders(folders: Vec<SkillFolder>, trust: &TrustFile, root: &Path) -> LoadedSkills {
    load(SkillSettings {
        folders,
        trust,
        cache_folder: root.join("cache"),
        environment: vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())],
        working_directory: root.to_owned(),
    })
    .await
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
    let yard = Yard::new(SkillScope::Project);
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
async fn a_program_is_asked_once_per_content() {
    let yard = Yard::new(SkillScope::Own);
    yard.skill("tool").echo("tool", "repeat");
    for _ in 0..3 {
        assert_eq!(yard.load().await.skills[0].tools, ["tool", "repeat"]);
    }
    assert_eq!(yard.runs(), 1);

    let entry = fs::read_dir(yard.root.path().join("cache")).unwrap().next().unwrap().unwrap().path();
    let sound = fs::read_to_string(&entry).unwrap();
    let hash = entry.file_stem().unwrap().to_str().unwrap();
    let forged = sound.replace("repeat", "forged");
    let corrupt = [
        String::new(),
        sound.chars().take(sound.len() / 2).collect(),
        forged.replace("\"version\":1", "\"version\":9"),
        forged.replace(hash, &"0".repeat(64)),
        sound.replace("repeat", "not a name").replace("[{", "7,[{"),
    ];
    for (index, text) in corrupt.iter().enumerate() {
        fs::write(&entry, text).unwrap();
        assert_eq!(yard.load().await.skills[0].tools, ["tool", "repeat"], "{text}");
        assert_eq!(yard.runs(), index + 2, "a corrupt entry is no entry: {text}");
    }

    yard.echo("tool", "other");
    assert_eq!(yard.load().await.skills[0].tools, ["tool", "other"]);
    assert_eq!(yard.runs(), corrupt.len() + 2);
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
    assert_eq!(problems[0], "1-silent: the program printed nothing");
    assert_eq!(problems[2], "3-failing: the program ended with code 2: sorry");
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
    let (own, project) = (Yard::new(SkillScope::Own), Yard::new(SkillScope::Project));
    own.skill("same").echo("same", "repeat");
    project.skill("same").echo("same", "repeat").skill("broken");
    fs::write(project.root.path().join("skills/broken/SKILL.md"), "no frontmatter").unwrap();
    let folders = [own.folders(), project.folders()].concat();
    let skills = load_folders(folders, &own.trust_file(), own.root.path()).await;
    assert_eq!((skills.rejected.len(), skills.shadowed.len(), skills.skills.len()), (1, 1, 1));
    assert_eq!(
        skills.skills[0].trust,
        TrustState::Untrusted,
        "a project cannot borrow the trust of the name"
    );
    assert_eq!((own.runs(), project.runs()), (0, 0));
}

#[tokio::test]
async fn the_example_skills_work() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/skills");
    let root = TempDir::new().unwrap();
    fs::write(root.path().join("file"), vec![b'x'; 10_000]).unwrap();
    let trust = TrustFile::load(root.path().join("trust.json")).unwrap();
    let folders = vec![SkillFolder { path: examples, scope: SkillScope::Own }];
    let skills = load_folders(folders, &trust, root.path()).await;
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
