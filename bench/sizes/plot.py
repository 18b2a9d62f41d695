"""Draws the figures of trials by number of tools as one SVG. usage: python3 bench/sizes/plot.py NAME=REPORT.json … > docs/sizes.svg"""

import json
import math
import sys

COLORS = ["#1f6feb", "#d1242f", "#1a7f37", "#8250df"]
PANELS = [
    ("start to ready, s", "start, s", 1),
    ("memory after the start, kB per tool", "B per tool after the start", 1e-3),
    ("memory after searches, kB per tool", "B per tool after searches", 1e-3),
    ("search, ms", "search, ms", 1),
]
WIDTH, HEIGHT, MARGIN = 320, 220, 48


def scale(values):
    """Powers of ten that enclose the values."""
    low, high = min(values), max(values)
    return math.floor(math.log10(low)), math.ceil(math.log10(high))


def panel(title, x0, y0, series):
    points = [point for _, points in series for point in points]
    (x_low, x_high), (y_low, y_high) = scale([x for x, _ in points]), scale([y for _, y in points])
    place_x = lambda x: x0 + MARGIN + (math.log10(x) - x_low) / max(x_high - x_low, 1) * (WIDTH - 2 * MARGIN)
    place_y = lambda y: y0 + HEIGHT - MARGIN - (math.log10(y) - y_low) / max(y_high - y_low, 1) * (HEIGHT - 2 * MARGIN)
    lines = [f'<text x="{x0 + WIDTH / 2}" y="{y0 + 18}" text-anchor="middle" font-weight="bold">{title}</text>']
    for power in range(y_low, y_high + 1):
        y = place_y(10**power)
        lines.append(f'<line x1="{x0 + MARGIN}" x2="{x0 + WIDTH - MARGIN}" y1="{y}" y2="{y}" stroke="#d0d7de"/>')
        lines.append(f'<text x="{x0 + MARGIN - 6}" y="{y + 4}" text-anchor="end">{10**power:g}</text>')
    for power in range(x_low, x_high + 1):
        lines.append(f'<text x="{place_x(10**power)}" y="{y0 + HEIGHT - MARGIN + 18}" text-anchor="middle">{10**power:,}</text>')
    for color, (_, points) in zip(COLORS, series):
        path = " ".join(f"{place_x(x):.1f},{place_y(y):.1f}" for x, y in points)
        lines.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"/>')
        lines += [f'<circle cx="{place_x(x):.1f}" cy="{place_y(y):.1f}" r="3" fill="{color}"/>' for x, y in points]
    return lines


def main():
    reports = [(name, json.load(open(file))) for name, _, file in (one.partition("=") for one in sys.argv[1:])]
    lines = []
    for number, (title, key, factor) in enumerate(PANELS):
        series = [(name, [(row["tools"], row[key] * factor) for row in rows if key in row]) for name, rows in reports]
        lines += panel(title, number % 2 * WIDTH, number // 2 * HEIGHT, series)
    for number, (color, (name, _)) in enumerate(zip(COLORS, reports)):
        lines.append(f'<text x="{MARGIN + 120 * number}" y="{2 * HEIGHT + 16}" fill="{color}">{name}</text>')
    print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {2 * WIDTH} {2 * HEIGHT + 28}" font-family="sans-serif" font-size="11">')
    print('<rect width="100%" height="100%" fill="white"/>')
    print("\n".join(lines))
    print("</svg>")


main()
