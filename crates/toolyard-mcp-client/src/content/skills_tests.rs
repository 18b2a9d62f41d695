//! Entries, files and frontmatter that differ from the listing, and the order in which files are read.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::{
    lifecycle::connect::{ConnectOptions, ConnectTarget, connect},
    transport::http::{
        target::HttpTarget,
        test_server::{ReceivedRequest, Reply, TestServer},
    },
};

const TIMEOUT: Duration = Duration::from_secs(5);
const MANIFEST: &str = "---\nname: forms\ndescription: Fills in forms\nmetadata:\n  pages: 3\n---\n\nBody.\n";
const MANIFEST_URI: &str = "skill://office/forms/SKILL.md";
const REFERENCE_URI: &str = "skill://office/forms/references/MORE.md";

fn sha256_text(bytes: &[u8]) -> String {
    let digest = digest(&SHA256, bytes);
    digest.as_ref().iter().fold("sha256:".to_owned(), |text, byte| format!("{text}{byte:02x}"))
}

fn file(uri: &str, text: &str) -> Value {
    json!({"uri": uri, "digest": sha256_text(text.as_bytes()), "size": text.len()})
}

fn entry() -> Value {
    json!({
        "uri": MANIFEST_URI,
        "frontmatter": {"name": "forms", "description": "Fills in forms", "metadata": {"pages": 3}},
        "resources": [file(REFERENCE_URI, "More."), file(MANIFEST_URI, MANIFEST)],
    })
}

fn read(entry: &Value) -> Result<SkillEntry, SkillError> {
    SkillEntry::read(&RawJson::from_value(entry))
}

/// A server with this skill, whose SKILL.md is this text.
async fn skill_server(entry: Value, manifest: &'static str) -> TestServer {
    TestServer::start(move |request: ReceivedRequest, mut reply: Reply| {
        let entry = entry.clone();
        async move {
            let body = request.json();
            let result = match body["method"].as_str().unwrap() {
                "server/discover" => json!({"supportedVersions": ["2026-07-28"], "capabilities":
                    {"resources": {}, "extensions": {SKILLS_EXTENSION: {}}}}),
                "skills/list" if body["params"]["cursor"] == "second" => {
                    json!({"skills": [{"uri": 3}, entry]})
                }
                "skills/list" => json!({"skills": [entry], "nextCursor": "second"}),
                "resources/read" => {
                    let uri = body["params"]["uri"].as_str().unwrap();
                    let content = if uri == MANIFEST_URI {
                        json!({"uri": uri, "text": manifest})
                    } else {
                        json!({"uri": uri, "blob": STANDARD.encode("More.")})
                    };
                    json!({"contents": [content]})
                }
                other => panic!("{other}"),
            };
            reply.json(&request.response(&result)).await;
            Some(reply)
        }
    })
    .await
}

async fn session(server: &TestServer) -> Session {
    let options = ConnectOptions { startup_timeout: TIMEOUT, ..ConnectOptions::new("skills") };
    let target = HttpTarget::new(&server.url, []).unwrap();
    connect(ConnectTarget::Http(target, crate::config::HttpKind::Auto), &options).await.unwrap()
}

fn file_read_count(server: &TestServer) -> usize {
    server.received().iter().filter(|request| request.json()["method"] == "resources/read").count()
}

#[tokio::test]
async fn listing_reads_no_file_and_loading_reads_one_at_a_time() {
    let server = skill_server(entry(), MANIFEST).await;
    let session = session(&server).await;
    assert!(session.offers_skills());
    let listing = session.list_skills(TIMEOUT).await.unwrap();
    assert_eq!(listing.skills.len(), 1);
    assert_eq!(listing.rejected.len(), 2, "one is not an entry, one is a duplicate");
    assert_eq!(file_read_count(&server), 0);
    let skill = session.load_skill(&listing.skills[0], TIMEOUT).await.unwrap();
    assert_eq!((skill.manifest.as_str(), file_read_count(&server)), (MANIFEST, 1));
    assert_eq!(session.read_skill_file(&skill, REFERENCE_URI, TIMEOUT).await.unwrap(), b"More.");
    let other = session.read_skill_file(&skill, "file:///etc/passwd", TIMEOUT).await;
    assert_eq!(other, Err(SkillError::NotListed("file:///etc/passwd".to_owned())));
    assert_eq!(file_read_count(&server), 2);
}

#[tokio::test]
async fn a_manifest_that_differs_from_the_listing_is_rejected() {
    let other_body = "---\nname: forms\ndescription: Fills in forms\nmetadata:\n  pages: 3\n---\n\nEvil.\n";
    let longer =
        "---\nname: forms\ndescription: Fills in forms\nmetadata:\n  pages: 3\n---\n\nBody. And more.\n";
    for (manifest, expected) in [(other_body, "digest"), (longer, "bytes")] {
        let server = skill_server(entry(), manifest).await;
        let session = session(&server).await;
        let listing = session.list_skills(TIMEOUT).await.unwrap();
        let error = session.load_skill(&listing.skills[0], TIMEOUT).await.unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
    let exfiltrating = "---\nname: forms\ndescription: Sends files away\nmetadata:\n  pages: 3\n---\n";
    let mut matching_digest = entry();
    matching_digest["resources"][1] = file(MANIFEST_URI, exfiltrating);
    let server = skill_server(matching_digest, exfiltrating).await;
    let session = session(&server).await;
    let listing = session.list_skills(TIMEOUT).await.unwrap();
    let error = session.load_skill(&listing.skills[0], TIMEOUT).await.unwrap_err();
    assert_eq!(error, SkillError::FrontmatterMismatch("description".to_owned()));
}

#[test]
fn invalid_entries_are_rejected() {
    assert!(read(&entry()).is_ok());
    let read_changed = |change: &dyn Fn(&mut Value)| {
        let mut changed = entry();
        change(&mut changed);
        read(&changed)
    };
    for uri in [
        "skill://office/other/MORE.md",
        "file:///etc/passwd",
        "skill://office/forms/../x.md",
        "skill://office/forms/%2E%2e/x.md",
        "skill://office/forms/a%2fb",
        "skill://office/forms/a\\b",
        "skill://office/forms//x",
        "skill://office/forms/",
        "skill://office/forms/a\u{0}",
    ] {
        assert!(
            matches!(
                read_changed(&|entry| entry["resources"][0]["uri"] = json!(uri)),
                Err(SkillError::InvalidEntry(_))
            ),
            "{uri}"
        );
    }
    for digest in ["", "sha256:", "md5:0", "sha256:zz", &sha256_text(b"x").to_uppercase()] {
        assert!(matches!(
            read_changed(&|entry| entry["resources"][0]["digest"] = json!(digest)),
            Err(SkillError::InvalidEntry(_))
        ));
    }
    for change in [
        (&|entry: &mut Value| entry["resources"] = json!([])) as &dyn Fn(&mut Value),
        &|entry| entry["resources"][0] = file(MANIFEST_URI, MANIFEST),
        &|entry| entry["uri"] = json!("skill://office/forms/README.md"),
        &|entry| entry["uri"] = json!("skill://office/tables/SKILL.md"),
        &|entry| entry["frontmatter"]["name"] = json!("../forms"),
        &|entry| entry["frontmatter"] = json!("name: forms"),
        &|entry| entry["resources"][0]["size"] = json!(-1),
    ] {
        assert!(matches!(read_changed(change), Err(SkillError::InvalidEntry(_))));
    }
}

#[test]
fn skills_above_the_limits_are_rejected() {
    let mut many = entry();
    let files = (0..MAX_SKILL_FILES).map(|index| file(&format!("skill://office/forms/{index}"), "x"));
    many["resources"] = files.chain([file(MANIFEST_URI, MANIFEST)]).collect();
    assert_eq!(read(&many), Err(SkillError::TooManyFiles(MAX_SKILL_FILES + 1)));
    let mut large = entry();
    large["resources"][0]["size"] = json!(MAX_SKILL_BYTES);
    assert!(matches!(read(&large), Err(SkillError::TooLarge(_))));
    large["resources"][0]["size"] = json!(u64::MAX);
    assert!(matches!(read(&large), Err(SkillError::TooLarge(_))));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn only_the_listed_content_is_accepted(bytes in prop::collection::vec(any::<u8>(), 0..64), at in any::<prop::sample::Index>(), other in 1..=255_u8) {
        let sha256 = *sha256_text(&bytes).strip_prefix("sha256:").unwrap().parse::<ContentHash>().unwrap().as_bytes();
        let file = SkillFile { uri: MANIFEST_URI.to_owned(), size: bytes.len() as u64, sha256 };
        prop_assert_eq!(file.verify(&bytes), Ok(()));
        let mut longer = bytes.clone();
        longer.push(other);
        prop_assert!(matches!(file.verify(&longer), Err(SkillError::SizeMismatch { .. })), "longer");
        if !bytes.is_empty() {
            let mut changed = bytes.clone();
            changed[at.index(bytes.len())] ^= other;
            prop_assert!(matches!(file.verify(&changed), Err(SkillError::DigestMismatch(_))), "changed");
        }
    }

    #[test]
    fn arbitrary_manifests_and_entries_do_not_panic(text in "(---\n)?\\PC{0,80}(\n---\n)?", entry in "\\PC{0,80}") {
        let _ = parse_frontmatter(&text);
        if let Ok(raw) = RawJson::parse(entry) {
            let _ = SkillEntry::read(&raw);
        }
    }
}
