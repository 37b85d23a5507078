"""The detectors that are implemented from their papers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

torch = pytest.importorskip("torch")

from diffint.bench.rivals.batches import batches  # noqa: E402
from diffint.bench.rivals.dte import DTECategorical, noise_deviations  # noqa: E402
from diffint.bench.rivals.mcm import MCM, MaskedAutoencoder, similarity_of_masks  # noqa: E402
from diffint.bench.rivals.tccm import TCCM  # noqa: E402

RIVALS: dict[str, Callable[[int], Any]] = {
    "DTE-C": lambda seed: DTECategorical(epochs=15, learning_rate=1e-3, random_state=seed),
    "MCM": lambda seed: MCM(epochs=15, learning_rate=0.01, random_state=seed),
    "TCCM": lambda seed: TCCM(steps=100, random_state=seed),
}
SHIFT = 4.0  # of the planted anomalies, in standard deviations, along a direction that is rare


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """As in the runs of the benchmark; such small networks are slower with more."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def _trial() -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Standardised rows in a plane, and test rows of which some are off the plane."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, 2)) @ rng.normal(size=(2, 6)) + 0.1 * rng.normal(size=(300, 6))
    rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    train, test = rows[:200], rows[200:].copy()
    labels = (np.arange(100) % 10 == 0).astype(np.int64)
    test[labels == 1] += SHIFT * rng.choice([-1.0, 1.0], size=(10, 6))
    constant = np.zeros((100, 1))
    return np.column_stack([train, np.zeros(200)]), np.column_stack([test, constant]), labels


@pytest.mark.parametrize("name", RIVALS)
def test_planted_anomalies_are_ranked_first(name: str) -> None:
    train, test, labels = _trial()  # the last column is constant
    scores = RIVALS[name](0).fit(train).decision_function(test)
    assert scores.shape == (100,)
    assert np.isfinite(scores).all()
    assert roc_auc_score(labels, scores) > 0.95


@pytest.mark.parametrize("name", RIVALS)
def test_the_seed_decides_the_scores_and_no_global_state_changes(name: str) -> None:
    train, test, _ = _trial()
    torch.manual_seed(7)
    before = torch.random.get_rng_state()
    first, second, other = (
        RIVALS[name](seed).fit(train).decision_function(test) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, other)
    assert torch.equal(before, torch.random.get_rng_state())


def test_batches_are_epochs_in_random_order_until_the_last_step() -> None:
    torch.manual_seed(0)
    two_epochs = list(batches(10, 4, 2, 100))
    assert [len(chosen) for chosen in two_epochs] == [4, 4, 2] * 2
    for epoch in (two_epochs[:3], two_epochs[3:]):
        assert sorted(torch.cat(epoch).tolist()) == list(range(10))
    assert len(list(batches(10, 4, 2, 4))) == 4


def test_the_noise_of_dte_grows_with_time() -> None:
    deviations = noise_deviations()
    assert len(deviations) == 400
    assert deviations[0] == pytest.approx(0.01, rel=1e-3)
    assert (deviations.diff() > 0).all()
    assert 0.9 < deviations[-1] < 1.0


def test_dte_estimates_later_times_for_noisier_rows() -> None:
    train, test, _ = _trial()
    detector = RIVALS["DTE-C"](0).fit(train)
    noise = torch.randn(test.shape, generator=torch.Generator().manual_seed(0)).numpy()
    means = [detector.decision_function(test[1:2] + d * noise).mean() for d in (0.0, 0.3, 0.9)]
    assert means[0] < means[1] < means[2]


def test_mcm_prefers_masks_that_differ() -> None:
    torch.manual_seed(0)
    alike, different = torch.ones(4, 15, 20), torch.randn(4, 15, 20)
    assert (similarity_of_masks(alike) > similarity_of_masks(different)).all()
    # Alike: 15 times log(14 · e^(1 / 0.1)), scaled by 14 · log(14).
    expected = 15 * (np.log(14) + 10.0) / (14 * np.log(14))
    np.testing.assert_allclose(similarity_of_masks(alike), expected, rtol=1e-5)


def test_every_mask_of_mcm_is_a_function_of_the_row() -> None:
    torch.manual_seed(0)
    reconstructed, logits = MaskedAutoencoder(5)(torch.randn(3, 5))
    assert reconstructed.shape == logits.shape == (3, 15, 5)
    assert logits.std(dim=0).min() > 0  # between rows
    assert logits.std(dim=1).min() > 0  # between masks
