"""Numbers, settings and names as text."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping

from banditlab.analysis.statistics import Interval
from banditlab.validation import ALIASES

SYMBOLS = {name: symbol for symbol, name in ALIASES.items()}
MISSING = "–"


def sign(name: str) -> str:
    """Return a setting's name in tables: γ for `gamma`, B for `norm_bound`; a prefix "forecaster." stays."""
    head, dot, tail = name.rpartition(".")
    return f"{head}{dot}{SYMBOLS.get(tail, tail)}"


def short(value: float | str) -> str:
    """Return a setting's value with at most four digits."""
    if isinstance(value, str):
        return value
    return f"{value:,.0f}" if float(value).is_integer() and abs(value) < 1e6 else f"{value:.4g}"


def is_number(text: str) -> bool:
    """Return whether a setting in the spec is a number ("0.1") rather than a word ("theory")."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def environment_title(label: str) -> str:
    """Return an environment's label with its file first: "wine.csv · banditlab/Table-v0(label=target)".

    A path with folders is also shown in the parentheses.
    """
    found = re.search(r"(?<=[(\s])path=(.*?)(?=, \w+=|\)$)", label)
    if found is None:
        return label
    path, rest = found.group(1), label
    if not re.search(r"[/\\]", path):
        rest = label[: found.start()] + label[found.end() :].removeprefix(", ")
        rest = re.sub(r", (?=\)$)", "", rest).removesuffix("()")
    name = re.split(r"[/\\]", path)[-1]
    return f"{name} · {rest}"


def data_title(label: str) -> str:
    """Return the name of an environment's data: "Digits", "wine.csv", "Logistic with n_classes=3".

    Two environments of one page may have the same name here; `environment_title` distinguishes them.
    """
    title = environment_title(label)
    if " · " in title:
        return title.partition(" · ")[0]
    found = re.fullmatch(r"(?:.*/)?([^/()]+?)(?:-v\d+)?(?:\((.*)\))?", label, flags=re.S)
    if found is None:
        return label
    return f"{found[1]} with {found[2]}" if found[2] else found[1]


def without_what_is_common(titles: Mapping[str, str]) -> dict[str, str]:
    """Return titles without the arguments that all titles of the same name share."""
    found = {
        key: re.fullmatch(r"([^=,]+) with ((?:\w+=[^,=()]*, )*\w+=[^,=()]*)", title) for key, title in titles.items()
    }
    split = {key: (match[1], match[2].split(", ")) for key, match in found.items() if match}
    short = dict(titles)
    for key, (name, arguments) in split.items():
        others = [theirs for other, theirs in split.values() if other == name]
        mine = [each for each in arguments if not all(each in theirs for theirs in others)]
        if mine:
            short[key] = f"{name} with {', '.join(mine)}"
    return short if len(set(short.values())) == len(set(titles.values())) else dict(titles)


def facts_of_data(facts: Mapping[str, float], rounds: int) -> str:
    """Return a description such as "150 rows, d = 5, K = 3, largest class 33.3 %; 2 passes"."""
    largest = f", largest class {share(facts['largest'])}" if "largest" in facts else ""
    passes = f"{rounds / facts['rows']:.3g} {'pass' if rounds == facts['rows'] else 'passes'}"
    details = {
        "groups": f" in {facts.get('groups', 0):,.0f} groups, of which only the first rows count",
        "in_order": " in order, scaled by earlier rows",
        "follows_time": ", which depend on time: no intervals",
    }
    rows = f"{facts['rows']:,.0f} rows{''.join(text for name, text in details.items() if name in facts)}"
    scalings = [name.removeprefix("scaling.") for name in facts if name.startswith("scaling.")]
    scaled = [f"; contexts are scaled with all rows of the table (scaling = {name})" for name in scalings]
    fitted = "the first eighth of the rows" if "in_order" in facts else "the whole table"
    scaled += [f"; text features are fitted on {fitted}"] if "text" in facts else []
    gap = f"; losses of logistic models in hindsight are accurate to {facts['gap']:.1g} nats" if "gap" in facts else ""
    return f"{rows}, d = {facts['features']:,.0f}, K = {facts['classes']:,.0f}{largest}; {passes}{''.join(scaled)}{gap}"


def learner(kinds: Iterable[str]) -> str:
    """Return the word for players with these kinds of feedback: "agent", "forecaster", or else "learner"."""
    words = {"bit": "agent", "label": "forecaster"}
    found = {words.get(kind, "learner") for kind in kinds}
    return found.pop() if len(found) == 1 else "learner"


def with_article(noun: str) -> str:
    """Return "an agent", "a forecaster" or "a learner"."""
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def count(n: int, noun: str) -> str:
    """Return a count such as "1 run" or "5,000 runs"."""
    return f"{n:,} {noun if n == 1 else noun + 's'}"


def decimals(interval: Interval) -> int:
    """Return the number of decimals for a percentage with this interval: one, or two if the interval is narrow."""
    half = (interval.high - interval.low) / 2
    sharp = half < 0.05 if math.isfinite(half) else abs(interval.mean) < 1
    return 2 if sharp and abs(interval.mean) < 10 else 1


def percent(interval: Interval) -> str:
    """Return the mean of an interval in percent as "4.1 %", or a dash for NaN."""
    return MISSING if math.isnan(interval.mean) else f"{plain(interval.mean, decimals(interval))} %"


def points(interval: Interval) -> str:
    """Return the mean of a difference in percentage points, such as "2.1"."""
    return percent(interval).removesuffix(" %")


def share(value: float) -> str:
    """Return a fraction in percent, such as "4.1 %", or a dash for NaN."""
    return MISSING if math.isnan(value) else f"{plain(100 * value, 1)} %"


def spread(interval: Interval) -> str:
    """Return an interval as "3.9 to 4.3", or a dash if there is none."""
    if not math.isfinite(interval.low):
        return MISSING
    digits = decimals(interval)
    return f"{plain(interval.low, digits)} to {plain(interval.high, digits)}"


def plain(value: float, digits: int = 0) -> str:
    """Return a number with thousands separators and a true minus sign, "∞", or a dash for NaN."""
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if math.isnan(value):
        return MISSING
    text = f"{value:,.{digits}f}"
    return text.lstrip("-") if float(text.replace(",", "")) == 0 else text.replace("-", "−")


def amount(value: float) -> str:
    """Return a number of mistakes or nats: without decimals if it is at least 100, otherwise with one."""
    return plain(value, 0 if abs(value) >= 100 else 1)


def duration(seconds: float) -> str:
    """Return a time per round in a suitable unit."""
    if not math.isfinite(seconds):
        return MISSING
    for factor, unit in ((1.0, "s"), (1e3, "ms"), (1e6, "µs")):
        if seconds * factor >= 1 or unit == "µs":
            value = seconds * factor
            return f"{value:.0f} {unit}" if value >= 10 else f"{value:.2g} {unit}"
    raise AssertionError
