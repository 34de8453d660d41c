"""A page of docs/results, rendered from the raw data of all its rows that were ever measured."""

import json
import os

import plot
import proof
from rows import ELSEWHERE

def write(out, page):
    """Renders a page, and its plots, from the raw data in the folder of its name."""
    folder = os.path.join(out, page.name)
    os.makedirs(folder, exist_ok=True)
    summary, sections = [], []
    for name, row in page.rows.items():
        record = load(os.path.join(folder, f"{name}.json"))
        link, figures, verdict = "", "no raw data yet", ""
        if name in ELSEWHERE:
            other = ELSEWHERE[name][0]
            there = os.path.exists(os.path.join(out, f"{other}.md"))
            name_there = os.path.basename(other)
            figures = f"see [{name_there}]({other}.md)" if there else f"never run: `scripts/proof/{name_there}` makes it"
            if there and (of_document := ELSEWHERE[name][-1]):
                of_row = of_document(load(os.path.join(out, f"{other}.json")))
                figures = "<br>".join([f"{figure.name}: {figure.text()}" for figure in of_row] + [figures])
                verdict = overall(of_row)
        elif record and record["skipped"]:
            figures = f"skipped: {record['skipped']}"
        elif record and not (shown := understood(row, record)):
            figures = f"its data have an older format: `make bench ROW={name}` measures it again"
        elif record:
            link = f"#{name.lower()}"
            figures = "<br>".join(f"{figure.name}: {figure.text()}" for figure in shown.figures)
            verdict = overall(shown.figures) + (" (a trial)" if record["quick"] else "")
            sections.append(section(row, record, shown, folder))
        summary.append(
            [f"[{name}]({link})" if link else name, row.what, row.target, figures, row.peer or "none", verdict]
        )
    body = proof.table(["row", "what", "target", "figure, median (least-most)", "peer", "verdict"], summary)
    text = "\n\n".join([f"# {page.title}", page.introduction, body, *sections]) + "\n"
    with open(os.path.join(out, f"{page.name}.md"), "w", encoding="utf-8") as file:
        file.write(text)


def understood(row, record):
    """Returns a row's tables of its data; None if the data are from another version of its script."""
    try:
        return row.show(record["raw"])
    except (LookupError, TypeError, AttributeError):
        return None


def load(path):
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def overall(figures):
    """Returns how many of the figures with a bound were met, missed, or do not count."""
    verdicts = [figure.verdict().strip("*") for figure in figures if figure.bound is not None]
    counted = {
        verdict: verdicts.count(verdict) for verdict in ("met", "missed", "does not count") if verdict in verdicts
    }
    words = [verdict if len(counted) == 1 else f"{number} {verdict}" for verdict, number in counted.items()]
    return ", ".join(f"**{word}**" if "missed" in word else word for word in words)


def section(row, record, shown, folder):
    parts = [f"## {row.name}", f"{row.what[0].upper()}{row.what[1:]}. Target: {row.target}."]
    if record["quick"]:
        parts.append("**A trial, with few and short rounds: no figures to quote.**")
    for title, head, rows in shown.tables:
        parts.append((f"{title}\n\n" if title else "") + proof.table(head, rows))
    verdicts = [
        f"- {figure.name}: {figure.text()}"
        + ("" if figure.bound is None else f", bound {figure.bound:g}: {figure.verdict()}")
        + "".join(f"; {doubt}" for doubt in figure.doubts)
        for figure in shown.figures
    ]
    parts.append("\n".join(verdicts))
    parts += shown.notes + record.get("notes", [])
    parts += drawn(row, shown, folder)
    machine, name = record["machine"], os.path.basename(folder)
    about = [
        f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_gib']} GiB",
        f"kernel {machine['kernel']}",
        f"{machine['device']} with {machine['file_system']}",
        *record["versions"].values(),
        machine["date"],
    ]
    parts.append(f"Made by `{record['command']}` ([raw data]({name}/{row.name}.json)) on {'; '.join(about)}.")
    return "\n\n".join(parts)


def drawn(row, shown, folder):
    """Writes the row's plots and returns the lines that show them."""
    plots = dict(shown.plots)
    several = [figure for figure in shown.figures if len(figure.values) > 1]
    if several:
        plots[row.name] = plot.strips(several)
    for name, text in plots.items():
        with open(os.path.join(folder, f"{name}.svg"), "w", encoding="utf-8") as file:
            file.write(text)
    return [f"![{name}: plotted]({os.path.basename(folder)}/{name}.svg)" for name in plots]
