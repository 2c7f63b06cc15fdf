"""Links that leave the site: their form is checked at every build."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import urlsplit

from docs.make.links import pages_of

ARXIV = re.compile(r"/(abs|pdf)/(\d{4}\.\d{4,5}(v\d+)?|[a-z-]+(\.[A-Z]{2})?/\d{7})")
DOI = re.compile(r"/10\.\d{4,9}/\S+")
CITED = re.compile(r"\barXiv:?\s*(\d[^\s,;()<]*|[a-z-]+/\d+)")
ARXIV_ID = re.compile(r"(\d{4}\.\d{4,5}(v\d+)?|[a-z-]+/\d{7})\.?")


def outside_links(folder: Path) -> list[str]:
    """Return every address outside that pages of a built site link to."""
    links = {link for page in pages_of(folder).values() for link in page.links}
    return sorted(link for link in links if urlsplit(link).scheme or link.startswith("//"))


def malformed(links: Iterable[str], text: str = "") -> list[str]:
    """Return a line for each address of a wrong form, for those that differ in spelling only, for wrong arXiv ids in text."""
    found, same = [], {}
    for link in links:
        parts = urlsplit(link)
        if parts.scheme == "mailto":
            continue
        host = parts.netloc.lower()
        if parts.scheme != "https":
            found.append(f"{link}: the scheme must be https")
        elif "." not in host or re.search(r"\s", link):
            found.append(f"{link}: this is no address")
        elif host.endswith("arxiv.org") and not ARXIV.fullmatch(parts.path.removesuffix(".pdf")):
            found.append(f"{link}: arXiv's papers are at https://arxiv.org/abs/YYMM.NNNNN")
        elif host.endswith("doi.org") and not (host == "doi.org" and DOI.fullmatch(parts.path)):
            found.append(f"{link}: a DOI is at https://doi.org/10.NNNN/...")
        same.setdefault(_plain(link), []).append(link)
    found += [f"{' and '.join(many)} differ in spelling only" for many in same.values() if len(many) > 1]
    found += [f"arXiv:{id_} is no arXiv id" for id_ in CITED.findall(text) if not ARXIV_ID.fullmatch(id_.rstrip("."))]
    return found


def _plain(link: str) -> str:
    """Return an address without what may differ where the page is the same."""
    parts = urlsplit(link)
    host, path = (
        parts.netloc.lower().removeprefix("www."),
        parts.path.rstrip("/").removesuffix(".git").removesuffix("/index.html"),
    )
    if host == "arxiv.org":
        path = re.sub(r"v\d+$", "", path.removesuffix(".pdf").replace("/pdf/", "/abs/"))
    return f"{host}{path.lower()}?{parts.query}#{parts.fragment}"
