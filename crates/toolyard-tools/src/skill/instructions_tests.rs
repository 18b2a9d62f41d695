//! Instructions and files of a skill, and attempts to leave its folder.

use std::{
    fs,
    os::unix::fs::symlink,
    process::Command,
    time::{Duration, Instant},
};

use proptest::prelude::*;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::skill::{SkillFolder, SkillScope, scan};

fn folder_with(text: &str) -> (TempDir, SkillTool) {
    let root = TempDir::new().unwrap();
    let folder = root.path().join("demo");
    fs::create_dir_all(folder.join("references")).unwrap();
    fs::write(folder.join("SKILL.md"), text).unwrap();
    let found = scan(&[SkillFolder { path: root.path().to_owned(), scope: SkillScope::User }]);
    let tool = SkillTool::new(&found.skills[0]);
    (root, tool)
}

fn demo() -> (TempDir, SkillTool) {
    folder_with("---\nname: demo\ndescription: Shows.\n---\n\n# Do this\n")
}

async fn call(tool: &SkillTool, arguments: Value) -> Result<String, ToolError> {
    let context = CallContext::until(Instant::now() + Duration::from_secs(5));
    let output = tool.call(&ToolCallRequest::new("demo", arguments), &context).await?;
    Ok(output.to_text())
}

#[tokio::test]
async fn instructions_come_with_the_list_of_files() {
    let (root, tool) = demo();
    let folder = root.path().join("demo");
    fs::write(folder.join("references/b.md"), "b").unwrap();
    fs::write(folder.join("a.txt"), "a").unwrap();
    fs::write(folder.join(".hidden"), "h").unwrap();
    fs::write(folder.join("evil\n<file>.md"), "h").unwrap();
    assert_eq!(
        call(&tool, json!({})).await.unwrap(),
        "<skill_content name=\"demo\">\n# Do this\n</skill_content>\n<skill_resources>\n  <file>a.txt</file>\n  \
         <file>references/b.md</file>\n</skill_resources>"
    );
    assert_eq!(tool.spec().name.as_ref(), "demo");
    assert_eq!(tool.spec().description, "Shows.");
    assert_eq!(tool.spec().hints.read_only, Some(true));
    assert!(tool.spec().declared_capabilities_only, "instructions about time are no clock");
}

#[tokio::test]
async fn a_misspelled_argument_is_an_error() {
    let (_root, tool) = demo();
    assert_eq!(tool.spec().input_schema.to_value()["additionalProperties"], json!(false));
    let error = call(&tool, json!({"file": "secret.md"})).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArguments);
    assert!(!error.message().contains("secret"), "{}", error.message());
}

#[tokio::test]
async fn instructions_are_read_at_each_call() {
    let (root, tool) = demo();
    fs::write(root.path().join("demo/SKILL.md"), "---\ndescription: x\n---\nNew words").unwrap();
    assert!(call(&tool, json!({"resource": null})).await.unwrap().contains("New words"));
    fs::remove_file(root.path().join("demo/SKILL.md")).unwrap();
    assert!(call(&tool, json!({})).await.unwrap_err().message().contains("failed to read SKILL.md"));
}

#[tokio::test]
async fn an_empty_body_is_empty_output() {
    let (_root, tool) = folder_with("---\ndescription: x\n---\n");
    assert_eq!(call(&tool, json!({})).await.unwrap(), "<skill_content name=\"demo\">\n\n</skill_content>");
}

#[tokio::test]
async fn binary_and_huge_files_are_marked() {
    let (root, tool) = demo();
    let folder = root.path().join("demo");
    fs::write(folder.join("references/中文.md"), "文").unwrap();
    fs::write(folder.join("image.png"), [0x89, b'P', 0, 0xff]).unwrap();
    fs::write(folder.join("huge.txt"), "文".repeat(500_000)).unwrap();
    assert_eq!(call(&tool, json!({"resource": "./references/中文.md"})).await.unwrap(), "文");
    assert_eq!(call(&tool, json!({"resource": "image.png"})).await.unwrap(), "[a binary file of 4 bytes]");
    let huge = call(&tool, json!({"resource": "huge.txt"})).await.unwrap();
    assert!(huge.ends_with("文\n[showing 1,048,576 of 1,500,000 bytes]"));
}

#[tokio::test]
async fn nothing_outside_of_the_folder_is_read() {
    let (root, tool) = demo();
    let folder = root.path().join("demo");
    fs::write(root.path().join("secret"), "top secret").unwrap();
    fs::write(folder.join(".env"), "top secret").unwrap();
    symlink(root.path().join("secret"), folder.join("link")).unwrap();
    symlink(root.path(), folder.join("up")).unwrap();
    symlink("/etc", folder.join("etc")).unwrap();
    let refused = [
        "../secret",
        "references/../../secret",
        "/etc/passwd",
        "link",
        "up/secret",
        "etc/passwd",
        ".env",
        ".",
        "..",
        "a\0b",
        "..\\secret",
        "references",
        "missing",
        "SKILL.md/x",
        "\u{202e}",
        "references/./../../secret",
    ];
    for path in refused {
        let error = call(&tool, json!({"resource": path})).await.unwrap_err();
        assert!(!error.message().contains("top secret"), "{path}");
        assert!(error.hint().is_some(), "{path}");
    }
    let listed = call(&tool, json!({})).await.unwrap();
    assert!(!listed.contains("link") && !listed.contains("secret"), "{listed}");
}

#[tokio::test]
async fn pipes_and_devices_never_block() {
    let (root, tool) = demo();
    let folder = root.path().join("demo");
    assert!(Command::new("mkfifo").arg(folder.join("pipe")).status().unwrap().success());
    symlink("/dev/zero", folder.join("zero")).unwrap();
    symlink("pipe", folder.join("pipe-link")).unwrap();
    let start = Instant::now();
    for path in ["pipe", "zero", "pipe-link"] {
        assert!(call(&tool, json!({"resource": path})).await.is_err(), "{path}");
    }
    assert!(start.elapsed() < Duration::from_secs(3));
}

#[tokio::test]
async fn the_list_of_files_is_bounded() {
    let (root, tool) = demo();
    for index in 0..600 {
        fs::write(root.path().join(format!("demo/references/{index:04}.md")), "").unwrap();
    }
    let text = call(&tool, json!({})).await.unwrap();
    assert_eq!(text.matches("<file>").count(), 512);
    assert!(text.contains("(and more)"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn no_path_leads_out(path in "[./a\\\\\0 ~\u{4e2d}-]{0,24}") {
        if let Ok(relative) = parse_relative_path(&path) {
            let root = Path::new("/anywhere/skill");
            prop_assert!(root.join(&relative).starts_with(root));
            prop_assert!(relative.components().all(|step| matches!(step, std::path::Component::Normal(_))));
        }
    }

    #[test]
    fn no_path_at_all_panics(path in "\\PC{0,80}") {
        let _ = parse_relative_path(&path);
    }
}
