"""BinaPs: bins of numbers, and patterns that were planted."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from diffint.bench.rivals.binaps import BinaPs, Binning  # noqa: E402


def planted(n_rows: int = 600, seed: int = 0) -> np.ndarray:
    """Rows of two kinds: three features have fixed values, the other three are random."""
    rng = np.random.default_rng(seed)
    rows = rng.uniform(-1, 1, (n_rows, 6))
    first = rng.random(n_rows) < 0.5
    rows[np.ix_(first, [0, 1, 2])] = [0.75, -0.55, 0.35]
    rows[np.ix_(~first, [3, 4, 5])] = [-0.75, 0.15, 0.95]
    return rows


def test_bins_give_back_numbers_within_a_bin():
    rows = np.random.default_rng(0).uniform(-1, 1, (500, 4))
    rows[:, 3] = 0.25  # one bin only
    binning = Binning(rows, 10)
    columns = binning.columns(rows)
    assert columns.shape == (500, 31)
    assert (columns.sum(axis=1) == 4).all()
    assert np.abs(binning.numbers(columns) - rows).max() < 0.2
    none = binning.numbers(np.zeros_like(columns))
    assert none == pytest.approx(np.broadcast_to(rows.mean(axis=0), rows.shape))


def test_planted_patterns_are_found_and_reconstructed():
    rows = planted()
    fitted = BinaPs(epochs=200, random_state=0).fit(rows)
    items = list(zip(fitted.binning_.feature, fitted.binning_.bin, strict=True))
    found = [{items[column] for column in np.flatnonzero(p)} for p in fitted.patterns_]
    assert {(0, 8), (1, 2), (2, 6)} in found
    assert {(3, 1), (4, 5), (5, 9)} in found
    error = np.abs(fitted.reconstruct(rows) - rows).mean()
    assert error < 0.85 * np.abs(rows.mean(axis=0) - rows).mean()


def test_the_same_seed_gives_the_same_patterns_and_the_global_state_is_kept():
    rows = planted(100)
    torch.manual_seed(5)
    before = torch.get_rng_state()
    one, other = (BinaPs(epochs=5, random_state=3).fit(rows).patterns_ for _ in range(2))
    assert (one == other).all()
    assert torch.equal(before, torch.get_rng_state())


def test_a_fit_ends_after_the_largest_number_of_steps():
    fitted = BinaPs(epochs=1000, most_steps=7, random_state=0).fit(planted(100))
    assert fitted.n_steps_ == 7
