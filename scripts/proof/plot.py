"""Small plots as SVG, readable on a light page and on a dark one."""

import math
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 760, 330
LEFT, RIGHT, TOP, BOTTOM = 92, 16, 54, 44
COLOURS = ("#7aa6d8", "#3b7fc4", "#1f4e8c", "#e9b36b", "#d9822b", "#a6521a")
DARK_COLOURS = ("#a9c9ef", "#6aa9ee", "#3f7fd0", "#f5d19c", "#f0a04b", "#cf6f2a")
STYLE = (
    "text{font:12px sans-serif;fill:#333}.rule{stroke:#8886;stroke-width:1}.bound{stroke:#c33;stroke-width:2}"
    + "".join(f".s{at}{{stroke:{colour};fill:{colour}}}" for at, colour in enumerate(COLOURS))
    + "path{fill:none!important;stroke-width:1.6}"
    + "@media (prefers-color-scheme:dark){text{fill:#ddd}.bound{stroke:#f66}"
    + "".join(f".s{at}{{stroke:{colour};fill:{colour}}}" for at, colour in enumerate(DARK_COLOURS))
    + "}"
)


def svg(height, parts):
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}">'
    return "\n".join([head, f"<style>{STYLE}</style>", *parts, "</svg>", ""])


def text(x, y, words, anchor="start"):
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}">{escape(str(words))}</text>'


def rule(x1, y1, x2, y2, kind="rule"):
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def percentiles(what, kinds):
    """Percentiles of each second: `kinds` are names and runs with their windows, drawn one run after another."""
    series = []
    for kind, runs in kinds.items():
        windows = [window for run in runs for window in run.get("windows", [])]
        for name, words in (("p50_ns", "p50"), ("p99_ns", "p99"), ("p999_ns", "p99.9")):
            series.append((f"{kind}, {words}", [(at, window[name] / 1e3) for at, window in enumerate(windows)]))
    return lines(f"{what}: percentiles of each second", "second measured, runs one after another", "us", series)


def lines(title, x_name, y_name, series):
    """Lines over time: `series` are (name, [(x, y)]); y is drawn in powers of ten."""
    points = [point for _, line in series for point in line if point[1] > 0]
    if not points:
        return svg(TOP, [text(LEFT, 18, f"{title}: no points")])
    x_most = max(x for x, _ in points) or 1
    low, high = (bound(math.log10(edge(y for _, y in points))) for bound, edge in ((math.floor, min), (math.ceil, max)))
    high = max(high, low + 1)

    def at(x, y):
        across = LEFT + (WIDTH - LEFT - RIGHT) * x / x_most
        return across, HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (math.log10(y) - low) / (high - low)

    parts = [text(LEFT, 18, title), text(LEFT, HEIGHT - 8, x_name)]
    for power in range(low, high + 1):
        _, y = at(0, 10**power)
        parts += [rule(LEFT, y, WIDTH - RIGHT, y), text(LEFT - 6, y + 4, f"{10**power:,} {y_name}", "end")]
    for x in range(0, math.floor(x_most) + 1, math.ceil(x_most / 8)):
        parts.append(text(at(x, 10**low)[0], HEIGHT - BOTTOM + 16, x, "middle"))
    for number, (name, line) in enumerate(series):
        left = LEFT + number * (WIDTH - LEFT - RIGHT) / len(series)
        parts += [
            f'<rect class="s{number % len(COLOURS)}" x="{left:.0f}" y="28" width="10" height="10"/>',
            text(left + 14, 37, name),
        ]
        path = " L".join("%.1f %.1f" % at(x, y) for x, y in line if y > 0)
        if path:
            parts.append(f'<path class="s{number % len(COLOURS)}" d="M{path}"/>')
    return svg(HEIGHT, parts)


def strips(figures):
    """Every value of each figure as a dot, the bound as a tick, from 0 on: how far rounds were apart.

    Figures with one bound share a scale.
    """
    left, step = 250, 28
    parts = []
    for number, figure in enumerate(figures):
        y = 20 + number * step
        alike = [one for one in figures if one.bound == figure.bound]
        most = max(value for one in alike for value in [*one.values, one.bound or 0]) * 1.1 or 1

        def at(value, most=most):
            return left + (WIDTH - left - 90) * value / most

        middle = figure.text().split(" ")[0]
        parts += [
            text(left - 10, y + 4, figure.name, "end"),
            rule(left, y, at(most), y),
            text(at(most) + 8, y + 4, middle),
        ]
        if figure.bound is not None:
            parts.append(rule(at(figure.bound), y - 8, at(figure.bound), y + 8, "bound"))
        for value in figure.values:
            parts.append(f'<circle class="s1" fill-opacity="0.6" cx="{at(value):.1f}" cy="{y}" r="4"/>')
    return svg(20 + step * len(figures), parts)
