"""Opens a page in headless Chromium at a given viewport, measures it and takes its picture.

Headless Chromium refuses windows narrower than about 500 pixels, so the page is shown in a frame of the wanted size,
to which its media queries answer as to a window. The frame may not look into a file:// page, so a script appended to
a copy of the page reports by message, and the outer page keeps what it said in an attribute for --dump-dom.
"""

import html
import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

CHROMIUM = shutil.which("chromium")
_FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --hide-scrollbars --virtual-time-budget=10000"
).split()

# An element may be wider than the page inside a box that scrolls by itself; anything else makes the page scroll. The
# page is measured as it opens, and with every folded part open and every figure enlarged.
_MEASURE = """
<script>
addEventListener("load", () => {
  const scrolls = e => ["auto", "scroll"].includes(getComputedStyle(e).overflowX);
  const contained = e => e.parentElement !== null && (scrolls(e.parentElement) || contained(e.parentElement));
  const wide = () => [...document.body.querySelectorAll("*")]
    .filter(e => e.getClientRects().length && !contained(e))
    .filter(e => e.getBoundingClientRect().right > innerWidth + 0.5 || e.getBoundingClientRect().left < -0.5)
    .map(e => e.tagName + "." + e.className);
  const fits = () => ({wide: wide(), scrollWidth: document.documentElement.scrollWidth});
  const unfold = open => {
    document.querySelectorAll("details").forEach(e => e.open = open);
    document.querySelectorAll("input[type=checkbox]").forEach(e => e.checked = open);
  };
  const images = [...document.images];
  const folded = fits();
  unfold(true);
  const unfolded = fits();
  unfold(false);
  parent.postMessage({
    innerWidth, folded, unfolded,
    images: images.length,
    broken: images.filter(i => !i.complete || i.naturalWidth === 0).map(i => i.alt),
    smallestText: Math.min(...[...document.querySelectorAll("p, td, th, li, figcaption, code")]
      .map(e => parseFloat(getComputedStyle(e).fontSize))),
    headings: [...document.querySelectorAll("h1, h2, h3")].map(e => e.textContent.trim()),
  }, "*");
});
</script>
"""
_FRAME = """<!doctype html>
<style>body {{ margin: 0 }} iframe {{ border: 0; display: block; width: {width}px; height: {height}px }}</style>
<body><iframe src="{page}"></iframe>
<script>addEventListener("message", e => document.body.dataset.measured = JSON.stringify(e.data));</script>
"""


@dataclass(frozen=True)
class Seen:
    """What the browser saw: measurements in CSS pixels, and the picture's file (width x height from the top left)."""

    measured: dict
    picture: Path


def look_at(page: Path, width: int, height: int, folder: Path) -> Seen:
    """Open a self-contained HTML file in a viewport of width x height CSS pixels; files go to `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    copy, frame, picture = folder / "page.html", folder / "frame.html", folder / "picture.png"
    copy.write_text(page.read_text(encoding="utf-8").replace("</body>", _MEASURE + "</body>"), encoding="utf-8")
    frame.write_text(_FRAME.format(page=copy.name, width=width, height=height), encoding="utf-8")
    window = [f"--window-size={max(width, 600)},{height}", f"--user-data-dir={folder / 'profile'}"]
    dom = _chromium([*window, "--dump-dom", frame.as_uri()])
    _chromium([*window, f"--screenshot={picture}", frame.as_uri()])
    found = re.search(r'data-measured="([^"]*)"', dom)
    assert found, f"the page did not report its measures: {dom[:300]}"
    return Seen(json.loads(html.unescape(found[1])), picture)


def _chromium(arguments: list[str]) -> str:
    done = subprocess.run([CHROMIUM, *_FLAGS, *arguments], capture_output=True, text=True, timeout=120, check=True)
    return done.stdout
