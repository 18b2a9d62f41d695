//! Valid, broken and hostile skill folders.

use std::{os::unix::fs::symlink, process::Command, time::Instant};

use tempfile::TempDir;

use super::*;

fn write_skill(root: &Path, folder: &str, text: &str) {
    let folder = root.join(folder);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("SKILL.md"), text).unwrap();
}

fn minimal_skill(name: &str) -> String {
    format!("---\nname: {name}\ndescription: Does {name}.\n---\nbody\n")
}

fn user_folder(root: &Path) -> Vec<SkillFolder> {
    vec![SkillFolder { path: root.to_owned(), scope: SkillScope::User }]
}

fn names(scan: &ScanReport) -> Vec<&str> {
    scan.skills.iter().map(|skill| skill.name.as_str()).collect()
}

#[test]
fn skills_are_found_in_order_and_hidden_folders_are_skipped() {
    let root = TempDir::new().unwrap();
    for folder in
        ["b", "a", "group/c", "1/2/3/deep", "1/2/3/4/too-deep", ".git/x", "node_modules/y", "a/inner"]
    {
        write_skill(root.path(), folder, &minimal_skill(folder.rsplit('/').next().unwrap()));
    }
    fs::write(root.path().join("README.md"), "not a skill").unwrap();
    let scan = scan(&user_folder(root.path()));
    assert_eq!(names(&scan), ["a", "b", "c", "deep"]);
    assert_eq!((scan.rejected, scan.shadowed), (vec![], vec![]));
}

#[test]
fn a_missing_folder_has_no_skills() {
    assert_eq!(scan(&user_folder(Path::new("/nowhere/at/all"))), ScanReport::default());
}

#[test]
fn project_overrides_user_overrides_shared_and_all_are_reported() {
    let root = TempDir::new().unwrap();
    for folder in ["shared", "own", "project"] {
        write_skill(&root.path().join(folder), "same", &minimal_skill("same"));
    }
    write_skill(&root.path().join("shared"), "only", &minimal_skill("only"));
    let folder = |name: &str, scope| SkillFolder { path: root.path().join(name), scope };
    let folders = [
        folder("own", SkillScope::User),
        folder("project", SkillScope::Project),
        folder("shared", SkillScope::Shared),
        folder("shared", SkillScope::Shared),
    ];
    let scan = scan(&folders);
    assert_eq!(names(&scan), ["only", "same"]);
    assert_eq!(scan.skills[1].scope, SkillScope::Project);
    let shadowed: Vec<SkillScope> = scan.shadowed.iter().map(|shadowed| shadowed.scope).collect();
    assert!(shadowed.contains(&SkillScope::User) && shadowed.contains(&SkillScope::Shared));
    assert!(scan.shadowed.iter().all(|shadowed| shadowed.by == scan.skills[1].path));
}

#[test]
fn rejected_folders_have_a_reason() {
    let root = TempDir::new().unwrap();
    let outside = TempDir::new().unwrap();
    write_skill(outside.path(), "evil", &minimal_skill("evil"));
    symlink(outside.path().join("evil"), root.path().join("link-out")).unwrap();
    symlink(root.path(), root.path().join("loop")).unwrap();
    symlink("/nowhere", root.path().join("dangling")).unwrap();
    write_skill(root.path(), "no-head", "just text");
    fs::create_dir_all(root.path().join("file-out")).unwrap();
    symlink(outside.path().join("evil/SKILL.md"), root.path().join("file-out/SKILL.md")).unwrap();
    fs::create_dir_all(root.path().join("folder/SKILL.md")).unwrap();
    let scan = scan(&user_folder(root.path()));
    assert_eq!(names(&scan), Vec::<&str>::new());
    let reasons: Vec<(String, String)> = scan
        .rejected
        .iter()
        .map(|rejected| {
            (rejected.path.file_name().unwrap().to_string_lossy().into_owned(), rejected.reason.to_string())
        })
        .collect();
    let expected = [
        ("link-out", "the link leads out of the skills folder"),
        ("file-out", "failed to open SKILL.md: the file is outside of the skill's folder"),
        ("folder", "failed to open SKILL.md: not a regular file"),
        ("no-head", "the file does not begin with a line `---`"),
    ];
    let expected: Vec<(String, String)> =
        expected.into_iter().map(|(path, reason)| (path.to_owned(), reason.to_owned())).collect();
    assert_eq!(reasons, expected);
}

#[test]
fn links_inside_the_root_are_followed_once() {
    let root = TempDir::new().unwrap();
    write_skill(root.path(), "real", &minimal_skill("real"));
    symlink("real", root.path().join("again")).unwrap();
    let scan = scan(&user_folder(root.path()));
    assert_eq!(names(&scan), ["real"]);
    assert_eq!(scan.shadowed, vec![]);
}

#[test]
fn a_pipe_instead_of_a_manifest_never_blocks() {
    let root = TempDir::new().unwrap();
    fs::create_dir_all(root.path().join("pipe")).unwrap();
    assert!(Command::new("mkfifo").arg(root.path().join("pipe/SKILL.md")).status().unwrap().success());
    let start = Instant::now();
    let scan = scan(&user_folder(root.path()));
    assert!(start.elapsed().as_secs() < 5);
    assert_eq!(scan.rejected[0].reason, RejectReason::File(SkillFileError::NotRegularFile));
}

#[test]
fn too_many_folders_are_cut_off_and_reported() {
    let root = TempDir::new().unwrap();
    for index in 0..2_100 {
        fs::create_dir(root.path().join(format!("f{index}"))).unwrap();
    }
    write_skill(root.path(), "a-skill", &minimal_skill("a-skill"));
    let scan = scan(&user_folder(root.path()));
    assert_eq!(scan.rejected.last().unwrap().reason, RejectReason::TooManyFolders);
}

#[test]
fn a_wrong_name_is_a_warning() {
    let root = TempDir::new().unwrap();
    write_skill(root.path(), "my-folder", &minimal_skill("Other Name"));
    let scan = scan(&user_folder(root.path()));
    assert_eq!(names(&scan), ["other-name"]);
    assert_eq!(scan.skills[0].warnings.len(), 2);
}
