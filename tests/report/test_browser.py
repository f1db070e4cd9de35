"""The built report in a real browser, at a phone's and a desktop's width."""

import json

import pytest
from browser import CHROMIUM, look_at
from PIL import Image

from helpers import require

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module", params=[(360, 800), (1280, 900)], ids=["phone", "desktop"])
def seen(request, built, tmp_path_factory):
    require("chromium", CHROMIUM is not None, "chromium is not installed: apt-get install chromium")
    width, height = request.param
    return width, height, look_at(built / "report.html", width, height, tmp_path_factory.mktemp("browser"))


def test_page_fits_the_viewport(seen):
    width, _, page = seen
    assert page.measured["innerWidth"] == width  # or the browser did not show what this test is about
    for state in ("folded", "unfolded"):
        assert page.measured[state]["wide"] == []
        assert page.measured[state]["scrollWidth"] <= width


def test_nothing_is_missing(seen, built):
    _, _, page = seen
    captions = json.loads((built / "figures" / "captions.json").read_text())
    assert page.measured["broken"] == []
    assert page.measured["images"] == sum("missing" not in figure for figure in captions)
    for heading in ("Claims", "Figures", "Results", "Iteration times", "Environment", "How to rerun"):
        assert heading in page.measured["headings"]


def test_text_is_large_enough_to_read(seen):
    assert seen[2].measured["smallestText"] >= 11


def test_picture_is_not_blank(seen):
    width, height, page = seen
    picture = Image.open(page.picture).convert("RGB")
    assert picture.width >= width and picture.height >= height
    assert colours(picture.crop((0, 0, width, height))) > 50
    # Something is written in every quarter of the screen, not in one corner only.
    for top in range(0, height, height // 4):
        assert colours(picture.crop((0, top, width, top + height // 4))) > 5


def colours(picture) -> int:
    return len(picture.getcolors(picture.width * picture.height))
