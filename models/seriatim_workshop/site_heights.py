"""Measure the pages of a built site in headless Chromium: at 1280 columns of pixels none is higher than 6,000.

`python -m seriatim_workshop.site_heights build/docs`, which `make docs` runs, and `.ci/run` for the report, too;
exit code 1 if one is higher or wider.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

WIDTH, HEIGHT = 1280, 6000
REGISTERS = ("spec/PROPERTIES.html", "properties.html")
"""Are looked up by id, and may be long."""


def measured(root: Path, chromium: str) -> dict[str, tuple[int, int]]:
    """Width and height in pixels of each page under `root`."""
    from playwright.sync_api import sync_playwright

    found = {}
    with sync_playwright() as started:
        browser = started.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(viewport={"width": WIDTH, "height": 800})
        for path in sorted(root.rglob("*.html")):
            if 'http-equiv="refresh"' in path.read_text(encoding="utf-8"):
                continue  # it leads to another at once
            page.goto(path.resolve().as_uri())
            size = page.evaluate(
                "[document.documentElement.scrollWidth, document.documentElement.scrollHeight]"
            )
            found[path.relative_to(root).as_posix()] = (size[0], size[1])
        browser.close()
    return found


def main() -> int:
    """Measure the folder named on the command line."""
    chromium = next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
    )
    if chromium is None:
        print("No chromium on this machine: the height of pages is not measured", file=sys.stderr)
        return 0
    sizes = measured(Path(sys.argv[1]), chromium)
    wrong = [
        f"{name}: {width} x {height} pixels"
        for name, (width, height) in sizes.items()
        if width > WIDTH or (height > HEIGHT and name not in REGISTERS)
    ]
    print(
        "\n".join(
            [*wrong, f"{len(sizes)} pages, {len(wrong)} of more than {WIDTH} x {HEIGHT} pixels"]
        )
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
