"""PostgreSQL backends, and a NATS cluster of three nodes on loopback."""

import os
import signal

from nats import nats_program
from process_table import children_of, command_lines
from processes import free_ports, is_listening, spawn, wait_until
from topology import NATS_NODES


def postgres_backends(postgres):
    """Processes that serve a connection."""
    try:
        with open(f"{postgres.folder}/data/postmaster.pid") as file:
            postmaster = int(file.readline())
    except (OSError, ValueError):
        return []
    texts = dict(command_lines())
    return sorted(pid for pid in children_of(postmaster) if "127.0.0.1(" in " ".join(texts.get(pid, ())))


class Nats:
    """Three nodes; clients learn of no other addresses than those in their settings, so that the proxy is not bypassed."""

    def __init__(self, folder):
        self.folder = os.path.join(folder, "nats")
        os.mkdir(self.folder)
        ports = free_ports(2 * len(NATS_NODES))
        self.ports = dict(zip(NATS_NODES, ports))
        self.routes = dict(zip(NATS_NODES, ports[len(NATS_NODES):]))
        self.program, self.processes, self.is_down = nats_program(), {}, set()

    def start(self, node):
        routes = ", ".join(f'"nats://127.0.0.1:{port}"' for other, port in self.routes.items() if other != node)
        conf = os.path.join(self.folder, f"{node}.conf")
        with open(conf, "w") as file:
            file.write(f"""listen: "127.0.0.1:{self.ports[node]}"
server_name: "n{node}"
cluster {{ name: "lab", listen: "127.0.0.1:{self.routes[node]}", routes: [{routes}], no_advertise: true }}
""")
        self.processes[node] = spawn([self.program, "-c", conf], os.path.join(self.folder, f"{node}.log"))
        self.is_down.discard(node)

    async def start_all(self):
        for node in NATS_NODES:
            self.start(node)
        for node in NATS_NODES:
            await wait_until(lambda node=node: is_listening(self.ports[node]), 20, f"NATS node {node} listens")

    def kill(self, node):
        self.is_down.add(node)
        process = self.processes[node]
        process.send_signal(signal.SIGCONT)
        process.kill()
        process.wait()
