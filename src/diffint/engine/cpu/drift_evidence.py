"""The evidence that rows have moved, row by row; the definition is in `engine/reference`."""

from __future__ import annotations

import math

import numpy as np

from ..kernel_cache import compiled

_LARGE = 1e100  # money above it is counted in units of this size
_LOG_LARGE = math.log(_LARGE)
_MOST_GROWTH = 1e300
_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_30, _27, _31, _11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)
_ONE = np.uint64(1)


@compiled
def _uniform(seed, counter):
    z = seed + (counter + _ONE) * _STEP
    z = (z ^ (z >> _30)) * _FIRST
    z = (z ^ (z >> _27)) * _SECOND
    return float((z ^ (z >> _31)) >> _11) * 2.0**-53


@compiled
def add_rows(
    bins, seed, first, is_binary, slopes, tails, odds, first_share, horizon,
    counts, totals, seen, money, units, log_money, growth, begun, log_most, since,
    log_alarm, alarm_row,
):  # fmt: skip
    """Bet on rows and update everything from `counts` to `since`, and `alarm_row`, in place.

    bins: (rows, statistics) int16, −1 for none; seed: uint64; first: number of the first row.
    is_binary: (statistics,); slopes, tails, odds, first_share, horizon: see the definition.
    counts: (statistics, bins) earlier rows, totals: (statistics,) their sums, and seen:
    (statistics,) those of the stream. money: (statistics, bets) in units of _LARGE to the power of
    units (statistics,); log_money: (statistics,) the logarithm of all of it, log_most: its largest
    so far. growth: (statistics, bets) the most that a bet has gained since any row, and begun: that
    row; since: (statistics,) that of the best bet when the evidence was largest.
    log_alarm: (statistics,) evidence that is an alarm; alarm_row: (1,) row of the first, −1.
    """
    n_statistics, n_ends = len(seen), len(tails)
    never = (1.0 - first_share) * math.log(horizon)
    for i in range(len(bins)):
        for s in range(n_statistics):
            place = bins[i, s]
            if place < 0:
                continue
            counter = np.uint64(first + i) * np.uint64(n_statistics) + np.uint64(s)
            below = 0
            for b in range(place):
                below += counts[s, b]
            u = _uniform(seed, counter)
            p = (below + u * (counts[s, place] + 1)) / (totals[s] + 1)
            share = (counts[s, 0] + 1) / (totals[s] + 1)
            counts[s, place] += 1
            totals[s] += 1
            aside = never / math.log(horizon + seen[s])
            seen[s] += 1
            left = never / math.log(horizon + seen[s])
            unit = math.exp(-units[s] * _LOG_LARGE)
            n_bets = len(odds) if is_binary[s] else len(slopes) + 2 * n_ends
            start = (aside - left) / n_bets * unit
            sum_, best = 0.0, 0
            for b in range(n_bets):
                if is_binary[s]:
                    factor = (odds[b] if p < share else 1.0) / (1.0 - share + odds[b] * share)
                elif b < len(slopes):
                    factor = 1.0 + slopes[b] * (2.0 * p - 1.0)
                else:
                    end = b - len(slopes)
                    distance = p if end < n_ends else 1.0 - p
                    tail, factor = tails[end % n_ends, 0], tails[end % n_ends, 1]
                    if distance >= tail:
                        factor = (1.0 - tail * factor) / (1.0 - tail)
                money[s, b] = (money[s, b] + start) * factor
                sum_ += money[s, b]
                if money[s, b] > money[s, best]:
                    best = b
                if growth[s, b] <= 1.0:
                    growth[s, b], begun[s, b] = 1.0, first + i
                growth[s, b] = min(growth[s, b] * factor, _MOST_GROWTH)
            log_money[s] = math.log(sum_ + left * unit) + units[s] * _LOG_LARGE
            if log_money[s] > log_most[s]:
                log_most[s], since[s] = log_money[s], begun[s, best]
                if log_money[s] >= log_alarm[s] and alarm_row[0] < 0:
                    alarm_row[0] = first + i
            if sum_ > _LARGE:
                units[s] += 1
                for b in range(n_bets):
                    money[s, b] /= _LARGE
            elif units[s] > 0 and sum_ < 1.0 / _LARGE:
                units[s] -= 1
                for b in range(n_bets):
                    money[s, b] *= _LARGE
    return np.int64(0)
