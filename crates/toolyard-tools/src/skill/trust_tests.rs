//! Decisions about skills, and what ends them.

use std::os::unix::fs::{PermissionsExt, symlink};

use tempfile::TempDir;

use super::*;
use crate::skill::{SkillFolder, scan};

fn skill(scope: SkillScope) -> (TempDir, Skill) {
    let root = TempDir::new().unwrap();
    let folder = root.path().join("skills/demo");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("SKILL.md"), "---\nname: demo\ndescription: d\n---\n").unwrap();
    program(&folder, "run.sh", "#!/bin/sh\necho 1\n");
    fs::write(folder.join("notes"), "n").unwrap();
    let found = scan(&[SkillFolder { path: root.path().join("skills"), scope }]);
    (root, found.skills[0].clone())
}

fn program(folder: &Path, name: &str, text: &str) {
    fs::write(folder.join(name), text).unwrap();
    fs::set_permissions(folder.join(name), fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn own_skills_are_trusted_by_nature_and_all_others_are_not() {
    for (scope, state) in [
        (SkillScope::Own, TrustState::ByNature),
        (SkillScope::Shared, TrustState::Untrusted),
        (SkillScope::Project, TrustState::Untrusted),
    ] {
        let (root, skill) = skill(scope);
        let trust = TrustFile::load(root.path().join("trust.json")).unwrap();
        assert_eq!(trust.state(&skill).unwrap(), state);
    }
}

#[test]
fn a_decision_is_kept_and_can_be_taken_back() {
    let (root, skill) = skill(SkillScope::Project);
    let path = root.path().join("state/trust.json");
    let mut trust = TrustFile::load(&path).unwrap();
    trust.trust(&skill).unwrap();
    trust.save().unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);

    let mut again = TrustFile::load(&path).unwrap();
    assert_eq!(again.state(&skill).unwrap(), TrustState::Trusted);
    assert!(again.revoke(&skill) && !again.revoke(&skill));
    assert_eq!(again.state(&skill).unwrap(), TrustState::Untrusted);
}

#[test]
fn any_change_of_what_could_run_ends_trust() {
    let changes: [fn(&Path); 8] = [
        |folder| program(folder, "run.sh", "#!/bin/sh\necho 2\n"),
        |folder| program(folder, "new.sh", "#!/bin/sh\n"),
        |folder| fs::remove_file(folder.join("run.sh")).unwrap(),
        |folder| fs::write(folder.join("lib.py"), "import os").unwrap(),
        |folder| fs::set_permissions(folder.join("notes"), fs::Permissions::from_mode(0o755)).unwrap(),
        |folder| fs::rename(folder.join("run.sh"), folder.join("other.sh")).unwrap(),
        |folder| fs::write(folder.join("SKILL.md"), "---\nname: demo\ndescription: e\n---\n").unwrap(),
        |folder| {
            fs::create_dir(folder.join("scripts")).unwrap();
            program(&folder.join("scripts"), "x.sh", "#!/bin/sh\n");
            symlink("scripts/x.sh", folder.join("x")).unwrap();
        },
    ];
    for (index, change) in changes.iter().enumerate() {
        let (root, skill) = skill(SkillScope::Shared);
        let mut trust = TrustFile::load(root.path().join("trust.json")).unwrap();
        trust.trust(&skill).unwrap();
        change(&skill.path);
        assert_eq!(trust.state(&skill).unwrap(), TrustState::Changed, "change {index}");
    }
}

#[test]
fn a_copy_elsewhere_is_not_trusted() {
    let (root, skill) = skill(SkillScope::Project);
    let (_other, copy) = self::skill(SkillScope::Project);
    let mut trust = TrustFile::load(root.path().join("trust.json")).unwrap();
    trust.trust(&skill).unwrap();
    assert_eq!(trust.state(&copy).unwrap(), TrustState::Untrusted);
}

#[test]
fn a_broken_or_newer_file_is_an_error_and_never_forgotten_silently() {
    let root = TempDir::new().unwrap();
    let path = root.path().join("trust.json");
    for broken in ["", "{", "[]", r#"{"version":2,"trusted":{}}"#, r#"{"version":1}"#] {
        fs::write(&path, broken).unwrap();
        assert!(matches!(TrustFile::load(&path), Err(TrustError::Unreadable { .. })), "{broken}");
    }
}

#[test]
fn a_new_link_is_a_change_even_when_it_leads_out_of_the_folder() {
    let (root, skill) = skill(SkillScope::Project);
    program(root.path(), "outside.sh", "#!/bin/sh\n");
    let mut trust = TrustFile::load(root.path().join("trust.json")).unwrap();
    trust.trust(&skill).unwrap();
    symlink(root.path().join("outside.sh"), skill.path.join("outside")).unwrap();
    assert_eq!(trust.state(&skill).unwrap(), TrustState::Changed);
}
