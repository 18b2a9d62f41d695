"""The whole laboratory: engines, fault proxy, upstream servers, gateways, nginx, the scripted model, and a supervisor that restarts what died."""

import asyncio
import json
import os
import re
import shutil
import signal
import sys
import tempfile
import time

import scripted_model
from client import Client
from engines import Nats
from gateway import Gateway, server_settings
from nginx import start_nginx
from postgres import Postgres
from process_table import processes_of, resident_kib, run_queue_seconds, send_signal
from processes import free_ports, is_listening, spawn, wait_until
from topology import BY_NAME, DEADLINE, GATEWAYS, HTTP, LATE_MARGIN, NATS_NODES, SERVERS, WORKER_SERVERS, worker_names
from worker import Worker

HERE = os.path.dirname(os.path.abspath(__file__))
NGINX_LOG = """
  log_format lab escape=json '{"call":"$http_x_lab_call","seconds":$request_time,"gateway":"$upstream_addr","status":$status,"ended":$msec}';
  access_log nginx.access lab;
  keepalive_requests 1000000;
"""
# A POST that was sent to a gateway is never sent to another one: only failed connects are, unless a defect is planted.
NGINX_PROXY = """
      proxy_set_header Host 127.0.0.1;
      proxy_connect_timeout 1s;
      proxy_read_timeout {read_timeout}ms;
      proxy_buffering off;
      proxy_next_upstream {next_upstream};
      add_header X-Gateway $upstream_addr always;
"""
# A gateway whose threads waited this long for a processor within half a second is not judged by its deadlines.
STARVED_SECONDS = 0.1
# How often the fault proxy is started before the laboratory gives up.
PROXY_STARTS = 3
# Upstream servers on stdio have this long to end after their gateway has.
ORPHAN_SECONDS = 1
QUESTION = re.compile(r"lab ([\w-]+) ([\w,]+) (\d+)")


def model_reply(request):
    """A question `lab NAME SERVER,SERVER… DELAY` becomes a chain of calls, each with an id of its own."""
    found = QUESTION.search(scripted_model.text_of(request["messages"][-1]))
    if not found:
        return None
    name, servers, delay = found[1], found[2].split(","), int(found[3])
    if "response_format" not in request:
        return f"{name} is recorded."
    steps = [
        {"id": f"s{number}", "tool_type": BY_NAME[server].tool, "arguments": {"id": f"{name}.s{number}", "delay_ms": delay},
         "dependencies": [f"s{number - 1}"] if number else []}
        for number, server in enumerate(servers)
    ]
    return json.dumps({"steps": steps})


class Lab:
    """Start it with `async with`. `events` is what the laboratory did and saw, for the checker."""

    def __init__(self, binary, gateways=GATEWAYS, plant=None, workers=0, is_direct=False):
        self.folder = tempfile.mkdtemp(prefix="toolyard-lab-")
        # PostgreSQL's own user must reach its folder.
        os.chmod(self.folder, 0o755)
        os.mkdir(os.path.join(self.folder, "ledgers"))
        # A copy: the binary may be built anew meanwhile.
        self.binary = os.path.join(self.folder, "toolyard")
        shutil.copy(binary, self.binary)
        # Without the fault proxy, whose one process would limit what is measured.
        self.is_direct = is_direct
        self.plant, self.worker_names = plant, worker_names(workers)
        self.gateway_names, self.gateways, self.servers, self.workers = gateways, {}, {}, {}
        self.tools = [server.tool for server in SERVERS + (WORKER_SERVERS if workers else ())]
        self.postgres = self.nats = self.nginx = self.proxy = self.control = self.hops = self.engines = None
        self.events, self.memory, self.killed_pids, self.is_stopping = [], [], {}, False
        self.tasks, self.control_lock = [], asyncio.Lock()

    def processes(self):
        """Gateways and workers by name."""
        return {**self.gateways, **self.workers}

    def _nats_of(self, name):
        """The addresses of NATS for a gateway or worker, each of which has proxies of its own."""
        return ",".join(f"nats://127.0.0.1:{self.proxy_ports[f'nats-{name}-{node}']}" for node in NATS_NODES)

    def note(self, kind, **fields):
        self.events.append({"event": kind, "at": time.monotonic(), **fields})

    async def __aenter__(self):
        try:
            await self._start()
        except BaseException:
            await self.stop()
            raise
        return self

    async def __aexit__(self, *_):
        await self.stop()

    async def _start(self):
        self.model, model_port = await scripted_model.start(model_reply)
        self.postgres, self.nats = Postgres(self.folder, max_connections=200), Nats(self.folder)
        self.engines = asyncio.gather(self.postgres.create(), self.nats.start_all())
        names = [*HTTP, *(f"postgres-{name}" for name in self.gateway_names)]
        names += [f"nats-{name}-{node}" for name in (*self.gateway_names, *self.worker_names) for node in NATS_NODES]
        ports = free_ports(2 * len(names) + 2 * len(self.gateway_names) + 1)
        self.proxy_ports = dict(zip(names, ports))
        self.server_ports = dict(zip(HTTP, ports[len(names):]))
        rest = ports[2 * len(names):]
        await self._start_proxy()
        for name in HTTP:
            self.start_server(name)
        for name in HTTP:
            await wait_until(lambda name=name: is_listening(self.server_ports[name]), 20, f"server {name} listens")
        servers = server_settings(self.folder, self.proxy_ports)
        for name in self.gateway_names:
            gateway = self.gateways[name] = Gateway(name, self.folder, self.binary, rest.pop())
            gateway.write_settings(self.proxy_ports[f"postgres-{name}"], self._nats_of(name), model_port, servers, bool(self.worker_names))
        await self.engines
        # The revision and the tools of each server are known before the first gateway starts.
        await asyncio.to_thread(self.gateways[self.gateway_names[0]].command, "servers", "test")
        for name in self.worker_names:
            self.workers[name] = Worker(name, self.folder, self.binary, self._nats_of(name))
        await asyncio.gather(*(process.start() for process in self.processes().values()))
        self.port = rest.pop()
        await self._start_nginx([rest.pop() for _ in self.gateways])
        await self._warm_up()
        self.tasks = [asyncio.create_task(self._supervise()), asyncio.create_task(self._watch())]

    async def _start_proxy(self):
        targets = {name: self.server_ports[name] for name in HTTP}
        for name in self.gateway_names:
            targets[f"postgres-{name}"] = self.postgres.port
        for name in (*self.gateway_names, *self.worker_names):
            targets |= {f"nats-{name}-{node}": self.nats.ports[node] for node in NATS_NODES}
        if self.is_direct:
            self.proxy_ports = targets
            return
        control = os.path.join(self.folder, "proxy.sock")

        async def is_connected():
            # The file of the socket is there a moment before the proxy listens at it.
            try:
                self.control = await asyncio.open_unix_connection(control)
                return True
            except (FileNotFoundError, ConnectionRefusedError):
                return self.proxy.poll() is not None

        for _ in range(PROXY_STARTS):
            listeners = json.dumps({name: [self.proxy_ports[name], target] for name, target in targets.items()})
            self.proxy = spawn([sys.executable, "-B", f"{HERE}/fault_proxy.py", control, f"{self.folder}/proxy-faults.jsonl", listeners], f"{self.folder}/proxy.log")
            await wait_until(is_connected, 20, "the fault proxy listens")
            if self.control is not None:
                return
            # A process of another trial took one of the ports since they were chosen.
            self.proxy_ports = dict(zip(self.proxy_ports, free_ports(len(self.proxy_ports))))
        with open(f"{self.folder}/proxy.log", encoding="utf-8") as log:
            raise RuntimeError(f"the fault proxy does not start: {log.read()}")

    async def disturb(self, fault):
        """Hands a fault to the proxy."""
        reader, writer = self.control
        async with self.control_lock:
            writer.write(json.dumps(fault).encode() + b"\n")
            await writer.drain()
            await reader.readline()

    def start_server(self, name):
        server = BY_NAME[name]
        command = [sys.executable, "-B", f"{HERE}/upstream.py", name, f"http:{self.server_ports[name]}", server.revision, server.kind, f"{self.folder}/ledgers/{name}"]
        self.servers[name] = spawn(command, f"{self.folder}/server-{name}.log")

    async def _start_nginx(self, hop_ports):
        targets = {gateway.port: gateway.port for gateway in self.gateways.values()}
        if self.plant in ("cross", "lose"):
            targets = dict(zip(hop_ports, targets))
            self.hops = spawn([sys.executable, "-B", f"{HERE}/planted_defect.py", self.plant, json.dumps(targets)], f"{self.folder}/planted.log")
            for port in hop_ports:
                await wait_until(lambda port=port: is_listening(port), 20, "the planted defect listens")
        self.gateway_of_port = {f"127.0.0.1:{port}": name for port, name in zip(targets, self.gateways)}
        servers = [f"server 127.0.0.1:{port} max_fails=0;" for port in targets]
        next_upstream = "error timeout http_502 http_504 non_idempotent" if self.plant == "repeat" else "error"
        proxy = NGINX_PROXY.format(read_timeout=int((DEADLINE + 2 * LATE_MARGIN) * 1000), next_upstream=next_upstream)
        self.nginx = await start_nginx(self.folder, self.port, servers, NGINX_LOG, proxy)

    async def _warm_up(self):
        """Every gateway answers a call of every tool."""
        await asyncio.gather(*(self._warm_up_gateway(gateway) for gateway in self.gateways.values()))

    async def _warm_up_gateway(self, gateway):
        client = Client(gateway.port, "warm-up", "api")
        for tool in self.tools:
            call_id, last = f"warm-up-{gateway.name}-{tool}", ""

            async def works(tool=tool, call_id=call_id):
                nonlocal last
                outcome, text, _ = await client.call(tool, {"id": f"{call_id}-{time.monotonic_ns()}"}, call_id, 30)
                last = f"{outcome}: {text}"
                return outcome == "result"

            try:
                await wait_until(works, 15, f"{tool} at gateway {gateway.name}")
            except TimeoutError as error:
                raise RuntimeError(f"{error}; {last}") from None
        client.http.close()

    async def _supervise(self):
        """Restarts what ended, as systemd or Kubernetes would, and notes ends that the laboratory did not cause."""
        retry_at = {}
        while not self.is_stopping:
            for name, gateway in self.processes().items():
                if gateway.is_wanted and gateway.process.poll() is not None:
                    if name not in retry_at:
                        self._note_end(gateway)
                        retry_at[name] = time.monotonic() + 1
                    elif time.monotonic() > retry_at[name]:
                        del retry_at[name]
                        gateway.spawn()
            for node, process in self.nats.processes.items():
                if node not in self.nats.is_down and process.poll() is not None:
                    self.note("engine_ended", process=f"nats {node}", code=process.returncode)
                    self.nats.start(node)
            for name, process in self.servers.items():
                if process.poll() is not None:
                    self.start_server(name)
            for what, process in (("nginx", self.nginx), ("fault proxy", self.proxy)):
                if process and process.poll() is not None:
                    raise RuntimeError(f"{what} ended with {process.returncode}")
            await asyncio.sleep(0.1)

    def _note_end(self, gateway):
        code, served = gateway.process.returncode, gateway.has_served()
        is_ours = -code in gateway.signals or (code == 0 and signal.SIGTERM in gateway.signals)
        self.note("gateway_ended", gateway=gateway.name, pid=gateway.process.pid, code=code, is_ours=is_ours, has_served=served, signals=list(map(int, gateway.signals)), log=gateway.latest_log()[-1500:])

    async def _watch(self):
        """Memory of the gateways, and when the machine had no time for them or for this process."""
        last = next_sample = time.monotonic()
        waited = {}
        while not self.is_stopping:
            await asyncio.sleep(0.05)
            now = time.monotonic()
            if now - last > 0.2:
                self.note("machine_stalled", seconds=round(now - last, 3))
            last = now
            if now < next_sample:
                continue
            next_sample = now + 0.5
            for name, gateway in self.gateways.items():
                pid = gateway.process.pid
                if kib := resident_kib(pid):
                    self.memory.append({"gateway": name, "pid": pid, "at": now, "kib": kib})
                seconds = run_queue_seconds(pid)
                before = waited.get(pid)
                if before and seconds is not None and seconds - before[0] > STARVED_SECONDS:
                    self.note("gateway_starved", gateway=name, since=before[1], seconds=round(seconds - before[0], 3))
                if seconds is not None:
                    waited[pid] = (seconds, now)

    async def stop_gateways(self):
        """An orderly end; returns the processes of upstream servers that are left."""
        self.is_stopping = True
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        await asyncio.gather(*(self._stop_gateway(gateway) for gateway in self.processes().values() if gateway.process and gateway.process.poll() is None))
        try:
            await wait_until(lambda: not self.orphans(), ORPHAN_SECONDS, "upstream servers end")
        except TimeoutError:
            pass
        return self.orphans()

    async def _stop_gateway(self, gateway):
        gateway.process.send_signal(signal.SIGCONT)
        try:
            await gateway.terminate()
        except TimeoutError as error:
            self.note("gateway_hangs", gateway=gateway.name, problem=str(error), log=gateway.latest_log()[-1500:])
            gateway.process.kill()
        if gateway.process.wait() not in (0, -signal.SIGKILL):
            self._note_end(gateway)

    def orphans(self):
        """Processes of upstream servers on stdio."""
        own = {process.pid for process in self.servers.values()}
        return [(pid, text) for pid, text in processes_of(os.path.join(self.folder, "ledgers")) if pid not in own]

    async def stop(self):
        self.is_stopping = True
        if self.engines:
            # Otherwise an engine could start after it was stopped.
            await asyncio.gather(self.engines, return_exceptions=True)
        for task in self.tasks:
            task.cancel()
        processes = [gateway.process for gateway in self.processes().values()] + list(self.servers.values())
        processes += [*(self.nats.processes.values() if self.nats else ()), self.proxy, self.hops]
        for process in filter(None, processes):
            send_signal(process.pid, signal.SIGCONT) if process.poll() is None else None
            process.kill()
            process.wait()
        if self.nginx:
            self.nginx.terminate()
            self.nginx.wait()
        if self.engines:
            await self.postgres.stop("immediate")
        for gateway in self.gateways.values():
            gateway.unmount()

    def remove(self):
        shutil.rmtree(self.folder, ignore_errors=True)
