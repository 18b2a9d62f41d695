//! What servers said on their standard error, kept in files for `toolyard servers logs`.

use std::{
    fs::{self, OpenOptions},
    io::Write as _,
    path::{Path, PathBuf},
};

use toolyard::Toolyard;

use crate::{
    failure::{Code, Failure},
    folders::Workplace,
    output::{Output, harmless},
};

/// A file longer than this becomes the older one, and the one before is dropped.
const LONGEST: u64 = 1 << 20;

/// Keeps what servers said during this command. A failure costs the log and nothing else.
pub(crate) fn keep(yard: &Toolyard, workplace: &Workplace) {
    for server in yard.servers().iter().flat_map(|manager| manager.servers()) {
        let (_, lines) = server.last_words().lines_after(0);
        if let (false, Err(error)) =
            (lines.is_empty(), append(&file(workplace, server.config().id.as_str()), &lines))
        {
            tracing::warn!(%error, server = %server.config().id, "what the server said was not kept");
        }
    }
}

fn append(file: &Path, lines: &[String]) -> std::io::Result<()> {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    if fs::metadata(file).is_ok_and(|facts| facts.len() > LONGEST) {
        fs::rename(file, file.with_extension("log.old"))?;
    }
    let mut log = OpenOptions::new().create(true).append(true).open(file)?;
    let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ");
    let text: String = lines.iter().map(|line| format!("{now} {line}\n")).collect();
    log.write_all(text.as_bytes())
}

/// Shows the end of what a server said.
pub(crate) fn show(name: &str, lines: usize, workplace: &Workplace, output: &Output) -> Result<(), Failure> {
    if !workplace.servers.iter().any(|server| server.id.as_str() == name) {
        return Err(Failure::new(Code::BadUse, format!("server `{name}` does not exist"))
            .with_hint("list what there is: toolyard servers list"));
    }
    let file = file(workplace, name);
    let text = fs::read(&file).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let all: Vec<&str> = text.lines().collect();
    let last = all.get(all.len().saturating_sub(lines)..).unwrap_or_default();
    if output.wants_json() {
        output.json(&last);
    } else if last.is_empty() {
        output.talk(&format!("{name} said nothing yet"));
    } else {
        last.iter().for_each(|line| output.line(&harmless(line)));
    }
    Ok(())
}

fn file(workplace: &Workplace, name: &str) -> PathBuf {
    workplace.data_folder.join("logs").join(format!("{name}.log"))
}
