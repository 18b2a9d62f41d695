"""The cost model of docs/scale.md: what one, ten, a hundred and a thousand gateways hold, and which part gives way first.

usage: python3 bench/load/scale_model.py            prints the tables
       python3 bench/load/scale_model.py --plot     prints the plot as SVG (docs/scale.svg)
"""

import math
import sys

# Measured; docs/scale.md says when and how.
POSTGRES_CPU_US = 33  # per audited call, of PostgreSQL: `just store-cost`
TABLE_BYTES, INDEX_BYTES, WAL_BYTES = 334, 57, 488  # per audited call: `just store-cost`
# Memory of a gateway: `just sizes`. A tool takes 2.4 kB before the first search, which builds the index, and 3.3 kB after it.
BASE_MB, TOOL_KB, CLIENT_KB = 40, 2.4, 20
CONNECTIONS = 12  # of a gateway to PostgreSQL

# Assumed; replace them by what you see.
# Per call, of a gateway. `just bench-gateway` measured 25 to 60 with 16 and 64 clients, and 51 to 92 with one; docs/scale.md has more.
GATEWAY_CPU_US = 75
CLIENTS_PER_GATEWAY = 10_000
SECONDS_BETWEEN_CALLS = 10  # of one client
TOOLS = 10_000
UTILISATION = 0.6  # of a core, at the most
NODES = (1, 10, 100, 1000)

CALLS_PER_GATEWAY = CLIENTS_PER_GATEWAY / SECONDS_BETWEEN_CALLS
# One core, because records of the audit log form a chain, which one transaction at a time extends.
CALLS_PER_STORE = UTILISATION * 1e6 / POSTGRES_CPU_US


def shards(nodes):
    return max(1, math.ceil(nodes * CALLS_PER_GATEWAY / CALLS_PER_STORE))


def tables():
    print("| gateways | clients | calls/s | cores of gateways | stores needed | audit log, GB a day | WAL, GB a day | connections of one store |")
    print("|---|---|---|---|---|---|---|---|")
    for nodes in NODES:
        calls = nodes * CALLS_PER_GATEWAY
        cores = calls * GATEWAY_CPU_US / 1e6 / UTILISATION
        day = calls * 86_400 / 1e9
        connections = math.ceil(nodes / shards(nodes)) * CONNECTIONS
        print(f"| {nodes:,} | {nodes * CLIENTS_PER_GATEWAY:,} | {calls:,.0f} | {cores:,.1f} | {shards(nodes):,} | {day * (TABLE_BYTES + INDEX_BYTES):,.0f} | {day * WAL_BYTES:,.0f} | {connections:,} |")
    memory = BASE_MB + TOOLS * TOOL_KB / 1000 + CLIENTS_PER_GATEWAY * CLIENT_KB / 1000
    print(f"\nmemory of a gateway with {TOOLS:,} tools and {CLIENTS_PER_GATEWAY:,} idle clients: {memory:,.0f} MB")
    print(f"calls a second of one gateway on one core: {UTILISATION * 1e6 / GATEWAY_CPU_US:,.0f}; of one store: {CALLS_PER_STORE:,.0f}")


WIDTH, HEIGHT, MARGIN = 640, 360, 64
X_POWERS, Y_POWERS = (0, 3), (2, 7)


def place(nodes, calls):
    x = MARGIN + (math.log10(nodes) - X_POWERS[0]) / (X_POWERS[1] - X_POWERS[0]) * (WIDTH - 2 * MARGIN)
    y = HEIGHT - MARGIN - (math.log10(calls) - Y_POWERS[0]) / (Y_POWERS[1] - Y_POWERS[0]) * (HEIGHT - 2 * MARGIN)
    return f"{x:.1f}", f"{y:.1f}"


def line(points, color, label, dash=""):
    path = " ".join(",".join(place(*point)) for point in points)
    x, y = place(*points[-1])
    return [
        f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2" stroke-dasharray="{dash}"/>',
        f'<text x="{x}" y="{float(y) - 6:.1f}" fill="{color}" text-anchor="end">{label}</text>',
    ]


def plot():
    full = UTILISATION * 1e6 / GATEWAY_CPU_US
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="11">', '<rect width="100%" height="100%" fill="white"/>']
    for power in range(Y_POWERS[0], Y_POWERS[1] + 1):
        (x1, y), (x2, _) = place(1, 10**power), place(10 ** X_POWERS[1], 10**power)
        out += [f'<line x1="{x1}" x2="{x2}" y1="{y}" y2="{y}" stroke="#d0d7de"/>', f'<text x="{MARGIN - 6}" y="{y}" text-anchor="end">{10**power:,}</text>']
    for power in range(X_POWERS[0], X_POWERS[1] + 1):
        x, y = place(10**power, 10 ** Y_POWERS[0])
        out.append(f'<text x="{x}" y="{float(y) + 18:.1f}" text-anchor="middle">{10**power:,}</text>')
    out.append(f'<text x="{WIDTH / 2}" y="{HEIGHT - 16}" text-anchor="middle">gateways, one core each</text>')
    out.append(f'<text x="{MARGIN}" y="24">calls a second</text>')
    out += line([(1, full), (1000, full * 1000)], "#d0a000", "gateways at 60 % of their cores", "6 4")
    out += line([(1, CALLS_PER_GATEWAY), (1000, CALLS_PER_GATEWAY * 1000)], "#1f6feb", "10,000 clients each, a call every 10 s")
    out += line([(1, CALLS_PER_STORE), (1000, CALLS_PER_STORE)], "#d1242f", "one store: the audit log is one chain", "2 3")
    print("\n".join([*out, "</svg>"]))


plot() if "--plot" in sys.argv else tables()
