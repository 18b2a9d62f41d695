//! Texts of the frame and of several pages.

texts! { NavigationText {
    overview: "Overview", "概览";
    chat: "Chat", "对话";
    tools: "Tools", "工具";
    servers: "Servers", "服务器";
    runs: "Runs", "运行";
    approvals: "Approvals", "审批";
    agents: "Agents", "智能体";
    audit: "Audit log", "审计日志";
    settings: "Settings", "设置";
} }

texts! { CommonText {
    skip_to_content: "Skip to content", "跳到正文";
    navigation: "Main navigation", "主导航";
    sign_out: "Sign out", "退出登录";
    operator: "Operator", "管理员";
    caller: "Caller", "普通访问";
    operator_title: "Signed in with a one-time link: may also approve calls and change agents", "通过一次性链接登录：还可以审批调用和修改智能体";
    caller_title: "Signed in with the access token: may do what every API client may do", "通过访问令牌登录：权限与普通 API 客户端相同";
    language: "Language", "语言";
    theme: "Theme", "主题";
    theme_system: "Auto", "自动";
    theme_light: "Light", "浅色";
    theme_dark: "Dark", "深色";
    hint: "Hint", "提示";
    failed: "The request failed", "操作未成功";
    not_found: "Page not found", "页面不存在";
    not_found_hint: "Use the navigation to continue.", "请通过导航继续浏览。";
    not_offered: "This gateway does not offer this.", "此网关不提供该功能。";
    forged_form: "The form was refused: it does not belong to your session.", "表单被拒绝：它不属于您当前的会话。";
    forged_form_hint: "Open the page again and repeat the action.", "请重新打开页面后再试。";
    method_not_allowed: "This address does not accept such a request.", "此地址不接受这类请求。";
    incomplete: "Some data could not be read.", "部分数据无法读取。";
    waiting_approvals: "waiting for approval", "项待审批";
    invalid_form: "The form has a missing or unknown value, so nothing was changed.", "表单缺少必要的值或包含未知的值，因此未做任何更改。";
    name: "Name", "名称";
    description: "Description", "描述";
    source: "Source", "来源";
    state: "State", "状态";
    time: "Time", "时间";
    duration: "Duration", "耗时";
    details: "Details", "详情";
    next_page: "Next page", "下一页";
    first_page: "First page", "第一页";
    all: "All", "全部";
    show_all: "Show all", "查看全部";
    copy: "Copy", "复制";
    copied: "Copied", "已复制";
    cancel: "Cancel", "取消";
    save: "Save", "保存";
    remove: "Remove", "删除";
    required: "required", "必填";
} }
