"""`python -m docs`: build the documentation site into build/site/html; warnings and dead links are errors."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from docs.make.finish import finish
from docs.make.links import dead_links
from docs.make.tree import BUILD, make_tree


def options() -> argparse.ArgumentParser:
    """Return the parser of the command."""
    parser = argparse.ArgumentParser(prog="python -m docs", description=__doc__)
    parser.add_argument("--out", type=Path, default=BUILD / "html", help="where the pages go (build/site/html)")
    parser.add_argument("--quick", action="store_true", help="only what changed; links to new pages may be missed")
    return parser


def main() -> int:
    """Make the source tree, run Sphinx over it, check the links of what came out; 0 if all is well."""
    given = options().parse_args()
    try:
        from sphinx.cmd.build import build_main
    except ModuleNotFoundError as error:
        print(f'docs: {error.name} is missing: pip install -e ".[docs]"', file=sys.stderr)
        return 2
    begin = time.perf_counter()
    tree = make_tree()
    # No jobs in parallel: two pages a process cost more than they save at this size.
    flags = ["-q", "-W", "--keep-going", "-b", "html", "-c", "docs", "-d", str(BUILD / "doctrees")]
    failed = build_main([*flags, *([] if given.quick else ["-E", "-a"]), str(tree), str(given.out)])
    finish(given.out)
    dead = dead_links(given.out)
    for line in dead:
        print(f"docs: {line}", file=sys.stderr)
    pages = len(list(given.out.rglob("*.html")))
    print(f"docs: {pages} pages in {given.out}, {len(dead)} dead links, {time.perf_counter() - begin:.0f} s")
    return 1 if failed or dead else 0


if __name__ == "__main__":
    sys.exit(main())
