"""The short report at the end of a campaign."""

from collections import Counter


def count_faults(events, of_proxy):
    """Faults that met something, by kind; those of the proxy with what they met."""
    met = Counter(event["fault"] for event in events if event["event"] == "fault")
    for entry in of_proxy:
        group = entry["target"].split("-")[0]
        met[f"{'http' if group.startswith('h') else group} {entry['fault']}"] += 1
    return dict(met.most_common())


def listed(counts):
    return ", ".join(f"{name} {count}" for name, count in counts.items()) or "none"


def failed_faults(events):
    return listed(Counter(event["fault"] for event in events if event["event"] == "fault_failed"))


def print_summary(result, events):
    """What is worth knowing if no promise was broken."""
    faults = sum(result["faults"].values())
    print(f"no violation: {result['calls']} calls ({result['outcomes'].get('result', 0)} succeeded), {sum(result['runs'].values())} runs "
          f"({result['runs'].get('answered', 0)} answered), {faults} faults of {len(result['faults'])} kinds; could not be executed: {failed_faults(events)}")
    print(f"seconds: {listed(result['phases'])}; {result['gateway_starvations']} half seconds in which a gateway waited for a processor")


def print_report(result, events):
    print(f"\nseed {result['seed']}, plan {result['plan']}, {result['seconds']:g} s, {result['workers']} workers" + (f", planted defect: {result['plant']}" if result["plant"] else ""))
    print(f"calls: {result['calls']} ({listed(result['calls_by_protocol'])}), {result['effects']} lines in the ledgers")
    print(f"outcomes: {listed(result['outcomes'])}")
    print(f"runs: {listed(result['runs'])}")
    print(f"faults: {sum(result['faults'].values())} of {result['planned']} planned met something: {listed(result['faults'])}")
    print(f"counters: {result['counter_answers']} answers, {result['session_lost_told']} times session_lost, "
          f"{result['state_lost_with_its_server']} times state lost with a server that the laboratory killed (documented)")
    print(f"gateways: {result['starts_refused']} starts refused and {result['stops_with_an_error']} stops with an error while an engine was away, {result['machine_stalls']} pauses of the laboratory above 0.2 s, "
          f"{result['gateway_starvations']} half seconds in which a gateway waited for a processor for more than 0.1 s")
    for process, growth in result["memory"].items():
        print(f"memory of gateway {process}: {growth['first']:.0f} -> {growth['last']:.0f} KiB in {growth['seconds']} s (x{growth['ratio']})")
    for event in events:
        if event["event"] == "fault_failed":
            print(f"could not be executed: {event['fault']}: {event['problem']}")
    print(f"seconds: {listed(result['phases'])}")
    kinds = Counter(found["kind"] for found in result["violations"])
    print(f"violations: {listed(dict(kinds))}")
    for found in result["violations"][:30]:
        print(f"  {found['kind']} {found['ids']}: {found['detail'][:500]}")
