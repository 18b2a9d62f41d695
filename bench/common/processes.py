"""Starting processes, finding ports for them, and waiting for conditions."""

import asyncio
import random
import socket
import subprocess
import time

POLL_SECONDS = 0.05


def free_port():
    return free_ports(1)[0]


def free_ports(count):
    """Ports that nobody listens at, below those that the system gives to outgoing connections: a restarted process needs its port again."""
    found, tried = [], random.SystemRandom()
    while len(found) < count:
        port = tried.randrange(10_000, 32_000)
        with socket.socket() as listener:
            try:
                listener.bind(("127.0.0.1", port))
            except OSError:
                continue
        if port not in found:
            found.append(port)
    return found


async def wait_until(condition, seconds, what):
    """Waits for a condition, which may be asynchronous; returns how long that took."""
    began = time.monotonic()
    while True:
        outcome = condition()
        if asyncio.iscoroutine(outcome):
            outcome = await outcome
        if outcome:
            return time.monotonic() - began
        if time.monotonic() - began > seconds:
            raise TimeoutError(f"{what}: not within {seconds} s")
        await asyncio.sleep(POLL_SECONDS)


def block_until(condition, seconds, what, pause=POLL_SECONDS):
    """The same without an event loop; returns what the condition did. A short `pause` is for what is measured."""
    until = time.monotonic() + seconds
    while not (outcome := condition()):
        if time.monotonic() > until:
            raise TimeoutError(f"{what}: not within {seconds} s")
        time.sleep(pause)
    return outcome


def accepts_connections(port):
    try:
        socket.create_connection(("127.0.0.1", port)).close()
        return True
    except OSError:
        return False


async def is_listening(port):
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.close()
        return True
    except OSError:
        return False


def spawn(command, log, **more):
    """Starts a process whose output is appended to a log file."""
    with open(log, "ab") as file:
        return subprocess.Popen([str(part) for part in command], stdin=subprocess.DEVNULL, stdout=file, stderr=file, **more)


def tail(file, size=600):
    with open(file, errors="replace") as text:
        return text.read()[-size:]
