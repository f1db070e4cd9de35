"""Timelines as pictures."""

import pytest
from matplotlib.figure import Figure
from PIL import Image

from suite.errors import ConfigError
from suite.timeline import Event, Timeline
from suite.timeline.draw import PHASE_COLOURS, caption, draw_lanes, draw_timelines

TIMELINE = Timeline(
    (Event("forward", "", 0, 0.01), Event("backward", "", 0.01, 0.03), Event("exchange", "a", 0.02, 0.04))
)


def test_a_panel_a_timeline(tmp_path):
    for name, count in (("one", 1), ("two", 2)):
        draw_timelines(tmp_path / f"{name}.png", {f"plan {i}": TIMELINE for i in range(count)})
    one, two = (Image.open(tmp_path / f"{name}.png") for name in ("one", "two"))
    assert two.height > one.height and len(two.convert("RGB").getcolors(two.width * two.height)) > 20


def test_caption_tells_what_is_hidden():
    assert caption(TIMELINE) == "40.0 ms; 50% of 20.0 ms of exchange hidden"


def test_every_phase_has_a_colour_and_its_lane():
    axes = Figure().subplots()
    patches = draw_lanes(axes, [Event(phase, "", 0, 1) for phase in PHASE_COLOURS])
    assert [patch.get_label() for patch in patches] == list(PHASE_COLOURS)
    assert [label.get_text() for label in axes.get_yticklabels()] == ["computation", "network"]


@pytest.mark.parametrize("place", ["figure.xyz", "nowhere/figure.png"])
def test_a_place_that_cannot_be_written_is_refused(tmp_path, place):
    with pytest.raises(ConfigError, match="cannot be written"):
        draw_timelines(tmp_path / place, {"plan": TIMELINE})
