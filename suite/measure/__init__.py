"""Measuring without changing what is measured: phase times and the paper's assumption."""

from suite.measure.assumption import AssumptionMeter
from suite.measure.phases import PHASES, ArrivalWatch, PhaseClock

__all__ = ["PHASES", "ArrivalWatch", "AssumptionMeter", "PhaseClock"]
