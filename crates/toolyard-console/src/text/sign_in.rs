//! Texts of the sign-in page.

texts! { SignInText {
    title: "Sign in", "登录";
    intro: "Sign in to the console of this gateway.", "登录此网关的控制台。";
    link_heading: "With a one-time link", "使用一次性链接";
    link_help: "Run this command on the machine of the gateway. It opens the console with all rights of the operator.", "在网关所在的机器上运行以下命令，即可以管理员权限打开控制台。";
    token_heading: "With the access token", "使用访问令牌";
    token_label: "Access token", "访问令牌";
    token_help: "The token that clients send as Authorization: Bearer.", "即客户端在 Authorization: Bearer 中发送的令牌。";
    submit: "Sign in", "登录";
    wrong_token: "This is not the access token of this gateway.", "该令牌不是此网关的访问令牌。";
    wrong_token_hint: "toolyard serve prints where the token is stored.", "toolyard serve 启动时会显示令牌的保存位置。";
    expired_code: "This link was used already or has expired.", "该链接已被使用或已过期。";
    expired_code_hint: "Run toolyard open for a new one.", "请运行 toolyard open 获取新的链接。";
    signed_out: "You are signed out.", "您已退出登录。";
} }
