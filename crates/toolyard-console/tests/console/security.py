"""Part `security`: XSS, CSRF, framing, sign-in, roles, secrets and DNS rebinding."""

from __future__ import annotations

from console import access, csrf
from console.browser import run_in_browser
from console.hostile import HostileGateway
from console.pages import PagesGateway
from console.report import Report


class PagesGatewayWithoutRemoteApproval(PagesGateway):
    def __init__(self) -> None:
        super().__init__()
        self._serve = ""


def run(report: Report) -> None:
    with PagesGatewayWithoutRemoteApproval() as gateway:
        run_id = csrf.start_waiting_run(gateway)
        csrf.run(report, gateway, run_id)
        access.check_roles(report, gateway, run_id)
    access.run(report)
    with HostileGateway(is_quick=report.is_quick) as gateway:
        fields = {
            "texts": gateway.texts,
            "dataCount": gateway.data_count,
            "questions": gateway.questions,
            "chatQuestions": gateway.chat_questions,
        }
        run_in_browser(report, "xss", gateway.url, link=gateway.sign_in_link(), **fields)
