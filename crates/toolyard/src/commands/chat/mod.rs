//! `toolyard chat`: a conversation with an agent.

mod conversation;
mod input;
mod slash_command;

use toolyard::Toolyard;
use toolyard_agent::{CancelToken, DEFAULT_AGENT, load_run};
use toolyard_core::{ConversationMessage, RunId};

use self::{
    conversation::ChatConversation,
    input::{ChatInput, InputLine},
    slash_command::{ChatLine, HELP, parse},
};
use crate::{
    cli::ChatArgs,
    commands::{
        agent_run::{drive, finish_view, load_agent, suggest_model_test},
        runs,
        servers::discovery::discover,
        setup::{build, builder, close, interactive_servers_setup, require_store},
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
    let store = require_store(context)?;
    let name = arguments.conversation.clone().unwrap_or_else(new_conversation_name);
    let conversation = ChatConversation::open(store, &name).await?;
    let builder = builder(context, interactive_servers_setup(context, arguments.yes))
        .conversation(conversation.for_tools());
    let toolyard = build(builder).await?;
    discover(&toolyard, context, output).await?;
    let mut chat = Chat {
        toolyard: &toolyard,
        output,
        agent: arguments.agent.name.unwrap_or_else(|| DEFAULT_AGENT.to_owned()),
        model: arguments.agent.model,
        approve_all: arguments.yes,
        conversation,
        runs: Vec::new(),
    };
    let outcome = chat.run(&name).await;
    close(&toolyard, context).await?;
    outcome
}

fn new_conversation_name() -> String {
    let now = jiff::Zoned::now().strftime("chat-%Y%m%d-%H%M%S").to_string();
    format!("{now}-{}", std::process::id())
}

struct Chat<'a> {
    toolyard: &'a Toolyard,
    output: &'a Output,
    agent: String,
    model: Option<String>,
    approve_all: bool,
    conversation: ChatConversation,
    runs: Vec<RunId>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RunMode {
    Full,
    PlanOnly,
    DryRun,
}

impl Chat<'_> {
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
        self.resolve_placeholders().await?;
        let agents = self.toolyard.agents();
        let (agent, model) = load_agent(self.toolyard, &self.agent, self.model.as_deref())?;
        let mut request = agents.run_request(&self.agent, text);
        request.history = self.conversation.prompt_messages();
        request.public_history = self.conversation.is_public();
        request.caller = "chat".to_owned();
        request.plan_only = mode == RunMode::PlanOnly;
        request.dry_run = mode == RunMode::DryRun;
        let stop = CancelToken::default();
        let view = RunView::new(self.output, &model, ApprovalMode::new(self.approve_all, &stop));
        let run = agent.create_run(request).await?;
        view.begin(&agents.log().events(&run, 0).await?);
        self.runs.push(run.clone());
        let end = drive(&agent, &run, &view, &stop).await?;
        if mode == RunMode::Full {
            let (state, _) = load_run(agents.log().as_ref(), &run).await?;
            self.conversation.record(text, &run, &end, state.data_sources()).await?;
        }
        finish_view(&run, &end, view, self.output)
    }

    /// Adds answers of suspended runs that finished elsewhere to the conversation.
    async fn resolve_placeholders(&mut self) -> Result<(), CliError> {
        let log = self.toolyard.agents().log();
        for (run, answer) in self.conversation.resolve_placeholders(log.as_ref()).await? {
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
            None => hub.specs(),
        };
        for tool in found {
            let description = tool.spec().description.lines().next().unwrap_or_default().to_owned();
            self.output.message(&format!("{}   {}   {description}", tool.name, tool.source_id()));
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
