"""Draw the gallery's figures: `python -m docs.make.figures [NAME ...]` runs the scripts of docs/figures.

Each script writes NAME.svg into the folder it runs in; here that is docs/images/gallery. docs/figures/matplotlibrc sets how
they look.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

SCRIPTS = Path(__file__).parents[1] / "figures"
IMAGES = Path(__file__).parents[1] / "images" / "gallery"


def draw(name: str, folder: Path) -> Path:
    """Run a script in an empty folder, move its figure into `folder`, and return the figure.

    Raises
    ------
    subprocess.CalledProcessError
        The script fails.
    """
    environment = os.environ | {"MATPLOTLIBRC": str(SCRIPTS), "MPLBACKEND": "svg", "SOURCE_DATE_EPOCH": "0"}
    with tempfile.TemporaryDirectory() as empty:
        command = [sys.executable, str(SCRIPTS / f"{name}.py")]
        subprocess.run(command, cwd=empty, env=environment, stdout=subprocess.DEVNULL, check=True)
        text = (Path(empty) / f"{name}.svg").read_text("utf-8")
    folder.mkdir(parents=True, exist_ok=True)
    figure = folder / f"{name}.svg"
    figure.write_text("\n".join(line.rstrip() for line in text.splitlines()) + "\n", encoding="utf-8")
    return figure


if __name__ == "__main__":
    for name in sys.argv[1:] or sorted(script.stem for script in SCRIPTS.glob("*.py")):
        print(draw(name, IMAGES))
