"""Scripts and data for self-contained pages.

Names of tables, agents and labs come from users. They cannot become code: jinja escapes them in text, `json_text`
escapes `<` in JSON, and scripts write them as text, never as HTML. The content security policy (`policy`) allows
scripts by hash and forbids requests, so a browser blocks other scripts.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import math
from importlib.resources import files
from typing import Any

import jinja2
import numpy as np
from markupsafe import Markup

from banditlab.analysis import formats

ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
"""Characters that JSON has inside strings only, and that could end or begin an HTML element or a line of a script."""
DIGITS = 6
"""Significant digits of the numbers of a curve; rounding is below a pixel."""


def asset(name: str) -> str:
    """Return the text of a file of this package's `templates/`."""
    return (files("banditlab.analysis") / "templates" / name).read_text(encoding="utf-8")


@functools.cache
def _templates() -> jinja2.Environment:
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("banditlab.analysis"),
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined,
    )  # fmt: skip
    made.filters |= {
        "breakable": lambda label: Markup("<wbr>(").join(label.split("(")),
        "hundred": lambda interval: interval.scaled(100),
        "mean": formats.percent,
        "points": formats.points,
        "spread": formats.spread,
        "percent": formats.share,
        "amount": formats.amount,
        "short": formats.short,
        "duration": formats.duration,
        "with_article": formats.with_article,
        "title_of": formats.environment_title,
        "records": lambda table: table.to_dict("records"),
        "sortable": lambda value: f"{value:.17g}" if math.isfinite(value) else "",
    }
    return made


def render(template: str, **values: Any) -> str:
    """Return a template of this package with escaped values."""
    return _templates().get_template(template).render(style=Markup(asset("page.css")), **values)


def json_text(data: Any) -> Markup:
    """Return data as JSON that is safe inside an element of a page; numbers that are not finite become null."""
    text = json.dumps(_plain(data), ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for sign, escape in ESCAPES.items():
        text = text.replace(sign, escape)
    return Markup(text)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, np.ndarray):
        return [_plain(each) for each in value.tolist()]
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return _rounded(float(value))
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()  # unpaired surrogates are not valid text
    return value


def _rounded(value: float) -> float | int | None:
    if not math.isfinite(value):
        return None
    short = float(f"{value:.{DIGITS}g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short


def script_of(*names: str) -> Markup:
    """Return scripts of `templates/` as one text, in the given order; none may contain the end tag of its element."""
    text = "\n".join(asset(name).strip() for name in names)
    if "</script" in text.lower() or "<!--" in text:
        raise ValueError("a script contains its end tag or <!--")
    return Markup(f"\n{text}\n")


def policy(*scripts: str) -> Markup:
    """Return the content security policy of a page, which allows these scripts by hash, inline styles, and no
    requests."""
    hashes = " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(s.encode()).digest()).decode()}'" for s in scripts)
    return Markup(
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; connect-src 'none'; "
        "base-uri 'none'; form-action 'none'"
    )
