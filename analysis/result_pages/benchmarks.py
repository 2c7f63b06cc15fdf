"""docs/results/benchmarks.md: the second order where contexts are embeddings; the other tables are written by hand."""

from pathlib import Path

import pandas as pd

from banditlab.analysis.pages import markdown_table

FORMS = ("full", "sketch 16", "sketch 32", "sketch 64", "diagonal")
RUN = ["stream", "K", "d", "agent", "rounds"]


def parts(results: Path) -> dict[str, str]:
    """Return the page's table by its marker, from the lines of `python -m benchmarks sketch --keep`."""
    runs = pd.read_csv(results / "second-order.csv").groupby(RUN, sort=False)
    rows = [line(*run, lines.set_index("second_order")) for run, lines in runs]
    return {"second-order": markdown_table(["stream", "K x d", "K d^2", "agent", "rounds", *FORMS], rows, "lrrlr")}


def line(stream: str, K: int, d: int, agent: str, rounds: int, forms: pd.DataFrame) -> list[str]:
    """Return a line of the table: mistakes and, in brackets, microseconds per round of each form that was played."""
    played = {form: f"{forms['mistakes'][form]:.2f} ({1e6 / forms['rate'][form]:,.0f})" for form in forms.index}
    size, numbers = f"{K} x {d:,}", f"{K * d**2 / 1e6:,.2f} million"
    return [stream, size, numbers, agent, f"{rounds:,}", *(played.get(form, "") for form in FORMS)]
