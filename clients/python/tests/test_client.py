"""The client against a stub server: every request, streams that break, approvals, and errors."""

from __future__ import annotations

import asyncio
import threading
import time
import unittest

from stub_server import RUN, TOKEN, StubServer, event
from toolyard_client import (
    ApiError, ConnectionFailed, LimitReached, PartialAnswer, RunCancelled, RunFailed, RunIsSuspended, Toolyard, events as events_module,
)

APPROVAL_SCRIPT = [
    event(0, "run_created", agent="assistant", question="q"),
    event(1, "approval_requested", step="write", approval=7, text="write_note {}"),
    event(2, "run_suspended", approvals=[7], unknown_steps=[]),
    event(3, "approval_decided", step="write", allow=True, scope="run", by="http"),
    event(4, "run_resumed", owner="gateway"),
    event(None, "answer_delta", text="It is "),
    event(5, "invented_later", something={"nested": True}),
    event(6, "run_ended", state="answered", answer="It is written."),
]


class ClientTest(unittest.TestCase):
    def setUp(self) -> None:
        self.server = StubServer()
        self.client = Toolyard(self.server.url, TOKEN)
        events_module.FIRST_RECONNECT_DELAY_SECONDS = 0.01
        events_module.MAX_RECONNECT_DELAY_SECONDS = 0.05

    def tearDown(self) -> None:
        self.server.decided.set()
        self.server.cancelled.set()
        self.server.shutdown()
        self.server.server_close()

    def event_requests(self) -> list:
        return [headers.get("last-event-id") for method, path, headers, _ in self.server.requests if path.endswith("/events")]


class RequestTest(ClientTest):
    def test_tools_are_searched_listed_page_by_page_and_described(self) -> None:
        self.assertEqual([tool["score"] for tool in self.client.tools.search("read excel & more")], [0.9])
        self.assertIn("query=read+excel+%26+more", self.server.requests[-1][1])
        page = self.client.tools.list(limit=2)
        self.assertEqual((len(page), page.next), (2, "2"))
        self.assertEqual(len(list(self.client.tools.iterate())), 5)
        tool = self.client.tools.get("odd/name")
        self.assertEqual((tool["name"], tool["added_later"]), ("odd/name", 1))

    def test_tools_are_called_and_long_results_are_read_whole(self) -> None:
        result = self.client.tools.call("tool_0", {"count": 1}, source="native")
        self.assertEqual(self.server.requests[-1][3], {"arguments": {"count": 1}, "source": "native"})
        self.assertEqual((result["source"], self.client.tools.result(result["result_id"])), ("native", "123"))
        with self.assertRaises(ApiError) as raised:
            self.client.tools.call("gone")
        self.assertEqual(raised.exception.hint, "did you mean `tool_0`?")

    def test_agents_are_created_replaced_and_deleted(self) -> None:
        self.assertEqual(self.client.agents.list()[0]["origin"], "built_in")
        self.assertEqual(self.client.agents.get("assistant")["name"], "assistant")
        self.assertEqual(self.client.agents.create("writer", instructions="Be brief.")["name"], "writer")
        self.assertEqual(self.client.agents.replace("writer", instructions="Be long.")["name"], "writer")
        self.assertIsNone(self.client.agents.delete("writer"))
        with self.assertRaises(ApiError) as raised:
            self.client.agents.replace("assistant")
        self.assertEqual((raised.exception.status, raised.exception.code), (409, "agent_read_only"))

    def test_other_lists(self) -> None:
        servers = self.client.servers.list()
        self.assertEqual((servers[0]["name"], servers.next), ("time", None))
        self.assertEqual(self.client.statistics()[0]["weighted_calls"], 3)
        self.assertEqual(list(self.client.audit.iterate()), [{"record": 1}])
        self.assertTrue(self.client.audit.verify()["valid"])
        self.assertEqual(self.client.approvals.list()[0]["approval"], 7)
        self.assertEqual([run["run"] for run in self.client.runs.iterate(state="running")], [RUN])

    def test_an_unknown_step_is_resolved_by_its_name(self) -> None:
        (unknown,) = self.client.runs.unknown()
        resolved = self.client.runs.open(unknown["run"]).resolve(unknown["step"], "done")
        self.assertEqual(resolved, {"run": RUN, "step": "write#2", "outcome": "done", "resumed": True})

    def test_a_wrong_token_and_unknown_names_raise_errors_with_codes(self) -> None:
        with self.assertRaises(ApiError) as raised:
            Toolyard(self.server.url, "wrong").tools.list()
        self.assertEqual((raised.exception.status, raised.exception.code), (401, "invalid_api_key"))
        with self.assertRaises(ApiError) as raised:
            list(self.client.runs.open("01NONE").events())
        self.assertEqual((raised.exception.status, raised.exception.code), (404, "run_not_found"))
        self.assertEqual(len(self.event_requests()), 1, "an unknown run is not asked for again")

    def test_invalid_settings_of_the_client_are_refused(self) -> None:
        for arguments in [("ftp://host",), ("127.0.0.1:7300",), ("http://host", "two\r\nlines")]:
            with self.assertRaises(ValueError):
                Toolyard(*arguments)

    def test_an_unreachable_server(self) -> None:
        with self.assertRaises(ConnectionFailed):
            Toolyard("http://127.0.0.1:9").servers.list()

    def test_a_tool_call_whose_response_was_lost_is_repeated_only_with_a_key(self) -> None:
        self.server.lose_response = True
        with self.assertRaises(ConnectionFailed):
            self.client.tools.call("tool_0")
        self.server.lose_response = True
        self.assertFalse(self.client.tools.call("tool_0", idempotency_key="k")["is_error"])
        keys = [headers.get("idempotency-key") for _, _, headers, _ in self.server.requests]
        self.assertEqual(keys, [None, "k", "k"])

    def test_a_run_whose_response_was_lost_is_started_once(self) -> None:
        self.server.lose_response = True
        self.assertEqual(self.client.runs.create("q", agent="writer", plan_only=False).id, RUN)
        posts = [(headers["idempotency-key"], body) for method, _, headers, body in self.server.requests if method == "POST"]
        self.assertEqual(len(posts), 2)
        self.assertEqual(len(self.server.keys), 1)
        self.assertEqual(posts[0][1], {"question": "q", "agent": "writer", "plan_only": False})


class EventTest(ClientTest):
    def test_a_stream_that_breaks_anywhere_delivers_each_event_once(self) -> None:
        self.server.script = [each for each in APPROVAL_SCRIPT if "number" in each]
        for cut in range(0, 700, 23):
            self.server.cut_after = [cut, 150, 151]
            events = list(self.client.runs.open(RUN).events())
            self.assertEqual([each["number"] for each in events], list(range(7)), f"cut after {cut} bytes")

    def test_reconnections_continue_after_the_last_event(self) -> None:
        self.server.cut_after = [150]
        list(self.client.runs.open(RUN).events())
        self.assertEqual(self.event_requests(), [None, "0"])

    def test_refused_connections_and_temporary_errors_are_survived(self) -> None:
        self.server.event_statuses = [0, 503, 0, 500]
        self.assertEqual(len(list(self.client.runs.open(RUN).events())), 2)

    def test_a_server_that_stays_away_is_an_error(self) -> None:
        self.server.event_statuses = [503] * 100
        with self.assertRaises(ConnectionFailed):
            list(self.client.runs.open(RUN).events())

    def test_nothing_follows_the_last_event(self) -> None:
        self.assertEqual(list(self.client.runs.open(RUN).events(after=1)), [])

    def test_unknown_events_are_delivered_and_events_without_number_too(self) -> None:
        self.server.script = APPROVAL_SCRIPT
        kinds = [each["type"] for each in self.client.runs.open(RUN).events()]
        self.assertIn("invented_later", kinds)
        self.assertIn("answer_delta", kinds)

    def test_waiting_ends_with_the_run_or_after_the_timeout(self) -> None:
        self.assertEqual(self.client.runs.open(RUN).wait(timeout=5)["answer"], "42")
        self.server.script = self.server.script[:1]
        started = time.monotonic()
        with self.assertRaises(TimeoutError):
            self.client.runs.open(RUN).wait(timeout=0.3)
        self.assertLess(time.monotonic() - started, 2)

    def test_asyncio_reads_events_and_stops_early(self) -> None:
        self.server.script = APPROVAL_SCRIPT[:3]

        async def read() -> list:
            kinds = []
            events = self.client.runs.open(RUN).events_async()
            async for each in events:
                kinds.append(each["type"])
                if len(kinds) == 3:
                    break
            await events.aclose()
            return kinds

        self.assertEqual(asyncio.run(asyncio.wait_for(read(), 5))[-1], "run_suspended")
        for _ in range(100):
            if not any(thread.name.startswith("events of run") for thread in threading.enumerate()):
                return
            time.sleep(0.02)
        self.fail("the thread that reads events is still there")


class AskTest(ClientTest):
    def setUp(self) -> None:
        super().setUp()
        self.server.script = APPROVAL_SCRIPT
        self.server.waits_before = 3

    def test_an_approval_is_asked_for_and_given_for_the_run(self) -> None:
        texts, kinds = [], []

        def decide(request):
            texts.append(request["text"])
            return "run"

        answer = self.client.ask("q", on_approval=decide, on_event=lambda each: kinds.append(each["type"]))
        self.assertEqual((answer, texts), ("It is written.", ["write_note {}"]))
        self.assertEqual(self.server.decisions, [("7", {"allow": True, "scope": "run"})])
        self.assertEqual(len(kinds), len(APPROVAL_SCRIPT))

    def test_only_a_clear_yes_allows_a_call(self) -> None:
        for decision, allowed in [(True, True), ("once", True), (False, False), ("no", False), (1, False), ([], False)]:
            self.server.decisions.clear()
            self.client.ask("q", on_approval=lambda _: decision)
            self.assertEqual(self.server.decisions, [("7", {"allow": allowed})], repr(decision))

    def test_a_missing_decision_leaves_the_run_suspended(self) -> None:
        for callback in (None, lambda _: None):
            with self.assertRaises(RunIsSuspended) as raised:
                self.client.ask("q", on_approval=callback)
            self.assertEqual((raised.exception.approvals, raised.exception.run.id), ([7], RUN))
        self.assertFalse(self.server.cancelled.is_set())

    def test_an_approval_that_is_not_permitted_is_an_error_and_one_decided_elsewhere_is_not(self) -> None:
        self.server.decision_status = 403
        with self.assertRaises(ApiError) as raised:
            self.client.ask("q", on_approval=lambda _: True)
        self.assertEqual(raised.exception.code, "approval_not_permitted")
        self.server.decision_status = 404
        self.server.decided.set()
        self.assertEqual(self.client.ask("q", on_approval=lambda _: True), "It is written.")

    def test_each_state_without_an_answer_has_its_error(self) -> None:
        errors = {"partial": PartialAnswer, "failed": RunFailed, "cancelled": RunCancelled, "limit_reached": LimitReached, "new": RunFailed}
        for state, error in errors.items():
            self.server.script = [event(0, "run_ended", state=state, answer="half", message="no luck", hint="try again")]
            with self.assertRaises(error) as raised:
                self.client.ask("q")
            self.assertEqual((raised.exception.answer, raised.exception.state), ("half", state))
            self.assertIn("try again", str(raised.exception))

    def test_a_timeout_cancels_the_run(self) -> None:
        self.server.script = APPROVAL_SCRIPT[:1]
        with self.assertRaises(TimeoutError):
            self.client.ask("q", timeout=0.2)
        self.assertTrue(self.server.cancelled.is_set())

    def test_asyncio_asks_with_a_coroutine_and_cancels(self) -> None:
        async def decide(request):
            await asyncio.sleep(0)
            return True

        self.assertEqual(asyncio.run(self.client.ask_async("q", on_approval=decide)), "It is written.")
        self.server.script = APPROVAL_SCRIPT[:1]

        async def cancel_early() -> None:
            await asyncio.wait_for(self.client.ask_async("q"), 0.3)

        with self.assertRaises((TimeoutError, asyncio.TimeoutError)):
            asyncio.run(cancel_early())
        self.assertTrue(self.server.cancelled.wait(2))


if __name__ == "__main__":
    unittest.main()
