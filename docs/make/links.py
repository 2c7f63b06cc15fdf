"""Check built pages: local links must lead to an existing file and anchor, and no page may load from other sites."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADS = {("script", "src"), ("img", "src"), ("iframe", "src"), ("source", "src"), ("object", "data")}
"""Elements whose target a browser loads by itself; so are `link` elements, except those with rel = canonical and the like."""
FETCHED = {"stylesheet", "preload", "icon", "shortcut icon", "manifest", "preconnect", "dns-prefetch"}


class Page(HTMLParser):
    """The ids of a page, where its links lead, and what it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.ids |= {found[name] for name in ("id", "name") if name in found}
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        if tag == "link" and found.get("rel", "") in FETCHED:
            self.loads.append(found.get("href", ""))
        self.loads += [value for name, value in found.items() if (tag, name) in LOADS]


def pages_of(folder: Path) -> dict[Path, Page]:
    """Return every page of a built site, read."""
    return {file: Page(file.read_text(encoding="utf-8")) for file in sorted(folder.rglob("*.html"))}


def dead_links(folder: Path) -> list[str]:
    """Return a line for each local link or file that does not exist, and for each that is loaded from another site.

    The anchor in a page that a link names (#fragment) must exist, too.
    """
    pages = pages_of(folder)
    found = []
    for file, page in pages.items():
        where = file.relative_to(folder).as_posix()
        for link in page.loads:
            if urlsplit(link).scheme in ("http", "https") or link.startswith("//"):
                found.append(f"{where} loads {link} from outside")
        for link in [*page.links, *page.loads]:
            if not _leads(file, link, pages):
                found.append(f"{where}: {link} leads nowhere")
    return found


def _leads(file: Path, link: str, pages: dict[Path, Page]) -> bool:
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return True  # an address outside cannot be asked for here
    target = (file.parent / unquote(parts.path)).resolve() if parts.path else file.resolve()
    if target.is_dir():
        target = target / "index.html"
    if not target.is_file():
        return False
    page = pages.get(target)
    return page is None or not parts.fragment or unquote(parts.fragment) in page.ids
