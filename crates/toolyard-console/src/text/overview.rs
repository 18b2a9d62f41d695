//! Texts of the overview.

texts! { OverviewText {
    title: "Overview", "概览";
    uptime: "up for {}", "已运行 {}";
    calls: "Calls of the last hour", "最近一小时调用";
    calls_note: "{} since the start", "启动以来共 {} 次";
    failures: "Failures", "失败";
    failures_note: "in the last hour", "最近一小时";
    latency: "Latency", "延迟";
    latency_note: "median · 95th percentile {}", "中位数 · 95 分位 {}";
    tokens_in: "Input tokens", "输入 Token";
    tokens_out: "output: {}", "输出：{}";
    cost: "Cost", "费用";
    cost_unknown: "no price is known", "未配置价格";
    runs: "Active runs", "进行中的运行";
    no_waiting: "none waits for approval", "没有等待审批的运行";
    waiting: "{} wait for approval", "{} 个等待审批";
    calls_column: "calls", "调用";
    servers: "Servers", "服务器";
    no_servers: "No MCP server is configured.", "尚未配置 MCP 服务器。";
    more_servers: "and {} more without problems", "另有 {} 个没有问题";
    get_started: "Get started", "开始使用";
    step_import: "Import your MCP servers", "导入您的 MCP 服务器";
    step_connect: "Connect your editor, in a terminal. Claude Code then starts Toolyard in place of the servers that you imported; its other servers stay. The command shows the change before it writes:", "在终端中连接您的编辑器。Claude Code 将启动 Toolyard，代替您已导入的服务器；其他服务器保持不变。命令会先显示更改再写入：";
    connect_others: "Other editors: claude-desktop, cursor, vscode, codex, gemini. Undo: toolyard connect claude --undo", "其他编辑器：claude-desktop、cursor、vscode、codex、gemini。撤销：toolyard connect claude --undo";
    step_call: "Make a first call: try calculate", "完成首次调用：试用 calculate";
    step_ask: "Ask a first question.", "提出第一个问题。";
    step_model: "Agents need a language model:", "智能体需要语言模型：";
    top_tools: "Most used tools", "最常用的工具";
    no_calls: "No tool was called yet.", "尚未调用过任何工具。";
    tool_calls: "Calls: {}", "调用：{} 次";
    recent_runs: "Recent runs", "最近的运行";
    no_runs: "No agent has run yet.", "尚无智能体运行。";
    ask: "Ask an agent", "向智能体提问";
    calls_hour: "{} calls in the last hour", "最近一小时 {} 次调用";
    failures_hour: "{} failures in the last hour", "最近一小时 {} 次失败";
    tool: "Tool", "工具";
    server: "Server", "服务器";
    tool_count: "Tools", "工具数";
    median: "Median", "中位耗时";
    question: "Question", "问题";
} }
