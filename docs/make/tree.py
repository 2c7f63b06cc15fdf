"""The source tree that Sphinx reads: the pages of docs as they are, and beside them those made at build time.

It lies in build/site/tree, where `docs` is a copy and everything else of the repository a link, so that the pages'
links to notebooks, specs and sources lead to them from there as well.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build" / "site"
BESIDE = ("agents", "analysis", "audits", "banditlab", "benchmarks", "envs", "runs", "tests", ".ci")
PAGES = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
"""Pages of the repository's own folder that are pages of the site, too."""


def make_tree(tree: Path = BUILD / "tree") -> Path:
    """Return the folder Sphinx reads, its files written where they differ from what is there."""
    from docs.make import algorithms, api, gallery

    docs = tree / "docs"
    wanted: dict[Path, bytes] = {}
    for file in sorted((ROOT / "docs").rglob("*")):
        inside = file.relative_to(ROOT / "docs")
        if file.is_file() and "__pycache__" not in inside.parts and inside.parts[0] not in ("make", "figures"):
            wanted[inside] = file.read_bytes()
    for name, page in PAGES.items():
        wanted[Path(page)] = _from_top((ROOT / name).read_text(encoding="utf-8")).encode()
    for made in (algorithms.pages(), api.pages(), gallery.pages()):
        wanted |= {Path(name): text.encode() for name, text in made.items()}
    for page, content in wanted.items():
        if page.suffix == ".md":
            wanted[page] = _to_pages(content.decode(), len(page.parts) - 1).encode()
    _write(docs, wanted)
    for name in (*BESIDE, "README.md", "CITATION.cff", "LICENSE", "pyproject.toml"):
        link = tree / name
        if (ROOT / name).exists() and not link.is_symlink():
            link.symlink_to(ROOT / name)
    return docs


def _from_top(text: str) -> str:
    """Return a page of the repository's own folder as one of docs: its links go from there."""
    text = re.sub(r"\]\(docs/", "](", text)
    return re.sub(
        r"\]\((?!https?:|#|/)(?=(?:\w+/|README)[^)]*\))(?!(?:results|theory|images)/|architecture)",
        "](../",
        text,
    )


def _to_pages(text: str, depth: int) -> str:
    """Return a page whose links to CONTRIBUTING.md and CHANGELOG.md lead to their pages of the site."""
    for name, page in PAGES.items():
        text = text.replace(f"]({'../' * (depth + 1)}{name}", f"]({'../' * depth}{page}")
    return text


def _write(folder: Path, wanted: dict[Path, bytes]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for file in [f for f in folder.rglob("*") if f.is_file() and f.relative_to(folder) not in wanted]:
        file.unlink()
    for inside, content in wanted.items():
        file = folder / inside
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.is_file() or file.read_bytes() != content:
            file.write_bytes(content)
    for empty in sorted((f for f in folder.rglob("*") if f.is_dir() and not any(f.iterdir())), reverse=True):
        shutil.rmtree(empty)
