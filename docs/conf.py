"""The documentation site: `make docs` builds it, with warnings as errors and nothing from the network."""

import sys
from pathlib import Path

import manykernels

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

project = "manykernels"
author = "The manykernels developers"
copyright = f"2026, {author}"
release = version = manykernels.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "numpydoc",
    "sphinx_copybutton",
    "gallery",
    "offline",
    "plain_docstrings",
]
exclude_patterns = ["_build"]
nitpicky = True
smartquotes = False  # quotes and primes are part of code and formulas

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3  # so many levels of headings can be linked to: [words](page.md#heading)

autodoc_typehints = "none"
autodoc_member_order = "groupwise"
autodoc_default_options = {"members": True, "inherited-members": True}
numpydoc_show_class_members = False
add_module_names = False
python_use_unqualified_type_names = True
toc_object_entries_show_parents = "hide"

html_theme = "furo"
html_title = "manykernels"
pygments_dark_style = "github-dark"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
