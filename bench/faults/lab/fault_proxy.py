"""A TCP proxy that disturbs its connections on command: latency, throttling, resets, cuts, lost answers, garbage, silence.

usage: fault_proxy.py CONTROL_SOCKET LOG LISTENERS
LISTENERS is JSON: {"NAME": [PORT, TARGET_PORT], …}. Each line on the control socket is a fault: {"target": NAME, "fault": KIND,
"seconds"?, "ms"?, "bytes_per_second"?, "choice"?, "number"}. Each fault that met a connection is a line of LOG.
"""

import asyncio
import json
import random
import socket
import struct
import sys
import time
from collections import deque

# A fault that waits for the next data of a connection is given up after this time.
ARMED_SECONDS = 2
ARMED = ("cut_response", "cut_request", "drop_response", "garbage")


class Listener:
    """One address of the proxy, with the faults that are in force there."""

    def __init__(self, name, port, target_port, log):
        self.name, self.port, self.target_port, self.log = name, port, target_port, log
        self.server = None
        self.links, self.armed = [], []
        self.latency = self.rate = 0
        self.slow_until = self.held_until = self.refused_until = 0.0

    async def open(self):
        """Accepts connections, from now on or as soon as they are not refused any more."""
        while (wait := self.refused_until - time.monotonic()) > 0:
            await asyncio.sleep(wait)
        if self.server is None:
            loop = asyncio.get_running_loop()
            self.server = await loop.create_server(lambda: Side(Link(self), "request"), "127.0.0.1", self.port, backlog=1024)

    def refuse(self, until):
        """Nobody listens here for some time; connections that are open stay."""
        self.refused_until = max(self.refused_until, until)
        if self.server is not None:
            self.server.close()
            self.server = None
            self.opening = asyncio.get_running_loop().create_task(self.open())

    def is_slow(self, now):
        return now < self.slow_until or now < self.held_until

    def note(self, fault, connections=1):
        entry = {"number": fault["number"], "fault": fault["fault"], "target": self.name, "connections": connections, "at": time.monotonic()}
        self.log.write(json.dumps(entry) + "\n")
        self.log.flush()

    def take_armed(self, kinds, now):
        self.armed = [fault for fault in self.armed if fault["until"] > now]
        for fault in self.armed:
            if fault["fault"] in kinds:
                self.armed.remove(fault)
                self.note(fault)
                return fault
        return None

    def apply(self, fault):
        kind, now, links = fault["fault"], time.monotonic(), [link for link in self.links if link.server]
        until = now + fault.get("seconds", 0)
        if kind in ARMED:
            self.armed.append({**fault, "until": now + ARMED_SECONDS})
            return
        if kind in ("reset", "cut") and links:
            links[int(fault["choice"] * len(links))].end(kind == "reset")
        elif kind in ("reset_all", "cut_all"):
            for link in links:
                link.end(kind == "reset_all")
        elif kind == "mute_all":
            # As if a firewall forgot the connections: they stay open, and nothing arrives any more.
            for link in links:
                link.is_muted = True
        elif kind == "slow":
            self.latency, self.rate, self.slow_until = fault["ms"] / 1000, fault["bytes_per_second"], until
        elif kind == "hold":
            self.held_until = until
        elif kind == "refuse":
            self.refuse(until)
        elif kind == "restore":
            self.slow_until = self.held_until = 0.0
        if links or kind in ("refuse", "restore"):
            self.note(fault, len(links))


class Link:
    """A connection of a client and the one to the server that belongs to it."""

    def __init__(self, listener):
        self.listener, self.client, self.server = listener, None, None
        self.is_muted = False
        # Data of a client that arrives before the connection to the server exists.
        self.early = []
        # Delayed data of each direction with the time at which it is sent. Later data must not overtake it.
        self.delayed = {"request": deque(), "response": deque()}

    def end(self, is_reset):
        for transport in (self.client, self.server):
            if transport is None or transport.is_closing():
                continue
            if is_reset:
                transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                transport.abort()
            else:
                transport.close()

    def pass_on(self, direction, data):
        listener, now = self.listener, time.monotonic()
        if self.is_muted:
            return
        if listener.armed:
            kinds = ("cut_request",) if direction == "request" else ("cut_response", "drop_response", "garbage")
            if fault := listener.take_armed(kinds, now):
                data = self.disturb(fault, direction, data)
        if data:
            self.send(direction, data, now)

    def disturb(self, fault, direction, data):
        """What is sent in place of `data`."""
        if fault["fault"] == "garbage":
            return random.Random(fault["number"]).randbytes(48) + data
        if fault["fault"] == "drop_response":
            self.end(True)
            return b""
        self.write(direction, data[: len(data) // 2])
        # The half must arrive before the end does.
        asyncio.get_running_loop().call_later(0.02, self.end, direction == "request")
        return b""

    def send(self, direction, data, now):
        listener, delayed = self.listener, self.delayed[direction]
        if not delayed and not listener.is_slow(now):
            self.write(direction, data)
            return
        at = max(now, delayed[-1][0]) if delayed else now
        if now < listener.held_until:
            at = max(at, listener.held_until)
        if now < listener.slow_until:
            at = max(at, now + listener.latency) + (len(data) / listener.rate if listener.rate else 0)
        delayed.append((at, data))
        if len(delayed) == 1:
            asyncio.get_running_loop().call_later(at - now, self.send_delayed, direction)

    def send_delayed(self, direction):
        delayed = self.delayed[direction]
        self.write(direction, delayed.popleft()[1])
        if delayed:
            asyncio.get_running_loop().call_later(max(0, delayed[0][0] - time.monotonic()), self.send_delayed, direction)

    def write(self, direction, data):
        transport = self.server if direction == "request" else self.client
        if transport is None:
            self.early.append(data)
        elif not transport.is_closing():
            transport.write(data)


class Side(asyncio.Protocol):
    """One end of a link."""

    def __init__(self, link, direction):
        self.link, self.direction = link, direction

    def peer(self):
        return self.link.server if self.direction == "request" else self.link.client

    def connection_made(self, transport):
        link, listener = self.link, self.link.listener
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.direction == "response":
            link.server = transport
            for data in link.early:
                transport.write(data)
            link.early.clear()
            return
        link.client = transport
        listener.links.append(link)
        asyncio.get_running_loop().create_task(self.connect())

    async def connect(self):
        link = self.link
        try:
            loop = asyncio.get_running_loop()
            await loop.create_connection(lambda: Side(link, "response"), "127.0.0.1", link.listener.target_port)
            if link.client.is_closing():
                link.server.close()
        except OSError:
            # As if nobody listened here.
            link.end(True)

    def data_received(self, data):
        self.link.pass_on(self.direction, data)

    def pause_writing(self):
        # The receiver is slower than the sender.
        if peer := self.peer():
            peer.pause_reading()

    def resume_writing(self):
        peer = self.peer()
        if peer and not peer.is_closing():
            peer.resume_reading()

    def connection_lost(self, _error):
        link = self.link
        if link in link.listener.links and (self.direction == "request" or link.client.is_closing()):
            link.listener.links.remove(link)
        peer = self.peer()
        if peer and not peer.is_closing():
            # Delayed data goes out first.
            delayed = link.delayed[self.direction]
            wait = max(0, delayed[-1][0] - time.monotonic() + 0.01) if delayed else 0
            asyncio.get_running_loop().call_later(wait, peer.close)


async def control(reader, writer, listeners):
    while line := await reader.readline():
        fault = json.loads(line)
        listeners[fault["target"]].apply(fault)
        writer.write(b"ok\n")
    writer.close()


async def main():
    control_path, log_path, text = sys.argv[1:4]
    log, listeners = open(log_path, "a"), {}
    for name, (port, target_port) in json.loads(text).items():
        listeners[name] = Listener(name, port, target_port, log)
        await listeners[name].open()
    await asyncio.start_unix_server(lambda *stream: control(*stream, listeners), control_path)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
