//! Texts of the first steps.

texts! { WelcomeText {
    title: "Get started", "开始使用";
    lead: "Import your MCP servers, connect your editor, make a first call and ask a first question.", "导入您的 MCP 服务器，连接编辑器，完成首次调用，提出第一个问题。";
    connect_heading: "Connect your editor", "连接您的编辑器";
    connect_text: "In a terminal. Claude Code then starts Toolyard in place of the servers that you imported; its other servers stay. The command shows the change before it writes:", "在终端运行以下命令：Claude Code 将启动 Toolyard，代替您已导入的服务器；其他服务器保持不变。命令会先显示更改再写入。";
    connect_others: "Other editors: claude-desktop, cursor, vscode, codex, gemini. Undo: toolyard connect claude --undo", "其他编辑器：claude-desktop、cursor、vscode、codex、gemini。撤销：toolyard connect claude --undo";
    import_heading: "Import your MCP servers", "导入您的 MCP 服务器";
    import_text: "Toolyard found these servers in the files of your editors. Nothing is started until one of their tools is called.", "Toolyard 在您的编辑器配置中发现以下服务器。首次调用其工具前不会启动任何程序。";
    import_none: "No server was found in the files of Claude, Cursor, VS Code, Codex or Gemini.", "在 Claude、Cursor、VS Code、Codex 和 Gemini 的配置中未发现服务器。";
    import_terminal: "Import servers from your editors, or add one:", "从编辑器导入服务器，或手动添加：";
    import_submit: "Import the selected servers", "导入所选服务器";
    imported: "Imported servers: {}", "已导入服务器：{}";
    import_done: "Configured servers: {}", "已配置的服务器：{}";
    select: "Select a server.", "请选择服务器。";
    state_existing: "already there", "已存在";
    state_conflicting: "another server has this name", "名称已被占用";
    state_skipped: "cannot be imported", "无法导入";
    call_heading: "Make a first call", "完成首次调用";
    call_text: "Try a tool with a form that is built from its schema.", "使用由工具模式生成的表单试用工具。";
    call_link: "Try calculate", "试用 calculate";
    all_tools: "All tools", "全部工具";
    ask_heading: "Ask a first question", "提出第一个问题";
    ask_text: "An agent plans, calls tools and verifies the results. You see its plan while it works.", "智能体会制定计划、调用工具并校验结果，您可以实时看到计划的执行。";
    ask_link: "Open the chat", "打开对话";
    model_text: "Agents need a language model. Add one in a terminal:", "智能体需要语言模型。请在终端中添加：";
} }
