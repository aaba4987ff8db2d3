"""How Sphinx builds the documentation: `make docs`. The repository itself is the source, so links hold in both."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.transforms import SphinxTransform

ROOT = Path(__file__).resolve().parents[2]
_PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

project = "seriatim"
author = "the seriatim contributors"
copyright = author
version = release = _PROJECT["version"]

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_copybutton"]
root_doc = "spec/guide/index"
include_patterns = ["README.md", ".github/CONTRIBUTING.md", "spec/**.md", "tests/README.md"]
exclude_patterns = [".venv", "build", "dist", ".git", "models", "reference", "tests/[a-z]*"]
suppress_warnings = [
    "myst.header",  # a page may begin a chapter with a smaller heading
    "misc.highlighting_failure",  # an excerpt with "..." is no Python
    "toc.not_included",  # a page may be reached by links alone
    "ref.python",  # a class is found where it is defined and where the package offers it
]
nitpicky = False

myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]

default_role = "code"  # docstrings write names as Markdown does, in single backticks
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_default_options = {"members": True, "show-inheritance": True}

html_theme = "furo"
html_title = f"seriatim {version}"
html_copy_source = False
html_use_index = False

LONG = 9_000
"""A page with more characters shows its sections folded, and outside of them its tables and lists of many rows."""
BEGINNING = 4_500
"""Characters at the beginning of a page that are never folded."""
SHORT = 400
"""A section with fewer characters is not worth a fold."""
ROWS = 12
OPEN = """
function show() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  for (const folded of target.querySelectorAll(":scope > details")) folded.open = true;
  for (let at = target; at; at = at.parentElement) if (at.tagName == "DETAILS") at.open = true;
  target.scrollIntoView();
}
addEventListener("hashchange", show);
addEventListener("DOMContentLoaded", show);
"""
"""A link into a part that is folded opens it."""


class Directories(SphinxTransform):
    """A link to a folder of the repository has no page: its text stays, as code."""

    default_priority = 1  # before links are resolved

    def apply(self, **kwargs: Any) -> None:
        """Replace them."""
        here = ROOT / Path(self.env.docname).parent
        links = [*self.document.findall(nodes.reference), *self.document.findall(pending_xref)]
        for link in links:
            target = link.get("refuri") or link.get("reftarget", "")
            if target and "://" not in target and (here / target).is_dir():
                link.replace_self(link.children)


def _fold(app: Any, document: nodes.document, name: str) -> None:
    """Fold the parts of a page that is long, so that its sections are seen at once; not its beginning."""
    if app.builder.format != "html" or len(document.astext()) < LONG:
        return
    for page in document.children:
        if isinstance(page, nodes.section):
            parts, read = [], 0
            for part in page[1:]:
                read += len(part.astext())
                parts += [part] if read < BEGINNING else _parts(part)
            page[1:] = parts


def _parts(part: nodes.Node) -> list[nodes.Node]:
    if isinstance(part, nodes.section) and len(part.astext()) > SHORT:
        part[1:] = _folded(part[1:])
    elif len([*part.findall(nodes.row), *part.findall(nodes.list_item)]) > ROWS:
        return _folded([part])
    return [part]


def _folded(parts: list[nodes.Node]) -> list[nodes.Node]:
    lines = sum(len(part.astext()) for part in parts) // 100 + 1
    show = f"<details><summary>Show (some {lines} lines)</summary>"
    return [nodes.raw("", show, format="html"), *parts, nodes.raw("", "</details>", format="html")]


def _from_markdown(
    app: Any, what: str, name: str, obj: object, options: Any, lines: list[str]
) -> None:
    """Write a docstring, which has the blocks of Markdown, with those of reStructuredText, in place.

    Headings; code between fences or, after an empty line, indented; lists right below a sentence; hanging indents.
    """
    fenced = indented = False
    out: list[str] = [""]
    for line in lines:
        if line.strip().startswith("```"):
            fenced = not fenced
            out += ["", f".. code-block:: {line.strip()[3:] or 'text'}", ""] if fenced else [""]
            continue
        if fenced:
            out.append("    " + line)
            continue
        inside = line.startswith("    ")
        if what == "module" and inside and not indented and not out[-1].strip():
            out += ["", ".. code-block:: text", ""]
            indented = True
        elif line.strip() and not inside:
            indented = False
        if what == "module" and inside and not indented:
            line = line.strip()  # goes on with the paragraph above
        if rule := re.match(r"(Rule \d+ \(.*?\)\.) +(.*)", line):
            out.append("")
            line = f"**{rule[1]}** {rule[2]}"
        if re.fullmatch(r"-{3,}", line) and out[-1].strip():
            out[-1:] = [f".. rubric:: {out[-1]}", ""]
            continue
        item = re.match(r"(\d+\.|-) ", line)
        if item and out[-1].strip() and not re.match(r"(\d+\.|-| ) ?", out[-1]):
            out.append("")
        out.append(line)
    lines[:] = out


def _front_door(app: Any, failed: Exception | None) -> None:
    """A page at the top, which leads to the guide."""
    if failed is None and app.builder.name == "html":
        target = f"{root_doc}.html"
        (Path(app.outdir) / "index.html").write_text(
            f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{project}</title>'
            f'<meta http-equiv="refresh" content="0; url={target}"><a href="{target}">{project}</a></html>\n',
            encoding="utf-8",
        )


def setup(app: Any) -> None:
    """What Sphinx calls."""
    app.add_transform(Directories)
    app.connect("autodoc-process-docstring", _from_markdown)
    app.connect("doctree-resolved", _fold)
    app.add_js_file(None, body=OPEN)
    app.connect("build-finished", _front_door)
