"""Processes of this machine, from /proc: which ones belong to a folder, what they use, and signals for them."""

import asyncio
import os
import signal


def send_signal(pid, number):
    """Whether there was such a process."""
    try:
        os.kill(pid, number)
        return True
    except ProcessLookupError:
        return False


def command_lines():
    """Process id and arguments of every process of this machine."""
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/cmdline", "rb") as file:
                yield int(entry), file.read().decode("utf-8", "replace").split("\0")
        except OSError:
            continue


def upstream_processes(folder, name):
    """Process ids of one upstream server: its command line has the path of its ledger. Guard processes of the gateway are no Python."""
    ledger = os.path.join(folder, "ledgers", name)
    return sorted(pid for pid, arguments in command_lines() if ledger in arguments and "python" in os.path.basename(arguments[0]))


def processes_of(folder):
    """Every process whose command line mentions the folder, except this one."""
    return [(pid, " ".join(arguments)) for pid, arguments in command_lines() if pid != os.getpid() and any(folder in part for part in arguments)]


def children_of(parent):
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat") as file:
                    if int(file.read().rsplit(")", 1)[1].split()[1]) == parent:
                        found.append(int(entry))
            except (OSError, IndexError, ValueError):
                continue
    return found


def resident_kib(pid):
    try:
        with open(f"/proc/{pid}/status") as file:
            return next((int(line.split()[1]) for line in file if line.startswith("VmRSS")), None)
    except OSError:
        return None


def run_queue_seconds(pid):
    """How long the threads of a process have waited for a processor, all together, since they began."""
    total = 0
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/schedstat") as file:
                total += int(file.read().split()[1])
    except (OSError, IndexError, ValueError):
        return None
    return total / 1e9


async def pause(pid, seconds):
    """SIGSTOP, and SIGCONT after some seconds, also if the laboratory is cancelled meanwhile."""
    if not send_signal(pid, signal.SIGSTOP):
        return False
    try:
        await asyncio.sleep(seconds)
    finally:
        send_signal(pid, signal.SIGCONT)
    return True
