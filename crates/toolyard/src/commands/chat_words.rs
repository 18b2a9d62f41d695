//! What can be said in a chat besides messages: lines that begin with a slash.

/// What a line means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Said<'a> {
    Nothing,
    Message(&'a str),
    Help,
    Exit,
    Clear,
    History,
    Runs,
    /// A run, or the last one.
    Show(Option<&'a str>),
    /// All tools, or those that fit these words.
    Tools(Option<&'a str>),
    /// Only a plan for this.
    Plan(&'a str),
    /// Everything but what would change something.
    DryRun(&'a str),
    /// Which model, or another one.
    Model(Option<&'a str>),
    /// Which agent, or another one.
    Agent(Option<&'a str>),
    /// A word that nobody knows.
    Unknown(&'a str),
    /// A word that needs more.
    Incomplete(&'a str),
}

/// What is said to somebody who asks for help.
pub(super) const HELP: &str = "\
/tools [WORDS]      all tools, or those that fit
/plan QUESTION      what it would do; nothing is called
/dry-run QUESTION   everything but what would change something
/runs               the runs of this chat
/show [RUN]         a run, step by step; the last one if none is named
/model [NAME]       which model, or another one from now on
/agent [NAME]       which agent, or another one from now on
/history            what was said
/clear              begin anew; what was said stays kept
/exit               leave, as ctrl-d does
Ctrl-c cancels what is under way.";

/// Reads a line.
pub(super) fn read(line: &str) -> Said<'_> {
    let line = line.trim();
    let Some(command) = line.strip_prefix('/') else {
        return if line.is_empty() { Said::Nothing } else { Said::Message(line) };
    };
    let (word, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
    let rest = Some(rest.trim()).filter(|rest| !rest.is_empty());
    match (word, rest) {
        ("help" | "?", _) => Said::Help,
        ("exit" | "quit" | "q", _) => Said::Exit,
        ("clear" | "new", _) => Said::Clear,
        ("history", _) => Said::History,
        ("runs", _) => Said::Runs,
        ("show", run) => Said::Show(run),
        ("tools", words) => Said::Tools(words),
        ("plan", Some(question)) => Said::Plan(question),
        ("dry-run" | "dry", Some(question)) => Said::DryRun(question),
        ("plan" | "dry-run" | "dry", None) => Said::Incomplete(word),
        ("model", name) => Said::Model(name),
        ("agent", name) => Said::Agent(name),
        _ => Said::Unknown(word),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_messages_unless_they_begin_with_a_slash() {
        assert_eq!(read("  \n"), Said::Nothing);
        assert_eq!(read(" 帮我读取 test.xlsx \n"), Said::Message("帮我读取 test.xlsx"));
        assert_eq!(read("what is 3/4?"), Said::Message("what is 3/4?"));
        assert_eq!(read("/tools read  excel"), Said::Tools(Some("read  excel")));
        assert_eq!(read("/model"), Said::Model(None));
        assert_eq!(read("/plan"), Said::Incomplete("plan"));
        assert_eq!(read("/plan add it up"), Said::Plan("add it up"));
        assert_eq!(read("/etc/passwd"), Said::Unknown("etc/passwd"));
        assert_eq!(read("/"), Said::Unknown(""));
    }

    #[test]
    fn everything_that_helps_is_known() {
        for line in HELP.lines().filter(|line| line.starts_with('/')) {
            let word = line.split_whitespace().next().unwrap();
            assert!(!matches!(read(word), Said::Unknown(_) | Said::Message(_)), "{word}");
        }
    }
}
