//! Trust decisions, and changes that end trust.

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

fn new_skill(scope: SkillScope) -> (TempDir, Skill) {
    let root = TempDir::new().unwrap();
    let folder = root.path().join("skills/demo");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("SKILL.md"), "---\nname: demo\ndescription: d\n---\n").unwrap();
    write_program(&folder, "run.sh", "#!/bin/sh\necho 1\n");
    fs::write(folder.join("notes"), "n").unwrap();
    let found = scan(&[SkillFolder { path: root.path().join("skills"), scope }]);
    (root, found.skills[0].clone())
}

fn write_program(folder: &Path, name: &str, text: &str) {
    fs::write(folder.join(name), text).unwrap();
    fs::set_permissions(folder.join(name), fs::Permissions::from_mode(0o755)).unwrap();
}

fn trust_only(skill: &Skill) -> TrustedSkills {
    TrustedSkills::new(vec![TrustedSkills::decision_for(skill, 7).unwrap()])
}

#[test]
fn only_the_users_own_skills_are_trusted_implicitly() {
    for (scope, state) in [
        (SkillScope::User, TrustState::Implicit),
        (SkillScope::Shared, TrustState::Untrusted),
        (SkillScope::Project, TrustState::Untrusted),
    ] {
        let (_root, skill) = new_skill(scope);
        assert_eq!(TrustedSkills::default().state(&skill), Ok(state));
    }
}

#[test]
fn a_decision_names_folder_and_content_and_can_be_revoked() {
    let (root, skill) = new_skill(SkillScope::Project);
    let decision = TrustedSkills::decision_for(&skill, 1_700_000_000_000).unwrap();
    let folder = root.path().join("skills/demo").canonicalize().unwrap();
    assert_eq!((decision.kind.as_str(), decision.subject.as_str()), ("skill", folder.to_str().unwrap()));
    assert_eq!(Ok(decision.subject.as_str()), TrustedSkills::subject(&skill));
    assert_eq!(decision.decided_at, 1_700_000_000_000);

    let mut trust = TrustedSkills::default();
    assert_eq!(trust.state(&skill), Ok(TrustState::Untrusted), "a decision takes effect once it is inserted");
    trust.insert(decision.clone());
    assert_eq!(trust, TrustedSkills::new(vec![decision]));
    assert_eq!(trust.state(&skill), Ok(TrustState::Trusted));
    assert!(trust.remove(&skill) && !trust.remove(&skill));
    assert_eq!(trust.state(&skill), Ok(TrustState::Untrusted));
}

#[test]
fn a_changed_skill_can_be_trusted_again() {
    let (_root, skill) = new_skill(SkillScope::Project);
    let mut trust = trust_only(&skill);
    write_program(&skill.path, "run.sh", "#!/bin/sh\necho 2\n");
    assert_eq!(trust.state(&skill), Ok(TrustState::Changed));
    trust.insert(TrustedSkills::decision_for(&skill, 8).unwrap());
    assert_eq!(trust.state(&skill), Ok(TrustState::Trusted));
}

#[test]
fn decisions_of_another_kind_are_ignored() {
    let (_root, skill) = new_skill(SkillScope::Project);
    let decision = TrustedSkills::decision_for(&skill, 7).unwrap();
    let mut trust = TrustedSkills::new(vec![TrustDecision { kind: "server".to_owned(), ..decision.clone() }]);
    assert_eq!(trust.state(&skill), Ok(TrustState::Untrusted));
    trust.insert(TrustDecision { kind: "Skill".to_owned(), ..decision });
    assert_eq!(trust.state(&skill), Ok(TrustState::Untrusted));
}

#[test]
fn any_change_of_a_file_ends_trust() {
    let changes: [fn(&Path); 8] = [
        |folder| write_program(folder, "run.sh", "#!/bin/sh\necho 2\n"),
        |folder| write_program(folder, "new.sh", "#!/bin/sh\n"),
        |folder| fs::remove_file(folder.join("run.sh")).unwrap(),
        |folder| fs::write(folder.join("lib.py"), "import os").unwrap(),
        |folder| fs::set_permissions(folder.join("notes"), fs::Permissions::from_mode(0o755)).unwrap(),
        |folder| fs::rename(folder.join("run.sh"), folder.join("other.sh")).unwrap(),
        |folder| fs::write(folder.join("SKILL.md"), "---\nname: demo\ndescription: e\n---\n").unwrap(),
        |folder| {
            fs::create_dir(folder.join("scripts")).unwrap();
            write_program(&folder.join("scripts"), "x.sh", "#!/bin/sh\n");
            symlink("scripts/x.sh", folder.join("x")).unwrap();
        },
    ];
    for (index, change) in changes.iter().enumerate() {
        let (_root, skill) = new_skill(SkillScope::Shared);
        let trust = trust_only(&skill);
        change(&skill.path);
        assert_eq!(trust.state(&skill), Ok(TrustState::Changed), "change {index}");
    }
}

#[test]
fn a_copy_elsewhere_is_not_trusted() {
    let (_root, skill) = new_skill(SkillScope::Project);
    let (_other, copy) = new_skill(SkillScope::Project);
    let trust = trust_only(&skill);
    assert_eq!(trust.state(&skill), Ok(TrustState::Trusted));
    assert_eq!(trust.state(&copy), Ok(TrustState::Untrusted));
    let content = |skill| TrustedSkills::decision_for(skill, 0).unwrap().content;
    assert_eq!(content(&skill), content(&copy), "only the folder differs");
}

#[test]
fn a_path_that_is_not_utf8_is_an_error_and_never_trusted() {
    let root = TempDir::new().unwrap();
    let folder = root.path().join(OsStr::from_bytes(b"de\xffmo"));
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("SKILL.md"), "---\nname: demo\ndescription: d\n---\n").unwrap();
    let found = scan(&[SkillFolder { path: root.path().to_owned(), scope: SkillScope::Project }]);
    let (skill, mut trust) = (&found.skills[0], TrustedSkills::default());
    let error = TrustError::PathNotUtf8(skill.path.clone());
    assert_eq!(TrustedSkills::subject(skill), Err(error.clone()));
    assert_eq!(TrustedSkills::decision_for(skill, 7), Err(error.clone()));
    assert_eq!(trust.state(skill), Err(error));
    assert!(!trust.remove(skill));
}

#[test]
fn a_deleted_skill_is_an_error_and_its_decision_can_be_revoked() {
    let (_root, skill) = new_skill(SkillScope::Project);
    let mut trust = trust_only(&skill);
    fs::remove_dir_all(&skill.path).unwrap();
    let error = TrustError::Skill { path: skill.path.clone(), source: SkillFileError::NotFound };
    assert_eq!(trust.state(&skill), Err(error.clone()));
    assert_eq!(TrustedSkills::decision_for(&skill, 7), Err(error));
    assert!(trust.remove(&skill));
}

#[test]
fn a_folder_replaced_by_a_link_is_not_trusted() {
    let (root, skill) = new_skill(SkillScope::Project);
    let trust = trust_only(&skill);
    fs::rename(&skill.path, root.path().join("moved")).unwrap();
    symlink(root.path().join("moved"), &skill.path).unwrap();
    assert!(matches!(
        trust.state(&skill),
        Err(TrustError::Skill { source: SkillFileError::OutsideFolder, .. })
    ));
}

#[test]
fn a_new_link_is_a_change_even_when_it_leads_out_of_the_folder() {
    let (root, skill) = new_skill(SkillScope::Project);
    write_program(root.path(), "outside.sh", "#!/bin/sh\n");
    let trust = trust_only(&skill);
    symlink(root.path().join("outside.sh"), skill.path.join("outside")).unwrap();
    assert_eq!(trust.state(&skill), Ok(TrustState::Changed));
}

#[test]
fn a_changed_target_of_a_link_ends_trust() {
    let changes: [fn(&Path); 3] = [
        |root| write_program(root, "outside.sh", "#!/bin/sh\necho 2\n"),
        |root| fs::remove_file(root.join("outside.sh")).unwrap(),
        |root| {
            fs::set_permissions(root.join("outside.sh"), fs::Permissions::from_mode(0o644)).unwrap();
        },
    ];
    for (index, change) in changes.iter().enumerate() {
        let (root, skill) = new_skill(SkillScope::Project);
        write_program(root.path(), "outside.sh", "#!/bin/sh\necho 1\n");
        symlink("../../outside.sh", skill.path.join("linked.sh")).unwrap();
        let trust = trust_only(&skill);
        assert_eq!(trust.state(&skill), Ok(TrustState::Trusted));
        change(root.path());
        assert_eq!(trust.state(&skill), Ok(TrustState::Changed), "change {index}");
    }
}

#[test]
fn a_link_that_leads_to_another_file_of_the_skill_by_way_of_outside_ends_trust() {
    let (root, skill) = new_skill(SkillScope::Project);
    write_program(&skill.path, "other.sh", "#!/bin/sh\necho 2\n");
    symlink(skill.path.join("run.sh"), root.path().join("switch")).unwrap();
    symlink("../../switch", skill.path.join("linked.sh")).unwrap();
    let trust = trust_only(&skill);
    assert_eq!(trust.state(&skill), Ok(TrustState::Trusted));
    fs::remove_file(root.path().join("switch")).unwrap();
    symlink(skill.path.join("other.sh"), root.path().join("switch")).unwrap();
    assert_eq!(trust.state(&skill), Ok(TrustState::Changed));
}

#[test]
fn a_link_whose_target_appears_later_ends_trust() {
    let (root, skill) = new_skill(SkillScope::Project);
    symlink("../../later.sh", skill.path.join("later.sh")).unwrap();
    let trust = trust_only(&skill);
    assert_eq!(trust.state(&skill), Ok(TrustState::Trusted));
    write_program(root.path(), "later.sh", "#!/bin/sh\n");
    assert_eq!(trust.state(&skill), Ok(TrustState::Changed));
}

#[test]
fn a_skill_with_a_link_to_a_folder_outside_cannot_be_trusted() {
    let (root, skill) = new_skill(SkillScope::Project);
    fs::create_dir(root.path().join("lib")).unwrap();
    symlink("../../lib", skill.path.join("lib")).unwrap();
    let error = TrustError::Skill { path: skill.path.clone(), source: SkillFileError::OutsideFolder };
    assert_eq!(TrustedSkills::decision_for(&skill, 7), Err(error));
    fs::remove_file(skill.path.join("lib")).unwrap();
    fs::create_dir(skill.path.join("scripts")).unwrap();
    symlink("scripts", skill.path.join("lib")).unwrap();
    assert_eq!(trust_only(&skill).state(&skill), Ok(TrustState::Trusted), "links inside are allowed");
}
