"""Links that leave the site: their form is checked at every build, whether they answer where there is a network."""

from __future__ import annotations

import re
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal, NamedTuple
from urllib.parse import urlsplit

from docs.make.links import pages_of

ARXIV = re.compile(r"/(abs|pdf)/(\d{4}\.\d{4,5}(v\d+)?|[a-z-]+(\.[A-Z]{2})?/\d{7})")
DOI = re.compile(r"/10\.\d{4,9}/\S+")
CITED = re.compile(r"\barXiv:?\s*(\d[^\s,;()<]*|[a-z-]+/\d+)")
ARXIV_ID = re.compile(r"(\d{4}\.\d{4,5}(v\d+)?|[a-z-]+/\d{7})\.?")
SECONDS = 20.0
AGENT = "Mozilla/5.0 (compatible; banditlab's documentation, checking its links)"


def outside_links(folder: Path) -> dict[str, list[str]]:
    """Return every address outside that pages of a built site link to, and the pages."""
    found: dict[str, list[str]] = {}
    for file, page in pages_of(folder).items():
        for link in dict.fromkeys(page.links):
            if urlsplit(link).scheme or link.startswith("//"):
                found.setdefault(link, []).append(file.relative_to(folder).as_posix())
    return dict(sorted(found.items()))


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


class Answer(NamedTuple):
    """What became of asking for an address: "alive", "dead" (the server says so) or "silent" (nobody answers, or not to us)."""

    link: str
    state: Literal["alive", "dead", "silent"]
    said: str


def ask(link: str, seconds: float = SECONDS) -> Answer:
    """Ask for an address, by its head and, where a server refuses that, as a browser does."""
    said = ""
    for method in ("HEAD", "GET"):
        request = urllib.request.Request(link, method=method, headers={"User-Agent": AGENT})
        try:
            with urllib.request.urlopen(request, timeout=seconds) as answer:
                return Answer(link, "alive", f"{answer.status}" + (f", now {answer.url}" if answer.url != link else ""))
        except urllib.error.HTTPError as error:
            said = str(error.code)
            if method == "GET" and error.code in (404, 410):
                return Answer(link, "dead", said)
        except (OSError, ValueError) as error:
            return Answer(link, "silent", str(getattr(error, "reason", error)))
    return Answer(link, "silent", said)  # 403, 429, 5xx: a server that does not like programs


def check(links: Mapping[str, list[str]], seconds: float = SECONDS) -> tuple[list[str], int]:
    """Return a line for each address with what it answered, and an exit code: 1 if one is dead, 2 if nobody answers at all."""
    answers = [ask(link, seconds) for link in links if not link.startswith("mailto:")]
    lines = [f"{a.state:6} {a.link} ({a.said}), on {_some(links[a.link])}" for a in answers]
    if answers and all(a.state == "silent" for a in answers):
        return [
            *lines,
            f"none of {len(answers)} addresses answers: there is no network here, nothing is known of them",
        ], 2
    return lines, int(any(a.state == "dead" for a in answers))


def _some(pages: list[str]) -> str:
    return pages[0] if len(pages) == 1 else f"{pages[0]} and {len(pages) - 1} more pages"
