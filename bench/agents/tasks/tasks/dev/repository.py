"""Questions about a repository, and changes of it."""

from given import commit, uncommitted
from task import Task, step

TASKS = [
    Task(
        name="last-commit-en",
        language="en",
        request="Who made the last commit in my git repository, and what was it about?",
        given=[
            commit("Add the login page", "Ruth Weber", 2, login_html="<form>"),
            commit("Fix the date format of invoices", "Omar Haddad", 3, invoice_py="date"),
        ],
        says=["Omar", ("date format", "dates", "invoices")],
        never_says=["Ruth"],
        plan=[step("log", "git_log", {"repo_path": "{project}", "max_count": 1})],
        answer="Omar Haddad made it: Fix the date format of invoices.",
    ),
    Task(
        name="new-branch-zh",
        language="zh",
        request="在我的 git 仓库里新建一个分支 feature-login",
        given=[commit("Add the login page", "Ruth Weber", 2, login_html="<form>")],
        changes={"git/branch/feature-login": ["Add the login page", "Start the project"]},
        # Switching to the new branch is what some people mean.
        may_change=["git/HEAD"],
        plan=[step("create", "git_create_branch", {"repo_path": "{project}", "branch_name": "feature-login"})],
        answer="分支 feature-login 已建立。",
    ),
    Task(
        name="changed-files-zh",
        language="zh",
        request="我的 git 仓库里有哪些还没有提交的修改？",
        given=[commit("Add the login page", "Ruth Weber", 2, login_html="<form>"), uncommitted("login.html", "<form><input>")],
        says=["login.html"],
        never_says=["README.md"],
        plan=[step("status", "git_status", {"repo_path": "{project}"})],
        answer="login.html 有未提交的修改。",
    ),
]
