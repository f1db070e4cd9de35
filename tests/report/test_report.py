"""The report as a document: complete, self-contained, and honest about what is not there."""

import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pytest

from suite.errors import ConfigError
from suite.report import build_report
from suite.report.build import _LARGEST_SVG
from suite.speed.published import arithmetic, findings, largest_gain, read_published
from suite.words import amount_of_bytes

REPLICATIONS = Path(__file__).resolve().parents[2] / "replications"


class Page(HTMLParser):
    """Ids, references and text of a page."""

    def __init__(self, path):
        super().__init__()
        self.ids, self.tags, self.references, self.words, self.sections = [], set(), [], [], []
        self.feed(path.read_text(encoding="utf-8"))
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.tags.add(tag)
        self.ids += [found["id"]] if "id" in found else []
        self.sections += [found["id"]] if tag == "section" else []
        self.references += [value for name, value in attributes if name in ("src", "href", "srcset", "data", "poster")]

    def handle_data(self, data):
        self.words.append(data)


@pytest.fixture(scope="module")
def page(built):
    return Page(built / "report.html")


@pytest.fixture
def copy(built, tmp_path):
    """A copy of the profile that a test may damage."""
    return Path(shutil.copytree(built, tmp_path / "laptop"))


def test_sections_come_in_order(page):
    assert page.sections == [
        "claims", "figures", "cells", "results", "methods", "assumption", "times", "runs", "environment", "rerun",
        "missing",
    ]  # fmt: skip


def test_without_published_models_there_is_no_word_of_them(copy):
    for name in ("iteration_times", "predicted", "crossings", "emulated"):
        path = copy / "tables" / f"{name}.csv"
        path.write_text(path.read_text().partition("\n")[0] + "\n")
    text = build_report(copy, REPLICATIONS).read_text()
    sections = Page(copy / "report.html").sections
    assert "times" not in sections and "methods" in sections and "authors' phase times" not in text


def test_all_claims_figures_and_runs_are_there(page, built):
    for claim in json.loads((built / "claims.json").read_text())["claims"]:
        assert f"claim-{claim['id']}" in page.ids
        assert claim["text"] in page.text and claim["reason"] in page.text and claim["scope"] in page.text
        for check in claim["checks"]:
            assert all(check[key] in page.text for key in ("name", "expected", "required"))
    for figure in json.loads((built / "figures" / "captions.json").read_text()):
        assert f"figure-{figure['name']}" in page.ids
        assert all(line in page.text for line in figure["caption"].splitlines())
    assert all(f"run-{run}" in page.ids for run in pd.read_csv(built / "tables" / "runs.csv").run_id)


def test_page_needs_nothing_else(page, built):
    source = (built / "report.html").read_text(encoding="utf-8")
    assert all(reference.startswith(("#", "data:image/")) for reference in page.references)
    assert not page.tags & {"script", "link", "iframe", "object", "embed"}
    assert not re.search(r"url\(|@import", source)
    assert len(source) < 8e6


def test_every_anchor_has_its_target(page):
    assert {reference[1:] for reference in page.references if reference.startswith("#")} <= set(page.ids)
    assert len(page.ids) == len(set(page.ids))


def test_overview_says_what_ran_where(page):
    for words in (
        "62 training runs of 11 experiments",
        "9 runs with 16 workers on 4 processes over Horovod",
        "Example CPU @ 2.4 GHz",
        "torch 2.14.1",
        "commit 0123456789abcdef0123",
    ):
        assert words in page.text


def test_results_say_in_words_where_dense_wins(page):
    assert re.search(r"Dense wins on test accuracy: 98\.\d\d% against SLGS-SGD", page.text)
    assert re.search(r"Dense wins on time: \d+ s a run against", page.text)
    assert "80% of dense" in page.text and "16% of dense" in page.text


def test_statistics_stand_beside_the_values(page):
    assert "interval −0.6 to 0.4, by bootstrap −0.6 to 0.4; p < 0.001" in page.text
    assert "interval 99.2 to 99.9, by bootstrap 99.2 to 99.9; beyond the bound, p < 0.001" in page.text
    assert "Equivalence within 0.3 on both sides: not shown (p = 0.02 and = 0.2)." in page.text
    assert "with a probability of 80%: 17 seeds with mean and spread as they are, more than 1,000 seeds" in page.text


def test_delta_is_listed_by_kind_of_layer(page, built):
    table = pd.read_csv(built / "tables" / "delta_by_kind.csv")
    own = table[
        (table.experiment == "digits") & (table.method == "lags") & (table.kind == "normalisation") & table.k_is_one
    ]
    assert f"normalisation, k = 1 26 16 to 32 {own.points.sum():,} {own.above_one.sum():,}".replace(",", "") in (
        page.text.replace(",", "")
    )


def test_runs_without_a_score_are_not_compared_by_it(built):
    part = re.search(r"<h3>Overlap on random images</h3>(.*?)</table>", (built / "report.html").read_text(), re.DOTALL)
    assert part.group(1).count(">–</td>") == 2 and "nan" not in part.group(1)


def test_what_methods_cost_is_listed_as_measured(built):
    source = (built / "report.html").read_text(encoding="utf-8")
    part = source[source.index('<section id="methods">') :].partition("</section>")[0]
    table = part.partition("<h3>Five methods on digits</h3>")[2].partition("<h3>")[0]
    rows = {
        cells[0]: cells[1:]
        for row in re.findall(r"<tr>(<th scope.*?)</tr>", table, re.DOTALL)
        if (cells := re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row))
    }
    runs = pd.read_csv(built / "tables" / "runs.csv")
    own = runs[(runs.experiment == "field") & (runs.method == "local_sgda")]
    assert set(rows) == set(runs[runs.experiment == "field"].label)
    local, tree = rows["Local SGDA"], rows["gTop-k S-SGD"]
    assert local[1:3] == ["all-gather", "yes"] and tree[1:3] == ["binomial tree", "no"]
    assert local[3] == amount_of_bytes((own.bytes_sent / own.iterations).mean()) and local[4:6] == ["160", "40"]
    assert local[6:8] == [amount_of_bytes(own.own_bytes.mean()), "parameters"] and rows["Dense S-SGD"][6] == "0 B"
    assert tree[8:] == ["–", "–"] and "–" not in local[8:]
    assert "gTop-k S-SGD on 1 GbE and 10 GbE: trees are not timed here." in table


def test_runs_of_earlier_versions_show_dashes(copy):
    path = copy / "tables" / "runs.csv"
    unknown = ["collective", "all_reduce", "own_bytes", "own_parts"]
    pd.read_csv(path).assign(**dict.fromkeys(unknown)).to_csv(path, index=False)
    (copy / "tables" / "run_times.csv").unlink()
    part = (
        build_report(copy, REPLICATIONS).read_text().partition('<section id="methods">')[2].partition("</section>")[0]
    )
    assert "<td>–</td><td>–</td>" in part and "nan" not in part and "GbE" not in part


def test_two_builds_are_equal(copy):
    first = (copy / "report.html").read_bytes()
    assert build_report(copy, REPLICATIONS).read_bytes() == first


def test_day_of_training_comes_from_the_runs(copy):
    folder = next(copy.glob("runs/*/*/*"))
    (folder / "epochs.csv").write_text("epoch,timestamp\n1,1769860800\n2,1769947300\n")
    assert "Trained from 2026-01-31 to 2026-02-01." in Page(build_report(copy, REPLICATIONS)).text


def test_missing_figures_are_listed_with_reasons(copy):
    captions = json.loads((copy / "figures" / "captions.json").read_text())
    captions[-1] = {"name": captions[-1]["name"], "title": "Phases", "missing": "no run on more than one process"}
    (copy / "figures" / "captions.json").write_text(json.dumps(captions))
    page = Page(build_report(copy, REPLICATIONS))
    assert "Figure “Phases”: no run on more than one process." in page.text
    assert f"figure-{captions[-1]['name']}" not in page.ids


def test_large_svg_gives_way_to_png(copy):
    svg = copy / "figures" / "curves.svg"
    svg.write_text(svg.read_text() + f"<!--{'x' * _LARGEST_SVG}-->")
    page = Page(build_report(copy, REPLICATIONS))
    assert sum(reference.startswith("data:image/png") for reference in page.references) == 1


def test_text_is_escaped(copy):
    claims = json.loads((copy / "claims.json").read_text())
    claims["claims"][0]["text"] = "<script>alert(1)</script> & so on"
    (copy / "claims.json").write_text(json.dumps(claims))
    page = Page(build_report(copy, REPLICATIONS))
    assert "script" not in page.tags and "<script>alert(1)</script> & so on" in page.text


def test_without_published_phases_one_sentence_stands_in(copy, tmp_path):
    text = Page(build_report(copy, tmp_path)).text
    assert "phase times are left out" in text and "The authors' phase times:" not in text


@pytest.mark.parametrize("damage", [
    lambda results: (results / "claims.json").unlink(),
    lambda results: (results / "claims.json").write_text("{"),
    lambda results: (results / "tables" / "runs.csv").write_text("run,seed\n"),
    lambda results: (results / "tables" / "runs.csv").write_bytes(b""),
    lambda results: (results / "tables" / "crossings.csv").unlink(),
    lambda results: (results / "figures" / "captions.json").unlink(),
    lambda results: [path.unlink() for path in (results / "figures").glob("curves.*")],
])  # fmt: skip
def test_unusable_results_are_refused_in_one_sentence(copy, damage):
    before = (copy / "report.html").read_bytes()
    damage(copy)
    with pytest.raises(ConfigError) as error:
        build_report(copy, REPLICATIONS)
    assert "\n" not in str(error.value)
    assert (copy / "report.html").read_bytes() == before
    assert not list(copy.glob(".report*"))


def test_arithmetic_of_the_published_times():
    published = read_published(REPLICATIONS / "lags2019" / "published.yaml")
    rows = {row.model: row for row in arithmetic(published)}
    resnet = rows["ResNet-50"]
    assert resnet.slgs_over_lags == pytest.approx(1.314, abs=5e-4)
    assert resnet.bound_selection == pytest.approx(1.527, abs=5e-4)
    assert resnet.bound_exchange == pytest.approx(1.294, abs=5e-4)
    assert rows["Inception-v4"].bound_exchange == pytest.approx(1.623, abs=5e-4)
    assert rows["LSTM-PTB"].bound_exchange == pytest.approx(1.255, abs=5e-4)
    assert rows["VGG-16"].dense is None
    # Each published total is the sum of its phases, to the rounding of its last digit.
    for row in rows.values():
        for times in (row.times.slgs, row.times.lags):
            assert row.times.forward + row.times.backward + times.selection + times.exchange == pytest.approx(
                times.total, abs=1.1e-3
            )
    said = " ".join(findings(published, list(rows.values())))
    assert "With the exchange time as communication, S_max gives none" in said
    assert "ResNet-50 (1.314 measured, 1.294 at most)" in said


def test_largest_gain_is_two_when_computation_hides_all_and_forward_is_free():
    assert largest_gain(1e-12, 0.5, 0.5) == pytest.approx(2)
