"""`banditlab notebook`: write, execute and open a notebook."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

from banditlab.children import safe_start
from banditlab.distributions import refuse_without
from banditlab.errors import UsageError, nearest

NAMES = {"quickstart": "a sweep on the digits data, with its ranking and curves"}
SECONDS = 600
"""The time limit of a cell, in seconds."""


def make_notebook(name: str, folder: str | Path = ".") -> Path:
    """Run the notebook, write it with its outputs as NAME.ipynb to a folder, and return the file; overwrite no file.

    Raises
    ------
    UsageError
        The name is unknown, the file exists or cannot be written, an extra is missing, or a cell fails.
    """
    if name not in NAMES:
        raise UsageError(f"there is no notebook {name!r}{nearest(name, NAMES)}")
    file = Path(folder) / f"{name}.ipynb"
    if file.exists():
        raise UsageError(f"{file}: the file exists; nothing was written")
    if not file.parent.is_dir():
        raise UsageError(f"{file.parent}: the folder does not exist")
    refuse_without("notebook", "jupytext", "nbformat", "nbclient", "ipykernel")
    import jupytext
    import nbformat
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError

    text = files("banditlab.cli").joinpath("templates", f"{name}_notebook.py.txt").read_text(encoding="utf-8")
    book = jupytext.reads(text, fmt="py:percent")
    book.metadata["kernelspec"] = {"display_name": "Python 3", "language": "python", "name": "python3"}
    client = NotebookClient(book, timeout=SECONDS, resources={"metadata": {"path": str(file.parent.resolve())}})
    try:
        with safe_start():
            client.execute()
    except CellExecutionError as error:
        raise UsageError(f"{name}: a cell failed: {error.ename}: {error.evalue}") from error
    for cell in book.cells:  # without times of execution, which would change the file each time
        cell.metadata.pop("execution", None)
    fresh = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        with open(fresh, "x", encoding="utf-8") as made:  # do not follow an existing link
            made.write(nbformat.writes(book))
        os.replace(fresh, file)
    except OSError as error:
        raise UsageError(f"{file}: cannot be written ({error.strerror})") from error
    finally:
        fresh.unlink(missing_ok=True)
    return file


def open_file(file: Path) -> bool:
    """Open a notebook in JupyterLab, Notebook or the system's default program.

    Return whether one of them was found and ended without an error.
    """
    for server in ("jupyter-lab", "jupyter-notebook"):
        if shutil.which(server):
            return subprocess.run([server, str(file)], check=False).returncode == 0
    opener = {"darwin": "open", "win32": "start"}.get(sys.platform, "xdg-open")
    if not shutil.which(opener) or (opener == "xdg-open" and not os.environ.get("DISPLAY")):
        return False
    return subprocess.run([opener, str(file)], check=False).returncode == 0
