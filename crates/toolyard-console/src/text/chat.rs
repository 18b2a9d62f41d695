//! Texts of the chat.

texts! { ChatText {
    title: "Chat", "对话";
    lead: "Ask an agent. It plans, calls tools, and answers with its sources.", "向智能体提问。它会制定计划、调用工具，并给出有依据的回答。";
    agent: "Agent", "智能体";
    question: "Question", "问题";
    placeholder: "What do you want to know or do?", "您想了解或完成什么？";
    ask: "Ask", "提问";
    options: "Options", "选项";
    plan_only: "Only make a plan", "只制定计划";
    dry_run: "Simulate calls that change something", "模拟会产生更改的调用";
    you: "You", "您";
    new_chat: "New conversation", "新会话";
    earlier: "Earlier conversations", "以往的会话";
    no_earlier: "None yet.", "暂无。";
    messages: "Conversation", "会话内容";
    empty: "The conversation starts with your question.", "输入问题即可开始会话。";
    details: "Run details", "运行详情";
    empty_question: "The question is empty.", "问题不能为空。";
    empty_question_hint: "Write a question and ask again.", "请输入问题后再提交。";
    missing: "No recent run belongs to this conversation.", "最近的运行中没有属于此会话的记录。";
    older: "Only the latest {} questions are shown.", "仅显示最近 {} 个问题。";
    plan_here: "The plan appears here as soon as the agent has made one.", "智能体制定计划后会显示在这里。";
} }
