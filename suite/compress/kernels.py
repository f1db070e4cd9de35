"""Selection on a CPU in one pass over memory, compiled by numba.

Magnitudes are read as integers: clearing the sign bit of an IEEE float leaves its magnitude, and magnitudes order like
their bit patterns. That gives denormals, infinities and NaN (largest) a place, so what is not finite is found by the
selection itself.

The pass needs a threshold before it starts. It comes from a strided sample, a little below the k-th largest magnitude;
entries at or above it are candidates, and the exact choice is made among those few. A sample can mislead, to too few
candidates or far too many: then the threshold is found exactly first. Time depends on the sample, the result never.
"""

import numpy as np
from numba import njit

_MAGNITUDE = np.int32(0x7FFFFFFF)
INFINITY = np.int32(0x7F800000)  # bits of the smallest magnitude that is not finite
_BLOCK = 128  # entries whose largest magnitude is compared with the threshold at once
_SMALL = 512  # up to here the exact threshold costs less than a sample
_compiled = njit(cache=True, nogil=True)


def compile_all() -> None:
    """Compile what numba has not cached yet, so that no run has to; a run compiles by itself what it misses."""
    one, index = np.ones(1, np.float32), np.zeros(1, np.int32)
    accumulate(one, one, one, np.float32(1))
    select(one, 1, 0, False, index, one.copy())
    accumulate_select(one, one, one, np.float32(1), 1, 0, index, one.copy())


@_compiled
def accumulate(acc: np.ndarray, gradient: np.ndarray, residual: np.ndarray, scale: np.float32) -> np.int32:
    """acc = residual + scale * gradient, float32 [d]; a residual of length 0 stands for zeros.

    Returns:
        The largest magnitude in acc as bits; INFINITY or more tells of an entry that is not finite.
    """
    bits, largest = acc.view(np.int32), np.int32(0)
    for start in range(0, acc.size, _BLOCK):
        stop = start + _BLOCK
        _add(acc[start:stop], gradient[start:stop], residual[start:stop], scale)
        largest = max(largest, _largest(bits[start:stop]))
    return largest


@_compiled
def select(acc: np.ndarray, k: int, offset: int, clear: bool, indices: np.ndarray, values: np.ndarray) -> np.int32:
    """Write the k entries of largest magnitude, equal ones by lowest index, in ascending order of index.

    Args:
        acc: float32 [d]; with `clear` the chosen entries become 0.
        k: 1 <= k <= d.
        offset: added to the indices.
        indices: int32 [k], written.
        values: float32 [k], written.

    Returns:
        The largest magnitude in acc as bits.
    """
    bits = acc.view(np.int32)
    stride = _stride(acc.size, k)
    threshold = _likely_threshold(acc[::stride].copy().view(np.int32), acc.size, k)
    found, count = np.empty(_room(acc.size, k, threshold), np.int32), 0
    for start in range(0, acc.size, _BLOCK):
        count = _collect(bits[start : start + _BLOCK], start, threshold, found, count)
    return _choose(acc, bits, threshold, found, count, k, offset, clear, indices, values)


@_compiled
def accumulate_select(
    acc: np.ndarray,
    gradient: np.ndarray,
    residual: np.ndarray,
    scale: np.float32,
    k: int,
    offset: int,
    indices: np.ndarray,
    values: np.ndarray,
) -> np.int32:
    """`accumulate` and `select` with clearing in one pass: gradient and residual are read and acc is written once."""
    bits = acc.view(np.int32)
    stride = _stride(acc.size, k)
    sample = np.empty((acc.size + stride - 1) // stride, np.float32)
    for i in range(sample.size):
        sample[i] = scale * gradient[i * stride]
        if residual.size:
            sample[i] += residual[i * stride]
    threshold = _likely_threshold(sample.view(np.int32), acc.size, k)
    found, count = np.empty(_room(acc.size, k, threshold), np.int32), 0
    for start in range(0, acc.size, _BLOCK):
        stop = start + _BLOCK
        _add(acc[start:stop], gradient[start:stop], residual[start:stop], scale)
        count = _collect(bits[start:stop], start, threshold, found, count)
    return _choose(acc, bits, threshold, found, count, k, offset, True, indices, values)


# The loops below run over slices from 0 on and cast what numba would widen to 64 bits: that is what lets the compiler
# take eight entries at once.
@_compiled
def _add(acc, gradient, residual, scale):
    if residual.size == 0:
        for i in range(acc.size):
            acc[i] = scale * gradient[i]
    elif scale == np.float32(1):
        for i in range(acc.size):
            acc[i] = residual[i] + gradient[i]
    else:
        for i in range(acc.size):
            acc[i] = residual[i] + scale * gradient[i]


@_compiled
def _largest(bits):
    largest = np.int32(0)
    for i in range(bits.size):
        magnitude = np.int32(bits[i] & _MAGNITUDE)
        if magnitude > largest:
            largest = magnitude
    return largest


@_compiled
def _stride(d, k):
    """Every how many entries one is sampled: at least 64 of the k should be seen, and one in 256 is plenty."""
    return 1 if d <= _SMALL else min(max(k // 64, 16), 256)


@_compiled
def _likely_threshold(sample, d, k):
    """A magnitude that about k + 4 standard deviations of d entries reach, judging by a sample, at least 1."""
    for i in range(sample.size):
        sample[i] &= _MAGNITUDE
    expected = k * sample.size / d
    rank = k if sample.size == d else int(expected + 4 * np.sqrt(expected) + 4)
    if rank >= sample.size:
        return np.int32(1)
    return max(_kth_largest(sample, rank)[0], np.int32(1))


@_compiled
def _room(d, k, threshold):
    """Candidates to make room for: several times what a good sample leads to, unless every entry may be one."""
    return d if threshold == 1 else min(d, 4 * k + 2048)


@_compiled
def _collect(bits, start, threshold, found, count):
    """Append the block's indices at or above the threshold; -1 once there is no more room."""
    if count < 0 or _largest(bits) < threshold:
        return count
    if count + bits.size > found.size:
        reaching = 0
        for i in range(bits.size):
            reaching += np.int32(bits[i] & _MAGNITUDE) >= threshold
        if count + reaching > found.size:
            return -1
    for i in range(bits.size):
        if np.int32(bits[i] & _MAGNITUDE) >= threshold:
            found[count] = start + i
            count += 1
    return count


@_compiled
def _choose(acc, bits, threshold, found, count, k, offset, clear, indices, values):
    """The exact choice among the candidates, or among all entries where the candidates cannot hold it."""
    if threshold == 1 and 0 <= count < k:
        # Every entry that is not zero is sent, and the first zeros fill up.
        largest, n, at = np.int32(0), 0, 0
        for i in range(acc.size):
            candidate = at < count and found[at] == i
            if not candidate and n - at == k - count:
                break
            if candidate:
                largest = max(largest, np.int32(bits[i] & _MAGNITUDE))
                at += 1
            n = _take(acc, i, offset, clear, indices, values, n)
        for j in range(at, count):
            largest = max(largest, np.int32(bits[found[j]] & _MAGNITUDE))
            n = _take(acc, found[j], offset, clear, indices, values, n)
        return largest
    everything = count < k
    total = acc.size if everything else count
    magnitudes = np.empty(total, np.int32)
    for j in range(total):
        magnitudes[j] = bits[j if everything else found[j]] & _MAGNITUDE
    largest = _largest(magnitudes)
    threshold, equal = _kth_largest(magnitudes, k)
    n = 0
    for j in range(total):
        i = j if everything else found[j]
        magnitude = np.int32(bits[i] & _MAGNITUDE)
        if magnitude > threshold or (magnitude == threshold and equal > 0):
            equal -= magnitude == threshold
            n = _take(acc, i, offset, clear, indices, values, n)
    return largest


@_compiled
def _take(acc, i, offset, clear, indices, values, n):
    indices[n] = i + offset
    values[n] = acc[i]
    if clear:
        acc[i] = np.float32(0)
    return n + 1


@_compiled
def _kth_largest(magnitudes, k):
    """Radix selection, 8 bits at a time; `magnitudes` is reordered.

    Returns:
        (the k-th largest magnitude, how many entries equal to it are among the k largest).
    """
    n, prefix = magnitudes.size, np.int32(0)
    counts = np.empty(256, np.int64)
    for shift in (23, 15, 7, 0):
        mask = np.int32(0xFF if shift else 0x7F)
        counts[:] = 0
        for i in range(n):
            counts[(magnitudes[i] >> shift) & mask] += 1
        digit = mask
        while counts[digit] < k:
            k -= counts[digit]
            digit -= 1
        prefix |= np.int32(digit) << shift
        kept = 0
        for i in range(n):
            if (magnitudes[i] >> shift) & mask == digit:
                magnitudes[kept] = magnitudes[i]
                kept += 1
        n = kept
    return prefix, k
