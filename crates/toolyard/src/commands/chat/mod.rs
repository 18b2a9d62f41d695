//! `toolyard chat`: a conversation with an agent.

mod input;
mod slash_command;

use toolyard::Toolyard;
use toolyard_agent::{CancelToken, Chat, DEFAULT_AGENT, RunRequest};
use toolyard_core::{ConversationMessage, RunId};

use self::{
    input::{ChatInput, InputLine},
    slash_command::{ChatLine, HELP, parse},
};
use crate::{
    cli::ChatArgs,
    commands::{
        agent_run::{drive, finish_view, load_agent, suggest_model_test},
        runs,
        servers::discovery::discover,
        setup::{build, builder, close, require_store, servers_setup},
    },
    config::CliContext,
    error::CliError,
    terminal::{
        Output,
        run_view::{ApprovalMode, RunView},
    },
};

/// Tools that `/tools REQUEST` lists.
const MAX_FOUND_TOOLS: usize = 10;

pub(crate) async fn run(arguments: ChatArgs, context: &CliContext, output: &Output) -> Result<(), CliError> {
    require_store(context)?;
    let name = arguments.conversation.clone().unwrap_or_else(new_conversation_name);
    let toolyard = build(builder(context, servers_setup(context))).await?;
    let conversation = toolyard.agents().chat(&name).await?;
    discover(&toolyard, context, output).await?;
    let mut session = ChatSession {
        toolyard: &toolyard,
        output,
        agent: arguments.agent.name.unwrap_or_else(|| DEFAULT_AGENT.to_owned()),
        model: arguments.agent.model,
        approve_all: arguments.yes,
        conversation,
        runs: Vec::new(),
    };
    let outcome = session.run(&name).await;
    close(&toolyard, context).await?;
    outcome
}

fn new_conversation_name() -> String {
    let now = jiff::Zoned::now().strftime("chat-%Y%m%d-%H%M%S").to_string();
    format!("{now}-{}", std::process::id())
}

struct ChatSession<'a> {
    toolyard: &'a Toolyard,
    output: &'a Output,
    agent: String,
    model: Option<String>,
    approve_all: bool,
    conversation: Chat,
    runs: Vec<RunId>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RunMode {
    Full,
    PlanOnly,
    DryRun,
}

impl ChatSession<'_> {
    async fn run(&mut self, name: &str) -> Result<(), CliError> {
        let model = self.toolyard.agents().model_name(&self.agent, self.model.as_deref())?;
        suggest_model_test(self.toolyard, &model, self.output);
        let history = self.conversation.messages().filter(|message| message.role == "user");
        let mut input = ChatInput::new(history.map(|message| message.text.clone()))?;
        if input.is_terminal() {
            self.output.message(&format!("agent {}, model {model}; /help lists the commands", self.agent));
        }
        let mut last_result = Ok(());
        loop {
            let line = match input.next().await? {
                InputLine::Text(line) => line,
                InputLine::Interrupted => {
                    self.output.message("no run is in progress; ctrl-d or /exit exits");
                    continue;
                }
                InputLine::End => break,
            };
            if parse(&line) == ChatLine::Exit {
                break;
            }
            last_result = self.handle(&line).await;
            if let Err(failure) = &last_result {
                failure.print(self.output);
            }
        }
        if input.is_terminal() {
            self.output.message(&format!("continue with: toolyard chat --conversation {name}"));
            return Ok(());
        }
        // With piped input, the exit code is that of the last message.
        last_result.map_err(CliError::without_message)
    }

    async fn handle(&mut self, line: &str) -> Result<(), CliError> {
        let output = self.output;
        match parse(line) {
            ChatLine::Empty | ChatLine::Exit => {}
            ChatLine::Message(text) => return self.ask(text, RunMode::Full).await,
            ChatLine::Plan(text) => return self.ask(text, RunMode::PlanOnly).await,
            ChatLine::DryRun(text) => return self.ask(text, RunMode::DryRun).await,
            ChatLine::Help => output.message(HELP),
            ChatLine::Clear => {
                self.conversation.clear();
                output.message("cleared: the model no longer sees earlier messages");
            }
            ChatLine::History => {
                for ConversationMessage { role, text } in self.conversation.messages() {
                    output.message(&format!("{role}: {text}"));
                }
            }
            ChatLine::Tools(request) => self.print_tools(request),
            ChatLine::Runs => self.runs.iter().for_each(|run| output.message(&format!("run {run}"))),
            ChatLine::Show(run) => return self.show_run(run).await,
            ChatLine::Model(name) => return self.choose_model(name),
            ChatLine::Agent(name) => return self.choose_agent(name),
            ChatLine::UnknownCommand(word) => {
                return Err(
                    CliError::usage(format!("unknown command /{word}")).with_hint("/help lists the commands")
                );
            }
            ChatLine::MissingQuestion(word) => {
                return Err(CliError::usage(format!("/{word} needs a question")));
            }
        }
        Ok(())
    }

    async fn ask(&mut self, text: &str, mode: RunMode) -> Result<(), CliError> {
        self.report_late_answers().await?;
        let agents = self.toolyard.agents();
        let (agent, model) = load_agent(self.toolyard, &self.agent, self.model.as_deref())?;
        let request = RunRequest {
            caller: "chat".into(),
            plan_only: mode == RunMode::PlanOnly,
            dry_run: mode == RunMode::DryRun,
            ..agent.request(text)
        };
        let stop = CancelToken::default();
        let view = RunView::new(self.output, &model, ApprovalMode::new(self.approve_all, &stop));
        let run = self.conversation.stream_chat_message(&agent, request, None).await?;
        view.begin(&agents.log().events(&run, 0).await?);
        self.runs.push(run.clone());
        let end = drive(&agent, &run, &view, &stop).await?;
        self.conversation.resolve_pending().await?;
        finish_view(&run, &end, view, self.output)
    }

    /// Prints the answers of suspended runs that finished elsewhere.
    async fn report_late_answers(&mut self) -> Result<(), CliError> {
        for (run, answer) in self.conversation.resolve_pending().await? {
            self.output.message(&format!("run {run} has finished: {answer}"));
        }
        Ok(())
    }

    fn print_tools(&self, request: Option<&str>) {
        let hub = self.toolyard.hub();
        let found = match request {
            Some(request) => {
                hub.search(request, MAX_FOUND_TOOLS).into_iter().map(|found| found.tool).collect()
            }
            None => hub.tools(),
        };
        let snapshot = hub.snapshot();
        for tool in found {
            let Some(name) = snapshot.callable_name(&tool, None) else { continue };
            let description = tool.spec().description.lines().next().unwrap_or_default().to_owned();
            self.output.message(&format!("{name}   {}   {description}", tool.source_id()));
        }
    }

    async fn show_run(&self, run: Option<&str>) -> Result<(), CliError> {
        let Some(store) = self.toolyard.store() else { return Ok(()) };
        let run = match (run, self.runs.last()) {
            (Some(run), _) => runs::find_run(run, store).await?,
            (None, Some(run)) => run.clone(),
            (None, None) => return Err(CliError::usage("this chat has no runs yet")),
        };
        runs::show::show(&run, store, self.output).await
    }

    fn choose_model(&mut self, name: Option<&str>) -> Result<(), CliError> {
        let name = name.or(self.model.as_deref());
        let resolved = self.toolyard.agents().model_name(&self.agent, name)?;
        self.output.message(&format!("agent {}, model {resolved}", self.agent));
        self.model = name.map(str::to_owned);
        Ok(())
    }

    fn choose_agent(&mut self, name: Option<&str>) -> Result<(), CliError> {
        let agents = self.toolyard.agents();
        match name {
            Some(name) => {
                agents.config(name)?;
                self.agent = name.to_owned();
                self.output.message(&format!("agent {name}"));
            }
            None => {
                let known = agents.names().join(", ");
                self.output.message(&format!("agent {}; known agents: {known}", self.agent));
            }
        }
        Ok(())
    }
}
