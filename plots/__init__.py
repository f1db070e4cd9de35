"""Figures: one file a figure in plots/figures, drawn from the tidy tables in results/<profile>/tables.

`python -m plots --results results/<profile>` draws all of them. The tables are plain CSV; plots/tables.py says
what this room reads of them.
"""
