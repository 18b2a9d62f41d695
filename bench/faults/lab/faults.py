"""Executes the plan of faults. A fault counts when it met something: a connection that was open, a process that ran."""

import asyncio
import json
import os
import shutil
import signal
import time

from engines import postgres_backends
from plan import SERVER_FAULTS
from process_table import pause, send_signal, upstream_processes
from processes import wait_until
from topology import NATS_NODES

PROXY_FAULTS = ("reset", "cut", "cut_response", "cut_request", "drop_response", "garbage", "slow", "hold", "refuse")
SERVER_SIGNALS = {"server_garbage": signal.SIGUSR1, "server_die": signal.SIGUSR2}


class Faults:
    def __init__(self, lab, upgrade_to=None):
        self.lab, self.upgrade_to, self.tasks = lab, upgrade_to, set()
        self.locks = {name: asyncio.Lock() for name in lab.processes()}
        self.rolling = asyncio.Lock()

    async def run(self, plan):
        """Returns when the last fault is over."""
        began = time.monotonic()
        for fault in plan:
            await asyncio.sleep(max(0, began + fault["at"] - time.monotonic()))
            task = asyncio.create_task(self.execute(fault))
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)
        await asyncio.gather(*self.tasks)

    async def execute(self, fault):
        kind = fault["fault"]
        if kind in PROXY_FAULTS:
            # The proxy notes those that met a connection.
            await self.lab.disturb(fault)
            return
        start, met = time.monotonic(), None
        try:
            met = await (self.server_fault(fault) if kind in SERVER_FAULTS else getattr(self, kind)(fault))
        except (OSError, TimeoutError, RuntimeError) as error:
            self.lab.note("fault_failed", fault=kind, problem=f"{type(error).__name__}: {error}")
        if met:
            self.lab.note("fault", number=fault["number"], fault=kind, target=fault.get("target"), start=start, **met)

    async def server_fault(self, fault):
        name, kind = fault["target"], fault["fault"]
        pids = upstream_processes(self.lab.folder, name)
        if not pids:
            return None
        pid = pids[int(fault["choice"] * len(pids))]
        if kind == "server_stop":
            return {"pid": pid} if await pause(pid, fault["seconds"]) else None
        if kind in ("server_kill", "server_die"):
            # Its state is gone, and the gateways cannot know what it was.
            self.lab.killed_pids[pid] = time.monotonic()
        return {"pid": pid} if send_signal(pid, SERVER_SIGNALS.get(kind, signal.SIGKILL)) else None

    async def gateway_kill(self, fault):
        gateway = self.lab.processes()[fault["target"]]
        async with self.locks[gateway.name]:
            if gateway.process.poll() is not None:
                return None
            gateway.is_wanted, pid = False, gateway.process.pid
            gateway.send(signal.SIGKILL)
            gateway.process.wait()
            await asyncio.sleep(fault["seconds"])
            gateway.spawn()
            return {"pid": pid}

    async def gateway_stop(self, fault):
        gateway = self.lab.processes()[fault["target"]]
        async with self.locks[gateway.name]:
            if gateway.process.poll() is not None:
                return None
            stopped, pid = time.monotonic(), gateway.process.pid
            met = await pause(pid, fault["seconds"])
            return {"pid": pid, "stopped": stopped, "continued": time.monotonic()} if met else None

    worker_kill, worker_stop = gateway_kill, gateway_stop

    async def worker_restart(self, fault):
        """SIGTERM: the worker ends its calls first."""
        return await self.rolling_restart({"targets": [fault["target"]]})

    async def rolling_restart(self, fault):
        """Drains one process after the other and starts it again."""
        if self.rolling.locked():
            return None
        async with self.rolling:
            restarted = [name for name in fault["targets"] if await self._replace(self.lab.processes()[name])]
            return {"restarted": restarted} if restarted else None

    async def rolling_upgrade(self, fault):
        """Installs another binary, and restarts one process after the other."""
        async with self.rolling:
            await asyncio.to_thread(install, self.upgrade_to, self.lab.binary)
            for name in fault["targets"]:
                await self._replace(self.lab.processes()[name])
            old = [name for name in fault["targets"] if not self.lab.processes()[name].runs_binary()]
            if old:
                raise RuntimeError(f"not upgraded: {', '.join(old)}")
            return {"upgraded": fault["targets"]}

    async def _replace(self, gateway):
        """Whether there was a process to be restarted."""
        async with self.locks[gateway.name]:
            if gateway.process.poll() is not None:
                return False
            await self._restart(gateway)
        try:
            await wait_until(gateway.is_ready, 15, f"{gateway.name} is ready")
        except TimeoutError:
            # Another fault is in the way; the supervisor goes on.
            pass
        return True

    async def _restart(self, gateway):
        try:
            await gateway.terminate(50)
        except TimeoutError as error:
            self.lab.note("gateway_hangs", gateway=gateway.name, problem=str(error), log=gateway.latest_log()[-1500:])
            gateway.process.kill()
        if gateway.process.wait() != 0:
            self.lab._note_end(gateway)
        gateway.spawn()

    async def nats_kill(self, fault):
        node = fault["target"]
        if node in self.lab.nats.is_down:
            return None
        self.lab.nats.kill(node)
        await asyncio.sleep(fault["seconds"] / 4)
        self.lab.nats.start(node)
        return {"node": node}

    async def nats_stop(self, fault):
        process = self.lab.nats.processes[fault["target"]]
        return {"node": fault["target"]} if process.poll() is None and await pause(process.pid, fault["seconds"]) else None

    async def nats_restart_all(self, fault):
        for node in NATS_NODES:
            if node not in self.lab.nats.is_down:
                self.lab.nats.kill(node)
        await asyncio.sleep(fault["seconds"])
        for node in NATS_NODES:
            if node in self.lab.nats.is_down:
                self.lab.nats.start(node)
        return {"seconds": fault["seconds"]}

    async def postgres_backend_kill(self, fault):
        """PostgreSQL then ends all backends and recovers."""
        return self._signal_backend(fault, signal.SIGKILL)

    async def postgres_backend_stop(self, fault):
        backends = postgres_backends(self.lab.postgres)
        if not backends:
            return None
        pid = backends[int(fault["choice"] * len(backends))]
        return {"pid": pid} if await pause(pid, fault["seconds"]) else None

    def _signal_backend(self, fault, number):
        backends = postgres_backends(self.lab.postgres)
        if not backends:
            return None
        pid = backends[int(fault["choice"] * len(backends))]
        return {"pid": pid} if send_signal(pid, number) else None

    async def postgres_restart_fast(self, _fault):
        return await self._restart_postgres("fast")

    async def postgres_restart_immediate(self, _fault):
        return await self._restart_postgres("immediate")

    async def _restart_postgres(self, mode):
        if self.lab.postgres.lock.locked():
            return None
        # A stopped backend would let a fast stop wait.
        for pid in postgres_backends(self.lab.postgres):
            send_signal(pid, signal.SIGCONT)
        await self.lab.postgres.restart(mode)
        return {"mode": mode}

    async def full_disk(self, fault):
        """Fills the data folder of a gateway while its store is away, which is when it needs the folder."""
        gateway = self.lab.gateways[fault["target"]]
        if not gateway.has_small_disk:
            return None
        filler = os.path.join(gateway.data, "filler")

        def fill():
            try:
                with open(filler, "wb", buffering=0) as file:
                    while True:
                        file.write(bytes(1 << 16))
            except OSError:
                pass

        await asyncio.to_thread(fill)
        await self.lab.disturb({**fault, "target": f"postgres-{gateway.name}", "fault": "hold"})
        try:
            await asyncio.sleep(fault["seconds"])
        finally:
            os.remove(filler)
        return {"bytes": "all"}


def proxy_faults(folder):
    """Faults of the proxy that met a connection."""
    try:
        with open(os.path.join(folder, "proxy-faults.jsonl")) as file:
            return [json.loads(line) for line in file]
    except OSError:
        return []


def install(source, destination):
    """Replaces a program that runs: a new file under the old name."""
    shutil.copy(source, destination + ".new")
    os.rename(destination + ".new", destination)
