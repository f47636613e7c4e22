"""A picture of the upper part of a page, as README shows it; needs the system's Chromium.

python -m benchmarks.screenshot reports/case-456.html docs/own_page.png 1000 700
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright


def main(page: str, picture: str, width: str, height: str) -> int:
    chromium = next(
        (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
    )
    if chromium is None:
        sys.stderr.write("no Chromium is installed here\n")
        return 1
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium)
        opened = browser.new_page(viewport={"width": int(width), "height": int(height)}, color_scheme="light")
        opened.goto(Path(page).absolute().as_uri())
        opened.screenshot(path=picture)
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
