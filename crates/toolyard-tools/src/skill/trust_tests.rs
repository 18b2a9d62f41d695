//! Decisions about skills, and what ends them.

use std::{
    ffi::OsStr,
    fs,
    os::unix::{
        ffi::OsStrExt,
        fs::{PermissionsExt, symlink},
    },
    path::Path,
};

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

fn trusting(skill: &Skill) -> TrustBook {
    TrustBook::new(vec![TrustBook::decision_for(skill, 7).unwrap()])
}

#[test]
fn own_skills_are_trusted_by_nature_and_all_others_are_not() {
    for (scope, state) in [
        (SkillScope::Own, TrustState::ByNature),
        (SkillScope::Shared, TrustState::Untrusted),
        (SkillScope::Project, TrustState::Untrusted),
    ] {
        let (_root, skill) = skill(scope);
        assert_eq!(TrustBook::default().state(&skill), Ok(state));
    }
}

#[test]
fn a_decision_names_the_folder_and_its_content_and_can_be_taken_back() {
    let (root, skill) = skill(SkillScope::Project);
    let decision = TrustBook::decision_for(&skill, 1_700_000_000_000).unwrap();
    let folder = root.path().join("skills/demo").canonicalize().unwrap();
    assert_eq!((decision.kind.as_str(), decision.subject.as_str()), ("skill", folder.to_str().unwrap()));
    assert_eq!(Ok(decision.subject.as_str()), TrustBook::subject(&skill));
    assert_eq!(decision.decided_at, 1_700_000_000_000);

    let mut trust = TrustBook::default();
    assert_eq!(trust.state(&skill), Ok(TrustState::Untrusted), "a decision counts once it is inserted");
    trust.insert(decision.clone());
    assert_eq!(trust, TrustBook::new(vec![decision]));
    assert_eq!(trust.state(&skill), Ok(TrustState::Trusted));
    assert!(trust.remove(&skill) && !trust.remove(&skill));
    assert_eq!(trust.state(&skill), Ok(TrustState::Untrusted));
}

#[test]
fn a_changed_skill_can_be_trusted_again() {
    let (_root, skill) = skill(SkillScope::Project);
    let mut trust = trusting(&skill);
    program(&skill.path, "run.sh", "#!/bin/sh\necho 2\n");
    assert_eq!(trust.state(&skill), Ok(TrustState::Changed));
    trust.insert(TrustBook::decision_for(&skill, 8).unwrap());
    assert_eq!(trust.state(&skill), Ok(TrustState::Trusted));
}

#[test]
fn decisions_on_other_kinds_of_things_say_nothing_about_skills() {
    let (_root, skill) = skill(SkillScope::Project);
    let decision = TrustBook::decision_for(&skill, 7).unwrap();
    let mut trust = TrustBook::new(vec![TrustDecision { kind: "server".to_owned(), ..decision.clone() }]);
    assert_eq!(trust.state(&skill), Ok(TrustState::Untrusted));
    trust.insert(TrustDecision { kind: "Skill".to_owned(), ..decision });
    assert_eq!(trust.state(&skill), Ok(TrustState::Untrusted));
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
        let (_root, skill) = skill(SkillScope::Shared);
        let trust = trusting(&skill);
        change(&skill.path);
        assert_eq!(trust.state(&skill), Ok(TrustState::Changed), "change {index}");
    }
}

#[test]
fn a_copy_elsewhere_is_not_trusted() {
    let (_root, skill) = skill(SkillScope::Project);
    let (_other, copy) = self::skill(SkillScope::Project);
    let trust = trusting(&skill);
    assert_eq!(trust.state(&skill), Ok(TrustState::Trusted));
    assert_eq!(trust.state(&copy), Ok(TrustState::Untrusted));
    let content = |skill| TrustBook::decision_for(skill, 0).unwrap().content;
    assert_eq!(content(&skill), content(&copy), "only the place differs");
}

#[test]
fn a_path_that_is_not_text_is_an_error_and_never_trusted() {
    let root = TempDir::new().unwrap();
    let folder = root.path().join(OsStr::from_bytes(b"de\xffmo"));
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("SKILL.md"), "---\nname: demo\ndescription: d\n---\n").unwrap();
    let found = scan(&[SkillFolder { path: root.path().to_owned(), scope: SkillScope::Project }]);
    let (skill, mut trust) = (&found.skills[0], TrustBook::default());
    let error = TrustError::NotText(skill.path.clone());
    assert_eq!(TrustBook::subject(skill), Err(error.clone()));
    assert_eq!(TrustBook::decision_for(skill, 7), Err(error.clone()));
    assert_eq!(trust.state(skill), Err(error));
    assert!(!trust.remove(skill));
}

#[test]
fn a_skill_that_is_gone_is_an_error_and_its_decision_can_be_taken_back() {
    let (_root, skill) = skill(SkillScope::Project);
    let mut trust = trusting(&skill);
    fs::remove_dir_all(&skill.path).unwrap();
    let error = TrustError::Skill { path: skill.path.clone(), source: ResourceError::NotFound };
    assert_eq!(trust.state(&skill), Err(error.clone()));
    assert_eq!(TrustBook::decision_for(&skill, 7), Err(error));
    assert!(trust.remove(&skill));
}

#[test]
fn a_folder_that_became_a_link_is_not_the_one_that_was_trusted() {
    let (root, skill) = skill(SkillScope::Project);
    let trust = trusting(&skill);
    fs::rename(&skill.path, root.path().join("moved")).unwrap();
    symlink(root.path().join("moved"), &skill.path).unwrap();
    assert!(matches!(trust.state(&skill), Err(TrustError::Skill { source: ResourceError::Outside, .. })));
}

#[test]
fn a_new_link_is_a_change_even_when_it_leads_out_of_the_folder() {
    let (root, skill) = skill(SkillScope::Project);
    program(root.path(), "outside.sh", "#!/bin/sh\n");
    let trust = trusting(&skill);
    symlink(root.path().join("outside.sh"), skill.path.join("outside")).unwrap();
    assert_eq!(trust.state(&skill), Ok(TrustState::Changed));
}
