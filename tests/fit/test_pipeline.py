"""Several models fitted together are those fitted alone; values of further rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from diffint import DiffInt
from diffint.core.config import Config
from diffint.core.errors import InputWarning
from diffint.fit.pipeline import fit_models
from diffint.fit.task import Task
from diffint.score.prepared import PreparedModel
from diffint.score.scoring import anomaly_scores


@pytest.mark.parametrize("epochs", [3, "auto"])
def test_models_fitted_together_equal_those_fitted_alone(epochs: int | str) -> None:
    rng = np.random.default_rng(0)
    # With epochs="auto" the last table trains for another number of epochs.
    tables = [rng.random((rows, 3)) for rows in (60, 60, 900)]
    config = Config(n_units=8, n_members=2, epochs=epochs, batch_size=4)  # type: ignore[arg-type]
    tasks = [
        Task(x, np.zeros(len(x), dtype=bool), np.random.SeedSequence(seed))
        for seed, x in enumerate(tables)
    ]
    together = fit_models(tasks, ["a", "b", "c"], config, "cpu")
    for seed, (x, model) in enumerate(zip(tables, together, strict=True)):
        alone = DiffInt(**config.to_dict(), random_state=seed, n_jobs=1, device="cpu").fit(x)
        assert model.training.epochs == alone.model_.training.epochs
        np.testing.assert_array_equal(
            anomaly_scores(PreparedModel(model), x, 1), alone.anomaly_score(x)
        )
        np.testing.assert_array_equal(model.calibration.scores, alone.model_.calibration.scores)
    if epochs == "auto":
        assert together[0].training.epochs != together[2].training.epochs


def test_values_of_further_rows_widen_the_ranges_of_what_can_be_learned() -> None:
    """Quantiles of rows that are not trained on, of three features, one without any value here."""
    x = np.random.default_rng(0).random((200, 3))
    x[:, 2] = np.nan
    more = np.array([[-3.0, 0.5, 1.0], [0.5, np.nan, 2.0], [0.5, 0.5, 3.0]])
    config = Config(n_units=8, n_members=2, epochs=3, scaling="minmax")
    tasks = [Task(x, np.zeros(len(x), dtype=bool), np.random.SeedSequence(0)) for _ in range(2)]
    tasks[1] = replace(tasks[1], more=more)
    with pytest.warns(InputWarning, match="no value in the training rows and is ignored: 'c'"):
        first, wide = fit_models(tasks, ["a", "b", "c"], config, "cpu")
    assert first.features.quantiles[0, 0] > 0.0
    np.testing.assert_array_equal(wide.features.quantiles[:, 0], [-3.0, x[:, 1].min(), np.nan])
    np.testing.assert_array_equal(wide.features.missing_share, [0.0, 0.0, 1.0])
    for member, before in zip(wide.members, first.members, strict=True):
        assert member.scaler.divisor[0] > 1.9 > before.scaler.divisor[0]
        assert member.scaler.divisor[1] == before.scaler.divisor[1]
        assert not member.scaler.seen[2]
