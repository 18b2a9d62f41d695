//! Texts of the page of approvals.

texts! { ApprovalsText {
    title: "Approvals", "审批";
    lead: "Tool calls of agents that wait for a decision. Read the arguments before you allow a call.", "等待决定的智能体工具调用。批准前请先阅读参数。";
    none: "No call waits for approval.", "没有等待审批的调用。";
    none_hint: "Calls of tools that change something appear here while an agent works.", "智能体工作时，会修改数据的工具调用将出现在这里。";
    not_offered: "This gateway offers no agents.", "此网关未提供智能体。";
    not_offered_hint: "Configure a model: toolyard models add.", "请先配置模型：toolyard models add。";
    allow: "Allow once", "允许一次";
    allow_run: "Allow for this run", "本次运行均允许";
    deny: "Deny", "拒绝";
    allowed: "The call is allowed; the run continues.", "已允许该调用，运行继续。";
    allowed_run: "All calls of this tool in this run are allowed.", "已允许本次运行中对该工具的所有调用。";
    denied: "The call is denied.", "已拒绝该调用。";
    caller_note: "You are signed in with the access token, so you may deny calls. To allow them, sign in with toolyard open.", "您以访问令牌登录，只能拒绝调用。如需批准，请用 toolyard open 登录。";
    run: "Run", "运行";
    step: "Step", "步骤";
    too_long: "The arguments are too long to be shown here, so the call can only be denied. Read and approve it with toolyard runs approve.", "参数过长，无法在此完整显示，因此只能拒绝。请用 toolyard runs approve 查看并批准。";
    more: "{} more calls wait. They appear once these are decided.", "另有 {} 个调用等待审批，处理完以上调用后显示。";
    unknown_tool: "Tool call", "工具调用";
} }
