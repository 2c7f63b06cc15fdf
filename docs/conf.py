"""Sphinx's settings for the site; `python -m docs` builds it, offline."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from banditlab import __version__

project = "banditlab"
author = "The banditlab developers"
copyright = author
version = release = __version__
extensions = ["myst_parser", "docs.make.mathml"]
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
html_static_path = ["static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_copy_source = False
html_show_sphinx = False
html_permalinks_icon = "#"
html_theme_options = {"navigation_with_keys": True}
pygments_style = "friendly"
pygments_dark_style = "native"
