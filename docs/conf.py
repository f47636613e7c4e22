"""How `python3 dev.py docs` builds the site: Sphinx, so that a link that leads nowhere ends the build, with MyST, so
that the pages are the Markdown that a forge shows too, and furo, light and dark. Nothing is asked of a network:
formulas are MathML, which browsers draw themselves.
"""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent)]

from stabkit.version import __version__  # noqa: E402  # the path above is what finds it

(HERE / "_build" / "extra").mkdir(parents=True, exist_ok=True)
project, author, version = "stabkit", "The stabkit founders", __version__
copyright = "the stabkit founders, MIT licence"
extensions = ["myst_parser", "sphinx.ext.autodoc", "generated", "mathml", "pages", "rooms"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_ext", "_build"]
myst_enable_extensions = ["dollarmath", "deflist", "colon_fence"]
myst_heading_anchors = 4
myst_fence_as_directive = {"math"}
suppress_warnings = ["misc.highlighting_failure"]
html_theme = "furo"
html_title = f"stabkit {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_extra_path = ["_build/extra"]  # the committed pages: `_ext/pages.py`
html_copy_source = False
html_show_sphinx = False
autodoc_typehints = "none"
add_module_names = False
nitpicky = False
