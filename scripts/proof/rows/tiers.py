"""C3, C4: the figures of the scenario perl-tiers that have targets, from its document."""

from row import Figure

BYTES = "28,579 bytes"
LANGUAGES = ("Rust", "Python")
# By how much the servers are farther away than loopback. Farther, a set takes longer than C4 could tell apart.
DISTANCES = {"loopback": "loopback", "0.5 ms added": "0.5 ms away"}


def _times(document):
    """Microseconds an iteration, by distance, store and column."""
    times = {}
    for title, distance in DISTANCES.items():
        table = next(one for one in document["tables"] if one["title"].startswith(f"perl-tiers: {BYTES}, {title},"))
        times[distance] = {
            row[0]: {column: float(cell.replace(",", "")) for column, cell in zip(table["columns"][1:], row[1:]) if cell != "-"}
            for row in table["rows"]
        }
    return times


def reads(document):
    figures = []
    for distance, stores in _times(document).items():
        for language in LANGUAGES:
            tiered, far, near = (stores[f"{language} {store}"]["get"] for store in ("Tiered", "Client", "L1"))
            figures.append(Figure(f"{language}, times as fast, {distance}", [far / tiered], 50, is_most=False, digits=0))
            figures.append(Figure(f"{language}, relative to shared memory, {distance}", [tiered / near], 1.1))
    return figures


def writes(document):
    return [
        Figure(
            f"{language}, beyond the remote set, {distance}",
            [stores[f"{language} Tiered"]["set+get"] - stores[f"{language} Client"]["set"]],
            10,
            digits=1,
            unit="us",
        )
        for distance, stores in _times(document).items()
        for language in LANGUAGES
    ]
