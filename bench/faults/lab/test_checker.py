"""The checker finds each kind of violation, and nothing in records without one. Run: python3 -B bench/faults/lab/test_checker.py"""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import checker
from plan import LONG_LIVED, fingerprint, make_plan


def call(call_id="c1", server="s04", outcome="result", start=10.0, **more):
    entry = {"id": call_id, "caller": "ada", "protocol": "modern", "server": server, "start": start, "deadline": start + 6, "end": start + 0.1,
             "outcome": outcome, "gateway": ""}
    return entry | ({"is_own": True, "instance": "i1", "count": 1, "answer": call_id} if outcome == "result" else {}) | more


def entry(call_id="c1", server="s04", instance="i1", pid=7):
    return {"id": call_id, "server": server, "instance": instance, "pid": pid, "at": 10.05}


def kinds(**records):
    return [found["kind"] for found in checker.check_all(records)]


class Effects(unittest.TestCase):
    def test_a_call_with_its_effect_is_no_violation(self):
        self.assertEqual(kinds(calls=[call()], ledger=[entry()]), [])

    def test_success_without_an_effect_is_lost(self):
        self.assertEqual(kinds(calls=[call()], ledger=[]), ["lost"])

    def test_a_call_without_any_response_is_lost(self):
        self.assertEqual(kinds(calls=[call(outcome="no_response", end=30.0)], ledger=[entry()]), ["lost"])

    def test_an_unknown_outcome_may_have_an_effect_or_none(self):
        self.assertEqual(kinds(calls=[call(outcome="outcome_unknown")], ledger=[]), [])
        self.assertEqual(kinds(calls=[call(outcome="outcome_unknown")], ledger=[entry()]), [])

    def test_an_effect_that_happened_twice_is_repeated_whatever_the_client_saw(self):
        self.assertEqual(kinds(calls=[call()], ledger=[entry(), entry()]), ["repeated"])
        self.assertEqual(kinds(calls=[call(outcome="connection_error")], ledger=[entry(), entry(pid=8)]), ["repeated"])

    def test_idempotent_calls_may_be_repeated(self):
        for server in ("s08", "h09"):
            self.assertEqual(kinds(calls=[call(server=server)], ledger=[entry(server=server)] * 2), [])

    def test_an_error_that_says_nothing_was_sent_is_true(self):
        self.assertEqual(kinds(calls=[call(outcome="source_unavailable")], ledger=[entry()]), ["false refusal"])
        self.assertEqual(kinds(calls=[call(outcome="source_unavailable")], ledger=[]), [])

    def test_the_value_of_another_call_is_crossed(self):
        self.assertEqual(kinds(calls=[call(is_own=False, answer="c2")], ledger=[entry()]), ["crossed"])
        self.assertEqual(kinds(calls=[call(outcome="crossed_message", text="")], ledger=[]), ["crossed"])


    def test_a_refusal_for_a_reason_that_does_not_exist_is_wrong(self):
        self.assertEqual(kinds(calls=[call(outcome="tool_not_approved")]), ["wrong refusal"])

    def test_failures_long_after_the_last_fault_are_violations(self):
        over = [{"event": "faults_over", "at": 100.0}]
        for start, outcome, found in ((105.0, "source_unavailable", []), (109.0, "source_unavailable", ["not recovered"]), (109.0, "session_lost", [])):
            self.assertEqual(kinds(calls=[call(outcome=outcome, start=start)], events=over), found)


class Deadlines(unittest.TestCase):
    PORTS = {"127.0.0.1:1": "a"}

    def late(self, seconds, events=()):
        nginx = [{"call": "c1", "seconds": seconds, "gateway": "127.0.0.1:1", "status": 200}]
        return kinds(calls=[call(end=10 + seconds)], ledger=[entry()], nginx=nginx, events=list(events), gateway_of_port=self.PORTS)

    def test_an_answer_after_deadline_and_margin_is_late(self):
        self.assertEqual(self.late(6.2), [])
        self.assertEqual(self.late(6.3), ["late"])

    def test_a_stopped_gateway_cannot_answer_in_time(self):
        stop = {"event": "fault", "at": 17.0, "fault": "gateway_stop", "target": "a", "stopped": 11.0, "continued": 16.5}
        self.assertEqual(self.late(6.5, [stop]), [])
        self.assertEqual(self.late(6.5, [{**stop, "target": "b"}]), ["late"])
        self.assertEqual(self.late(6.5, [{**stop, "stopped": 1.0, "continued": 2.0}]), ["late"])

    def test_a_machine_that_stood_still_is_not_the_gateways_fault(self):
        self.assertEqual(self.late(6.5, [{"event": "machine_stalled", "at": 12.0, "seconds": 0.4}]), [])
        self.assertEqual(self.late(6.5, [{"event": "gateway_starved", "gateway": "b", "since": 12.0, "at": 12.5, "seconds": 0.2}]), [])
        self.assertEqual(self.late(6.5, [{"event": "gateway_starved", "gateway": "b", "since": 1.0, "at": 1.5, "seconds": 0.2}]), ["late"])


class State(unittest.TestCase):
    def counted(self, *seen, killed=(), between=()):
        """`seen` are (instance, count) in order; instance `iN` is of process N."""
        calls = [call(f"c{number}", "s01", start=float(number), instance=instance, count=count) for number, (instance, count) in enumerate(seen)]
        ledger = [entry(f"c{number}", "s01", instance, int(instance[1:])) for number, (instance, _) in enumerate(seen)]
        return kinds(calls=calls + list(between), ledger=ledger, killed_pids=dict(killed))

    def test_a_counter_that_grows_is_no_violation_also_with_gaps(self):
        self.assertEqual(self.counted(("i1", 1), ("i1", 2), ("i1", 5)), [])

    def test_a_new_instance_without_an_error_is_a_silent_loss(self):
        self.assertEqual(self.counted(("i1", 3), ("i2", 1)), ["silent loss of state"])

    def test_a_counter_that_goes_back_is_a_silent_loss(self):
        self.assertEqual(self.counted(("i1", 3), ("i1", 3)), ["silent loss of state"])

    def test_a_caller_that_was_told_has_lost_nothing_silently(self):
        told = call("t", "s01", outcome="session_lost", start=0.5)
        self.assertEqual(self.counted(("i1", 3), ("i2", 1), between=[told]), [])

    def test_telling_another_caller_or_telling_earlier_does_not_count(self):
        other = call("t", "s01", outcome="session_lost", start=0.5, caller="bob")
        earlier = call("t", "s01", outcome="session_lost", start=-1.0)
        for told in (other, earlier):
            self.assertEqual(self.counted(("i1", 3), ("i2", 1), between=[told]), ["silent loss of state"])

    def test_state_that_ended_with_a_killed_server_is_documented(self):
        self.assertEqual(self.counted(("i1", 3), ("i2", 1), killed=[(1, 0.5)]), [])
        self.assertEqual(self.counted(("i1", 3), ("i2", 1), killed=[(2, 0.5)]), ["silent loss of state"])

    def test_a_server_that_was_killed_later_has_not_lost_it(self):
        self.assertEqual(self.counted(("i1", 3), ("i2", 1), killed=[(1, 9.0)]), ["silent loss of state"])


class Processes(unittest.TestCase):
    def ended(self, **more):
        event = {"event": "gateway_ended", "at": 1.0, "gateway": "a", "pid": 5, "code": 1, "is_ours": False, "has_served": True, "log": ""}
        return kinds(events=[event | more])

    def test_a_gateway_that_ends_by_itself_crashed(self):
        self.assertEqual(self.ended(), ["crash"])
        self.assertEqual(self.ended(code=-11, has_served=False), ["crash"])
        self.assertEqual(self.ended(code=-9, is_ours=True), [])

    def test_a_stop_with_an_error_is_counted_and_no_crash(self):
        self.assertEqual(self.ended(signals=[15]), [])
        self.assertEqual(self.ended(signals=[15], code=-6), ["crash"])

    def test_a_refused_start_is_no_crash(self):
        self.assertEqual(self.ended(has_served=False), [])

    def test_panics_hangs_and_orphans_are_violations(self):
        self.assertEqual(kinds(panics=[("a", "thread panicked at")]), ["crash"])
        self.assertEqual(kinds(events=[{"event": "gateway_hangs", "at": 1.0, "gateway": "a", "problem": "does not end"}]), ["crash"])
        self.assertEqual(kinds(orphans=[(7, "python3 upstream.py")]), ["orphan"])

    def memory(self, last):
        samples = [{"gateway": "c", "pid": 5, "at": float(second), "kib": 1000 if second < 200 else last} for second in range(300)]
        return kinds(memory=samples)

    def test_memory_may_grow_by_a_tenth_and_no_more(self):
        self.assertEqual(self.memory(1099), [])
        self.assertEqual(self.memory(1101), ["memory"])

    def test_short_lives_are_not_judged(self):
        self.assertEqual(kinds(memory=[{"gateway": "c", "pid": 5, "at": float(second), "kib": 1000 * (second + 1)} for second in range(110)]), [])


class Runs(unittest.TestCase):
    def run_with(self, state="answered", step="done", ledger=(), wanted=("r.s0",)):
        run = {"run": "R", "name": "r", "state": state, "steps": [{"id": "s0", "state": step, "effect": "r.s0"}], "wanted": list(wanted)}
        return kinds(runs=[run], ledger=list(ledger))

    def test_a_step_that_is_done_has_its_effect(self):
        self.assertEqual(self.run_with(state="partial", ledger=[entry("r.s0")]), [])
        self.assertEqual(self.run_with(state="partial"), ["claimed effect"])

    def test_an_answered_run_has_all_effects(self):
        self.assertEqual(self.run_with(ledger=[entry("r.s0")], wanted=("r.s0", "r.s1")), ["claimed effect"])

    def test_a_run_that_never_ends_is_lost(self):
        self.assertEqual(self.run_with(state="running", step="running"), ["lost"])


class Plan(unittest.TestCase):
    def test_a_seed_gives_one_plan(self):
        first, second, other = (make_plan(seed, 60, 3, 8) for seed in (5, 5, 6))
        self.assertEqual(first, second)
        self.assertNotEqual(fingerprint(first), fingerprint(other))

    def test_workers_are_disturbed_if_there_are_any(self):
        self.assertFalse([fault for fault in make_plan(1, 1800, 3, 5) if "worker" in str(fault)])
        with_workers = make_plan(1, 1800, 3, 5, workers=2)
        for kind in ("worker_kill", "worker_stop", "worker_restart"):
            self.assertEqual({fault["target"] for fault in with_workers if fault["fault"] == kind}, {"worker-1", "worker-2"})

    def test_an_upgrade_meets_every_gateway_and_worker_once(self):
        upgrades = [fault for fault in make_plan(1, 60, 3, 8, workers=1, has_upgrade=True) if fault["fault"] == "rolling_upgrade"]
        self.assertEqual([fault["targets"] for fault in upgrades], [["a", "b", "c", "worker-1"]])

    def test_half_an_hour_holds_ten_thousand_faults(self):
        self.assertGreater(len(make_plan(1, 1800, 7, 5)), 10_000)

    def test_one_gateway_lives_long_enough_to_judge_its_memory(self):
        ends = [fault for fault in make_plan(1, 1800, 0, 5) if fault["fault"] == "gateway_kill" and fault["target"] == LONG_LIVED]
        self.assertTrue(all(fault["at"] > 1500 for fault in ends) and ends)


if __name__ == "__main__":
    unittest.main()
