"""Fitting several models together gives the same models as fitting each alone."""

from __future__ import annotations

import numpy as np
import pytest

from diffint import DiffInt
from diffint.core.config import Config
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
