"""Summaries of the runs table: one row an experiment and method, and in words how dense compares."""

from dataclasses import dataclass
from typing import Any

import pandas as pd

from suite.words import amount_of_bytes, listing, metric_name, metric_value


@dataclass(frozen=True)
class Result:
    """One method of an experiment over its seeds.

    Attributes:
        metric: name of the test metric; `final` and `spread` are its mean and standard deviation over seeds
            (spread is NaN for one seed), `lowest` and `highest` its range; all NaN where it means nothing.
        bytes_sent: bytes one worker sent in a run, mean over seeds.
        seconds: wall seconds of training, mean over seeds.
    """

    label: str
    method: str
    method_name: str
    note: str
    metric: str
    seeds: int
    final: float
    spread: float
    lowest: float
    highest: float
    bytes_sent: float
    seconds: float
    processes: int

    @property
    def final_text(self) -> str:
        """Mean, and spread where there is one, with unit."""
        if pd.isna(self.spread):
            return metric_value(self.metric, self.final)
        return f"{metric_value(self.metric, self.final)} ± {metric_value(self.metric, self.spread)}"

    def beats(self, other: "Result") -> bool:
        """Whether this method's mean is the better one."""
        ahead = self.final - other.final
        return ahead > 0 if self.metric.endswith("accuracy") else ahead < 0

    def overlaps(self, other: "Result") -> bool:
        """Whether the seeds of the two methods reach into each other's range."""
        return bool(self.lowest <= other.highest and other.lowest <= self.highest)


def results_of(runs: pd.DataFrame) -> list[Result]:
    """The methods of one experiment, in the table's order."""
    return [_result(of) for _, of in runs.groupby("method", sort=False)]


def _result(runs: pd.DataFrame) -> Result:
    first = runs.iloc[0]
    sparse = not pd.isna(first.density)
    note = f"density {first.density:g}" if sparse else ""
    if sparse and not first.error_feedback:
        note += ", no residual"
    return Result(
        label=first.label, method=first.method, method_name=first.method_name, note=note, metric=first.metric,
        seeds=runs.seed.nunique(), final=runs.final.mean(), spread=runs.final.std(), lowest=runs.final.min(),
        highest=runs.final.max(), bytes_sent=runs.bytes_sent.mean(), seconds=runs.seconds.mean(),
        processes=int(first.processes),
    )  # fmt: skip


def delta_rows(table: pd.DataFrame) -> list[dict[str, Any]]:
    """delta_by_kind.csv over seeds: counts are sums, quantiles means over the seeds' own, the maximum that of all."""
    sums = ("points", "above_one", "opposed", "overshoot", "short")
    how = dict.fromkeys(sums, "sum") | dict.fromkeys(("delta_median", "delta_q05", "delta_q95"), "mean")
    how |= {"delta_max": "max", "segments": "first", "smallest_d": "min", "largest_d": "max"}
    return table.groupby(["title", "method", "kind", "k_is_one"], sort=False).agg(how).reset_index().to_dict("records")


def dense_in_words(results: list[Result]) -> list[str]:
    """Where dense wins an experiment and where it does not: test metric, time, bytes; empty without a dense run.

    Runs without a test metric were made to look at single iterations: what they took in all says nothing either.
    """
    dense = next((result for result in results if result.method_name == "dense"), None)
    others = [result for result in results if result.method_name != "dense"]
    if dense is None or not others:
        return []
    if pd.isna(dense.final):
        return [_bytes_sentence(dense, others)]
    return [_metric_sentence(dense, others), _time_sentence(dense, others), _bytes_sentence(dense, others)]


def _named(result: Result, text: str) -> str:
    return f"{result.label} ({', '.join(filter(None, (result.note, text)))})"


def _metric_sentence(dense: Result, others: list[Result]) -> str:
    name = metric_name(dense.metric)

    def values(of: list[Result]) -> str:
        marks = {True: ", seeds overlap", False: ""}
        return listing(
            _named(other, metric_value(other.metric, other.final) + marks[dense.overlaps(other)]) for other in of
        )

    behind = [other for other in others if dense.beats(other)]
    level = [other for other in others if not dense.beats(other)]
    own = metric_value(dense.metric, dense.final)
    if behind and level:
        return f"On {name} dense ({own}) beats {values(behind)} but not {values(level)}."
    return (
        f"Dense wins on {name}: {own} against {values(behind)}."
        if behind
        else (f"Dense does not win on {name}: {own} against {values(level)}.")
    )


def _time_sentence(dense: Result, others: list[Result]) -> str:
    faster = [other for other in others if dense.seconds < other.seconds]
    if not faster:
        times = listing(_named(other, f"{other.seconds:.0f} s") for other in others)
        return f"Dense does not win on time: {dense.seconds:.0f} s a run against {times}."
    why = (
        "in one process nothing is sent, so selecting and measuring only cost time"
        if dense.processes == 1
        else "the figure of the iteration's phases shows where the time goes"
    )
    times = listing(_named(other, f"{other.seconds:.0f} s") for other in faster)
    return f"Dense wins on time: {dense.seconds:.0f} s a run against {times}; {why}."


def _bytes_sentence(dense: Result, others: list[Result]) -> str:
    won = [other for other in others if dense.bytes_sent < other.bytes_sent]
    sent = listing(
        _named(other, f"{amount_of_bytes(other.bytes_sent)}, {100 * other.bytes_sent / dense.bytes_sent:.3g}% of dense")
        for other in won or others
    )
    return (
        f"Dense {'wins' if won else 'does not win'} on bytes: one worker sent {amount_of_bytes(dense.bytes_sent)} "
        f"against {sent}."
    )
