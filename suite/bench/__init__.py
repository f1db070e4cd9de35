"""Benchmarks: ratios between ours and baselines that were measured in the same run, interleaved.

Times of one machine say little elsewhere; ratios within a run say more, and each comes with the bytes that must move.
"""
