"""Sphinx's settings for the site; `python -m docs` builds it, offline."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from banditlab import __version__

project = "banditlab"
author = "The banditlab developers"
copyright = author
version = release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.mathjax", "numpydoc", "docs.make.docstrings"]
autodoc_preserve_defaults = True
autosummary_generate = False
numpydoc_show_class_members = False
source_suffix = {".md": "markdown"}
exclude_patterns = ["make"]
root_doc = "index"

myst_enable_extensions = ["dollarmath", "amsmath", "deflist", "colon_fence", "attrs_inline"]
myst_heading_anchors = 3
myst_dmath_double_inline = True
# Pages written before there was a site may go from a title to a subheading of the second order.
suppress_warnings = ["myst.header"]
nitpicky = False
toc_object_entries = False

html_theme = "furo"
html_title = f"banditlab {__version__}"
# One file without fonts: a browser may refuse to load fonts for a page on a disk.
[mathjax] = importlib.import_module("sphinx-mathjax-offline").__path__
html_static_path = ["static", f"{mathjax}/static/mathjax/tex-svg.js"]
mathjax_path = "tex-svg.js"
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
# A summary of a result is fetched from its page, which a browser refuses where pages are files on a disk.
html_show_search_summary = False
html_permalinks_icon = "#"
html_theme_options = {"navigation_with_keys": True}
# Of accessible-pygments, which furo brings: their contrast is what the rules of accessibility ask for.
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"
