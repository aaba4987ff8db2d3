"""Check the links of a built site: every address within it leads to a file, and every fragment to an element.

`python -m seriatim_workshop.site_links build/docs`, which `make docs` runs; exit code 1 if a link leads nowhere.
"""

from __future__ import annotations

import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class _Page(HTMLParser):
    """The addresses that a page names, and the elements that a fragment may name."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.ids: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect them."""
        for name, value in attrs:
            if value is None:
                continue
            if name == "id" or (name == "name" and tag == "a"):
                self.ids.add(value)
            elif name in ("href", "src"):
                self.addresses.append(value)


@cache
def _read(path: Path) -> _Page:
    page = _Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def broken(root: Path) -> list[str]:
    """A line for each link of the HTML files under `root` that leads nowhere; those of other sites are not asked."""
    found = []
    for path in sorted(root.rglob("*.html")):
        for address in _read(path).addresses:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            target = path if not parts.path else path.parent / unquote(parts.path)
            if target.is_dir():
                target /= "index.html"
            if not target.is_file():
                why = "there is no such file"
            elif (
                parts.fragment
                and target.suffix == ".html"
                and unquote(parts.fragment) not in _read(target).ids
            ):
                why = "there is no such element"
            else:
                continue
            found.append(f"{path.relative_to(root)}: {address}: {why}")
    return found


def main() -> int:
    """Check the folder named on the command line."""
    root = Path(sys.argv[1])
    pages = len([*root.rglob("*.html")])
    if not pages:
        print(f"{root}: there are no pages", file=sys.stderr)
        return 2
    wrong = broken(root)
    print("\n".join([*wrong, f"{root / 'index.html'}: {pages} pages, {len(wrong)} broken links"]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
