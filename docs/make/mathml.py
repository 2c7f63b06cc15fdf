"""A Sphinx extension: mathematics as MathML, which browsers draw themselves. No script, no font, no network.

`$...$` and `$$...$$` are LaTeX; the role `formula` is a docstring's plain text (`docs.make.plain_math`).
"""

from __future__ import annotations

import re
from typing import Any

import latex2mathml.converter
from docutils import nodes

from docs.make.plain_math import formula


class FormulaNode(nodes.Inline, nodes.TextElement):  # type: ignore[misc]
    """A formula in plain text; what it contains is what the search finds."""


def _role(name: str, rawtext: str, text: str, *rest: Any, **options: Any) -> tuple[list[nodes.Node], list[nodes.Node]]:
    return [FormulaNode(rawtext, text)], []


LONG = 18
"""Characters above which a formula in a line may be wider than a phone, and scrolls in place: browsers do not break one."""


def in_line(markup: str) -> str:
    """Return a formula of a line of text, one that may be too long in a box of its own."""
    long = len(re.sub(r"<annotation.*?</annotation>|<[^>]+>", "", markup)) > LONG
    return f'<span class="long-formula">{markup}</span>' if long else markup


def _visit_formula(writer: Any, node: FormulaNode) -> None:
    writer.body.append(in_line(formula(node.astext())))
    raise nodes.SkipNode


def _visit_math(writer: Any, node: nodes.math) -> None:
    writer.body.append(in_line(latex2mathml.converter.convert(node.astext())))
    raise nodes.SkipNode


def _visit_display(writer: Any, node: nodes.math_block) -> None:
    markup = latex2mathml.converter.convert(node.astext(), display="block")
    writer.body.append(f'<div class="formula">{markup}</div>\n')
    raise nodes.SkipNode


def _as_text(writer: Any, node: nodes.Node) -> None:
    """Leave a formula's plain text where no page is written (titles in a table of contents)."""


def setup(app: Any) -> dict[str, Any]:
    """Register the role and the renderer."""
    app.add_node(FormulaNode, html=(_visit_formula, None), text=(_as_text, _as_text))
    app.add_role("formula", _role)
    app.add_html_math_renderer("mathml", (_visit_math, None), (_visit_display, None))
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
