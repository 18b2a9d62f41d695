//! Local skills as a client sees them, and files that are never served.

use std::{fs, os::unix::fs::symlink, path::Path};

use proptest::prelude::*;
use toolyard_mcp_client::SkillEntry;

use super::*;

fn skill(root: &Path, name: &str) -> PathBuf {
    let folder = root.join(name);
    fs::create_dir_all(folder.join("templates/deep")).unwrap();
    let manifest = format!(
        "---\nname: {name}\ndescription: How to {name}\nmetadata:\n  version: \"1.0\"\n---\nDo it.\n"
    );
    fs::write(folder.join(MANIFEST), manifest).unwrap();
    fs::write(folder.join("templates/a b.txt"), "ä").unwrap();
    fs::write(folder.join("templates/deep/x.bin"), [0xff, 0x00]).unwrap();
    fs::write(folder.join(".secret"), "no").unwrap();
    folder
}

async fn request(skills: &LocalSkills, method: &str, uri: &str) -> Option<Result<Value, i64>> {
    let params = json!({ "uri": uri }).into();
    let response = skills.request(ContentRequest { method, params: &params, caller: None }).await;
    response.map(|response| response.map(|raw| raw.to_value()).map_err(|error| error.code))
}

#[tokio::test]
async fn a_skill_is_listed_with_verifiable_digests() {
    let root = tempfile::tempdir().unwrap();
    skill(root.path(), "juggling");
    let skills = LocalSkills::new(vec![root.path().to_owned()]);
    assert_eq!(skills.folder_uris(), ["skill://juggling/"]);
    let listed = skills.list(ContentKind::Skills).await;
    let entry = SkillEntry::read(&listed[0]).unwrap();
    assert_eq!(entry.uri, "skill://juggling/SKILL.md");
    assert_eq!(entry.frontmatter["metadata"], json!({"version": "1.0"}));
    let uris: Vec<&str> = entry.files.iter().map(|file| file.uri.as_str()).collect();
    assert_eq!(
        uris,
        [
            "skill://juggling/SKILL.md",
            "skill://juggling/templates/a%20b.txt",
            "skill://juggling/templates/deep/x.bin"
        ]
    );
    for file in &entry.files {
        let read = request(&skills, "resources/read", &file.uri).await.unwrap().unwrap();
        let content = &read["contents"][0];
        let bytes = match content["text"].as_str() {
            Some(text) => text.as_bytes().to_vec(),
            None => STANDARD.decode(content["blob"].as_str().unwrap()).unwrap(),
        };
        file.verify(&bytes).unwrap();
    }
    let response = request(&skills, "skills/get", "skill://juggling/SKILL.md").await.unwrap().unwrap();
    assert_eq!(RawJson::from_value(&response["skill"]), listed[0]);
    let resource = skills.list(ContentKind::Resources).await[0].to_value();
    assert_eq!((&resource["name"], &resource["mimeType"]), (&json!("juggling"), &json!("text/markdown")));
}

#[tokio::test]
async fn a_changed_file_changes_the_list() {
    let root = tempfile::tempdir().unwrap();
    let folder = skill(root.path(), "juggling");
    let skills = LocalSkills::new(vec![folder.clone()]);
    let before = skills.list(ContentKind::Skills).await;
    fs::write(folder.join("more.md"), "more").unwrap();
    fs::write(folder.join("templates/a b.txt"), "longer").unwrap();
    let after = skills.list(ContentKind::Skills).await;
    assert_ne!(before, after);
    assert_eq!(SkillEntry::read(&after[0]).unwrap().files.len(), 4);
}

#[tokio::test]
async fn a_directory_lists_its_direct_children() {
    let root = tempfile::tempdir().unwrap();
    skill(root.path(), "juggling");
    let skills = LocalSkills::new(vec![root.path().to_owned()]);
    let children_of = |value: Value| -> Vec<(String, String)> {
        let field = |child: &Value, key: &str| child[key].as_str().unwrap().to_owned();
        let children = value["resources"].as_array().unwrap().iter();
        children.map(|child| (field(child, "uri"), field(child, "mimeType"))).collect()
    };
    let read = |uri: &'static str| request(&skills, "resources/directory/read", uri);
    let pair = |uri: &str, kind: &str| (uri.to_owned(), kind.to_owned());
    assert_eq!(
        children_of(read("skill://juggling").await.unwrap().unwrap()),
        [
            pair("skill://juggling/SKILL.md", "text/markdown"),
            pair("skill://juggling/templates", "inode/directory")
        ]
    );
    assert_eq!(
        children_of(read("skill://juggling/templates").await.unwrap().unwrap()),
        [
            pair("skill://juggling/templates/a%20b.txt", "text/plain"),
            pair("skill://juggling/templates/deep", "inode/directory")
        ]
    );
    assert_eq!(read("skill://juggling/SKILL.md").await, Some(Err(error_code::INVALID_PARAMS)));
    assert_eq!(read("skill://juggling/nowhere").await, Some(Err(error_code::INVALID_PARAMS)));
    assert_eq!(read("skill://other").await, None);
}

#[tokio::test]
async fn files_outside_of_a_skill_are_not_served() {
    let root = tempfile::tempdir().unwrap();
    let folder = skill(root.path(), "juggling");
    fs::write(root.path().join("secret.txt"), "secret").unwrap();
    symlink(root.path().join("secret.txt"), folder.join("link.txt")).unwrap();
    symlink(root.path(), folder.join("up")).unwrap();
    let skills = LocalSkills::new(vec![folder]);
    assert_eq!(SkillEntry::read(&skills.list(ContentKind::Skills).await[0]).unwrap().files.len(), 3);
    for path in [
        "link.txt",
        "up/secret.txt",
        "../secret.txt",
        "%2e%2e/secret.txt",
        ".secret",
        "templates/../SKILL.md",
        "",
    ] {
        let uri = format!("skill://juggling/{path}");
        assert_eq!(
            request(&skills, "resources/read", &uri).await,
            Some(Err(error_code::RESOURCE_NOT_FOUND)),
            "{path}"
        );
    }
}

#[tokio::test]
async fn invalid_skills_are_skipped() {
    let root = tempfile::tempdir().unwrap();
    skill(root.path(), "good");
    let write_skill = |name: &str, manifest: &str| {
        fs::create_dir_all(root.path().join(name)).unwrap();
        fs::write(root.path().join(name).join(MANIFEST), manifest).unwrap();
    };
    write_skill("other-name", "---\nname: good\ndescription: d\n---\n");
    write_skill("no-frontmatter", "hello");
    write_skill("no-description", "---\nname: no-description\n---\n");
    write_skill("Bad Name", "---\nname: Bad Name\ndescription: d\n---\n");
    let large = skill(root.path(), "large");
    fs::write(large.join("large.bin"), vec![0; 17 << 20]).unwrap();
    let many = skill(root.path(), "many");
    (0..520).for_each(|number| fs::write(many.join(format!("{number}.txt")), "x").unwrap());
    let skills = LocalSkills::new(vec![root.path().to_owned()]);
    assert_eq!(skills.folder_uris(), ["skill://good/"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_uri_leads_out_of_the_folder(path in "[a-z./%2eF\\\\: ]{0,24}") {
        let root = tempfile::tempdir().unwrap();
        let folder = skill(root.path(), "juggling");
        let found = LocalSkill::load(&folder).unwrap();
        let uri = format!("skill://juggling/{path}");
        if let Some(file) = found.file(&uri) {
            prop_assert!(file.path.iter().all(|component| component != ".." && !component.starts_with('.')));
        }
    }
}
