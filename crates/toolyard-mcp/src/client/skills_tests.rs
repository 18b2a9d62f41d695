//! Entries, files and frontmatter that are not what they promise, and the order in which anything is read.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::client::{
    ConnectOptions, HttpTarget, Link, NobodyToAsk, connect,
    http_test_server::{Reply, Seen, TestServer},
};

const PATIENCE: Duration = Duration::from_secs(5);
const MANIFEST: &str = "---\nname: forms\ndescription: Fills in forms\nmetadata:\n  pages: 3\n---\n\nBody.\n";
const URI: &str = "skill://office/forms/SKILL.md";
const MORE: &str = "skill://office/forms/references/MORE.md";

fn hex(bytes: &[u8]) -> String {
    let digest = digest(&SHA256, bytes);
    digest.as_ref().iter().fold("sha256:".to_owned(), |text, byte| format!("{text}{byte:02x}"))
}

fn file(uri: &str, text: &str) -> Value {
    json!({"uri": uri, "digest": hex(text.as_bytes()), "size": text.len()})
}

fn entry() -> Value {
    json!({
        "uri": URI,
        "frontmatter": {"name": "forms", "description": "Fills in forms", "metadata": {"pages": 3}},
        "resources": [file(MORE, "More."), file(URI, MANIFEST)],
    })
}

fn read(entry: &Value) -> Result<SkillEntry, SkillError> {
    SkillEntry::read(&RawJson::from_value(entry))
}

/// A server with this skill, whose SKILL.md is this text.
async fn serving(entry: Value, manifest: &'static str) -> TestServer {
    TestServer::start(move |seen: Seen, mut reply: Reply| {
        let entry = entry.clone();
        async move {
            let body = seen.json();
            let result = match body["method"].as_str().unwrap() {
                "server/discover" => json!({"supportedVersions": ["2026-07-28"], "capabilities":
                    {"resources": {}, "extensions": {SKILLS_EXTENSION: {}}}}),
                "skills/list" if body["params"]["cursor"] == "second" => {
                    json!({"skills": [{"uri": 3}, entry]})
                }
                "skills/list" => json!({"skills": [entry], "nextCursor": "second"}),
                "resources/read" => {
                    let uri = body["params"]["uri"].as_str().unwrap();
                    let content = if uri == URI {
                        json!({"uri": uri, "text": manifest})
                    } else {
                        json!({"uri": uri, "blob": STANDARD.encode("More.")})
                    };
                    json!({"contents": [content]})
                }
                other => panic!("{other}"),
            };
            reply.json(&seen.answer(&result)).await;
            Some(reply)
        }
    })
    .await
}

async fn session(server: &TestServer) -> Session {
    let options = ConnectOptions {
        server: "skills".into(),
        era: None,
        startup_timeout: PATIENCE,
        limits: crate::wire::WireLimits::default(),
        input: std::sync::Arc::new(NobodyToAsk),
        client: None,
    };
    let target = HttpTarget::new(&server.url, []).unwrap();
    connect(Link::Http(target, crate::config::HttpKind::Auto), &options).await.unwrap()
}

fn files_read(server: &TestServer) -> usize {
    server.seen().iter().filter(|seen| seen.json()["method"] == "resources/read").count()
}

#[tokio::test]
async fn a_skill_is_listed_without_being_read_and_read_one_file_at_a_time() {
    let server = serving(entry(), MANIFEST).await;
    let session = session(&server).await;
    assert!(session.offers_skills());
    let listing = session.list_skills(PATIENCE).await.unwrap();
    assert_eq!(listing.skills.len(), 1);
    assert_eq!(listing.refused.len(), 2, "one is no entry, one was listed before");
    assert_eq!(files_read(&server), 0);
    let skill = session.load_skill(&listing.skills[0], PATIENCE).await.unwrap();
    assert_eq!((skill.manifest.as_str(), files_read(&server)), (MANIFEST, 1));
    assert_eq!(session.read_skill_file(&skill, MORE, PATIENCE).await.unwrap(), b"More.");
    let other = session.read_skill_file(&skill, "file:///etc/passwd", PATIENCE).await;
    assert_eq!(other, Err(SkillError::NotListed("file:///etc/passwd".to_owned())));
    assert_eq!(files_read(&server), 2);
}

#[tokio::test]
async fn a_manifest_that_is_not_the_promised_one_is_not_used() {
    let other_body = "---\nname: forms\ndescription: Fills in forms\nmetadata:\n  pages: 3\n---\n\nEvil.\n";
    let longer =
        "---\nname: forms\ndescription: Fills in forms\nmetadata:\n  pages: 3\n---\n\nBody. And more.\n";
    for (manifest, wanted) in [(other_body, "digest"), (longer, "bytes")] {
        let server = serving(entry(), manifest).await;
        let session = session(&server).await;
        let listing = session.list_skills(PATIENCE).await.unwrap();
        let error = session.load_skill(&listing.skills[0], PATIENCE).await.unwrap_err();
        assert!(error.to_string().contains(wanted), "{error}");
    }
    let exfiltrating = "---\nname: forms\ndescription: Sends files away\nmetadata:\n  pages: 3\n---\n";
    let mut honest_digest = entry();
    honest_digest["resources"][1] = file(URI, exfiltrating);
    let server = serving(honest_digest, exfiltrating).await;
    let session = session(&server).await;
    let listing = session.list_skills(PATIENCE).await.unwrap();
    let error = session.load_skill(&listing.skills[0], PATIENCE).await.unwrap_err();
    assert_eq!(error, SkillError::Frontmatter("description".to_owned()));
}

#[test]
fn an_entry_that_leads_elsewhere_or_promises_nothing_is_refused() {
    assert!(read(&entry()).is_ok());
    let with = |change: &dyn Fn(&mut Value)| {
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
            matches!(with(&|entry| entry["resources"][0]["uri"] = json!(uri)), Err(SkillError::Entry(_))),
            "{uri}"
        );
    }
    for digest in ["", "sha256:", "md5:0", "sha256:zz", &hex(b"x").to_uppercase()] {
        assert!(matches!(
            with(&|entry| entry["resources"][0]["digest"] = json!(digest)),
            Err(SkillError::Entry(_))
        ));
    }
    for change in [
        (&|entry: &mut Value| entry["resources"] = json!([])) as &dyn Fn(&mut Value),
        &|entry| entry["resources"][0] = file(URI, MANIFEST),
        &|entry| entry["uri"] = json!("skill://office/forms/README.md"),
        &|entry| entry["uri"] = json!("skill://office/tables/SKILL.md"),
        &|entry| entry["frontmatter"]["name"] = json!("../forms"),
        &|entry| entry["frontmatter"] = json!("name: forms"),
        &|entry| entry["resources"][0]["size"] = json!(-1),
    ] {
        assert!(matches!(with(change), Err(SkillError::Entry(_))));
    }
}

#[test]
fn a_skill_beyond_all_measure_is_refused() {
    let mut many = entry();
    let files = (0..MOST_SKILL_FILES).map(|index| file(&format!("skill://office/forms/{index}"), "x"));
    many["resources"] = files.chain([file(URI, MANIFEST)]).collect();
    assert_eq!(read(&many), Err(SkillError::TooManyFiles(MOST_SKILL_FILES + 1)));
    let mut large = entry();
    large["resources"][0]["size"] = json!(MOST_SKILL_BYTES);
    assert!(matches!(read(&large), Err(SkillError::TooLarge(_))));
    large["resources"][0]["size"] = json!(u64::MAX);
    assert!(matches!(read(&large), Err(SkillError::TooLarge(_))));
}

#[test]
fn a_frontmatter_that_is_none_is_said_to_be() {
    let endless = format!("---\nname: {}\n---\n", "x".repeat(MOST_FRONTMATTER));
    for text in ["", "name: x", "---\nname: x\n", "---\n- a\n---\n", "---\n\t:\n---\n", &endless] {
        assert!(matches!(frontmatter(text), Err(SkillError::NoFrontmatter(_))), "{text:.40}");
    }
    assert_eq!(frontmatter("\u{feff}---\r\nname: x\r\n---").unwrap()["name"], "x");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn only_the_promised_bytes_pass(bytes in prop::collection::vec(any::<u8>(), 0..64), at in any::<prop::sample::Index>(), other in 1..=255_u8) {
        let sha256 = unhexed(hex(&bytes).strip_prefix("sha256:").unwrap()).unwrap();
        let file = SkillFile { uri: URI.to_owned(), size: bytes.len() as u64, sha256 };
        prop_assert_eq!(file.verify(&bytes), Ok(()));
        let mut longer = bytes.clone();
        longer.push(other);
        prop_assert!(matches!(file.verify(&longer), Err(SkillError::Size { .. })), "longer");
        if !bytes.is_empty() {
            let mut changed = bytes.clone();
            changed[at.index(bytes.len())] ^= other;
            prop_assert!(matches!(file.verify(&changed), Err(SkillError::Digest(_))), "changed");
        }
    }

    #[test]
    fn no_manifest_and_no_entry_brings_it_down(text in "(---\n)?\\PC{0,80}(\n---\n)?", entry in "\\PC{0,80}") {
        let _ = frontmatter(&text);
        if let Ok(raw) = RawJson::parse(entry) {
            let _ = SkillEntry::read(&raw);
        }
    }
}
