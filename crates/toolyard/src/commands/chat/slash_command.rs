//! Lines of a chat: messages, and commands that begin with a slash.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChatLine<'a> {
    Empty,
    Message(&'a str),
    Help,
    Exit,
    Clear,
    History,
    Runs,
    /// Shows a run, or the last one.
    Show(Option<&'a str>),
    /// Lists all tools, or those that match a request.
    Tools(Option<&'a str>),
    /// Plans without calling tools.
    Plan(&'a str),
    /// Skips calls with side effects.
    DryRun(&'a str),
    /// Shows or changes the model.
    Model(Option<&'a str>),
    /// Shows or changes the agent.
    Agent(Option<&'a str>),
    UnknownCommand(&'a str),
    /// A command without its question.
    MissingQuestion(&'a str),
}

pub(super) const HELP: &str = "\
/tools [REQUEST]    list all tools, or search for a request
/plan QUESTION      show the plan without calling tools
/dry-run QUESTION   skip calls with side effects
/runs               list the runs of this chat
/show [RUN]         show a run, by default the last one
/model [NAME]       show or change the model
/agent [NAME]       show or change the agent
/history            show the conversation
/clear              start over; the stored conversation stays
/exit               exit, like ctrl-d
Ctrl-c interrupts the current run, which can be resumed.";

pub(super) fn parse(line: &str) -> ChatLine<'_> {
    let line = line.trim();
    let Some(command) = line.strip_prefix('/') else {
        return if line.is_empty() { ChatLine::Empty } else { ChatLine::Message(line) };
    };
    let (word, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
    let rest = Some(rest.trim()).filter(|rest| !rest.is_empty());
    match (word, rest) {
        ("help" | "?", _) => ChatLine::Help,
        ("exit" | "quit" | "q", _) => ChatLine::Exit,
        ("clear" | "new", _) => ChatLine::Clear,
        ("history", _) => ChatLine::History,
        ("runs", _) => ChatLine::Runs,
        ("show", run) => ChatLine::Show(run),
        ("tools", request) => ChatLine::Tools(request),
        ("plan", Some(question)) => ChatLine::Plan(question),
        ("dry-run" | "dry", Some(question)) => ChatLine::DryRun(question),
        ("plan" | "dry-run" | "dry", None) => ChatLine::MissingQuestion(word),
        ("model", name) => ChatLine::Model(name),
        ("agent", name) => ChatLine::Agent(name),
        _ => ChatLine::UnknownCommand(word),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_messages_unless_they_begin_with_a_slash() {
        assert_eq!(parse("  \n"), ChatLine::Empty);
        assert_eq!(parse(" 帮我读取 test.xlsx \n"), ChatLine::Message("帮我读取 test.xlsx"));
        assert_eq!(parse("what is 3/4?"), ChatLine::Message("what is 3/4?"));
        assert_eq!(parse("/tools read  excel"), ChatLine::Tools(Some("read  excel")));
        assert_eq!(parse("/model"), ChatLine::Model(None));
        assert_eq!(parse("/plan"), ChatLine::MissingQuestion("plan"));
        assert_eq!(parse("/plan add it up"), ChatLine::Plan("add it up"));
        assert_eq!(parse("/etc/passwd"), ChatLine::UnknownCommand("etc/passwd"));
        assert_eq!(parse("/"), ChatLine::UnknownCommand(""));
    }

    #[test]
    fn every_command_in_the_help_is_known() {
        for line in HELP.lines().filter(|line| line.starts_with('/')) {
            let word = line.split_whitespace().next().unwrap();
            assert!(!matches!(parse(word), ChatLine::UnknownCommand(_) | ChatLine::Message(_)), "{word}");
        }
    }
}
