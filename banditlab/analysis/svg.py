"""A matplotlib SVG made fit to stand in a page."""

from __future__ import annotations

import re

from markupsafe import Markup, escape

from banditlab.analysis.look import FAINT, INK, RULE

THEMED = {INK: "var(--ink)", FAINT: "var(--faint)", RULE: "var(--rule)"}


def inline_svg(text: str, key: str, title: str, description: str) -> Markup:
    """Return a matplotlib SVG fit to stand in a page with others.

    Ids get a prefix of their own, inks follow the reader's theme, the text takes the page's font, and what only a file
    needs (declaration, metadata, global styles) goes. A title and a description speak to screen readers.
    """
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.S)
    text = re.sub(r"<style type=\"text/css\">.*?</style>", "", text, flags=re.S)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.S)
    text = re.sub(r'\bid="', f'id="{key}-', text)
    text = re.sub(r"url\(#", f"url(#{key}-", text)
    text = re.sub(r'xlink:href="#', f'href="#{key}-', text)
    text = re.sub(r'font-family: [^;"]*', "font-family: system-ui, sans-serif", text)
    text = re.sub(r'(font: [^;"]*?px) [^;"]*', r"\1 system-ui, sans-serif", text)
    for colour, variable in THEMED.items():
        text = text.replace(colour, variable)
    text = re.sub(r"\n\s*", "\n", text)
    view = re.search(r'viewBox="[^"]*"', text)
    if view is None:
        raise ValueError("an SVG without a viewBox")
    head = (
        f'<svg {view.group()} role="img" aria-labelledby="{key}-title {key}-desc" stroke-linejoin="round">'
        f'<title id="{key}-title">{escape(title)}</title><desc id="{key}-desc">{escape(description)}</desc>'
    )
    return Markup(head + text[text.index(">") + 1 :])
