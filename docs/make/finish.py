"""Fix built pages for readers without a mouse or without sight: names of regions, heading levels, focus."""

from __future__ import annotations

from pathlib import Path

MENDED = {
    '<aside class="sidebar-drawer">': '<aside class="sidebar-drawer" aria-label="Pages">',
    '<aside class="toc-drawer': '<aside aria-label="On this page" class="toc-drawer',
    '<p class="caption" role="heading">': '<p class="caption" role="heading" aria-level="2">',
    "<pre>": '<pre tabindex="0">',
    '<div class="table-wrapper': '<div tabindex="0" class="table-wrapper',
}
"""Strings in a built page and their replacements; a fixed page contains none of the strings."""


def finish(folder: Path) -> None:
    """Fix every page of a built site; a second call changes nothing."""
    for page in sorted(folder.rglob("*.html")):
        text = page.read_text(encoding="utf-8")
        mended = text
        for old, new in MENDED.items():
            mended = mended.replace(old, new)
        if mended != text:
            page.write_text(mended, encoding="utf-8")
