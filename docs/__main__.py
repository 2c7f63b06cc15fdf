"""`python -m docs`: build the documentation site into build/site/html; warnings and dead links are errors."""

from __future__ import annotations

import argparse
import contextlib
import functools
import sys
import time
import webbrowser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from docs.make.finish import finish
from docs.make.links import dead_links
from docs.make.tree import BUILD, make_tree


def options() -> argparse.ArgumentParser:
    """Return the parser of the command."""
    parser = argparse.ArgumentParser(prog="python -m docs", description=__doc__)
    parser.add_argument("--out", type=Path, default=BUILD / "html", help="where the pages go (build/site/html)")
    parser.add_argument("--quick", action="store_true", help="only what changed; links to new pages may be missed")
    parser.add_argument("--serve", action="store_true", help="then serve the site on this machine and open a browser")
    parser.add_argument("--port", type=int, default=8000, help="port for --serve; 0 takes a free one (8000)")
    return parser


def serve(folder: Path, port: int) -> int:
    """Serve a folder on 127.0.0.1 until Ctrl-C, and open it in a browser; 1 if the port is taken."""
    handler = functools.partial(SimpleHTTPRequestHandler, directory=str(folder))
    try:
        server = ThreadingHTTPServer(("127.0.0.1", port), handler)
    except OSError as error:
        print(f"docs: cannot serve on port {port}: {error.strerror}; choose another by --port", file=sys.stderr)
        return 1
    address = f"http://127.0.0.1:{server.server_address[1]}/"
    print(f"docs: serving {address}, Ctrl-C ends it", flush=True)
    webbrowser.open(address)
    with server, contextlib.suppress(KeyboardInterrupt):
        server.serve_forever()
    return 0


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
    if failed or dead:
        return 1
    return serve(given.out, given.port) if given.serve else 0


if __name__ == "__main__":
    sys.exit(main())
