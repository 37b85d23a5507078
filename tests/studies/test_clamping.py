"""Clipping is studied on the scores that the detector itself gives."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from diffint.studies import clamping
from diffint.studies.study import Setup


def test_a_feature_that_is_constant_in_training_counts_as_in_the_detector(tmp_path):
    rng = np.random.default_rng(0)
    y = (np.arange(200) % 10 == 0).astype(np.int64)
    x = rng.normal(size=(200, 4))
    x[:, 0] = np.where(y == 1, 0.001, 0.0)  # all that tells anomalies apart
    np.savez(tmp_path / "14_glass.npz", X=x, y=y)
    setup = Setup(tmp_path, quick=True)
    measured = clamping.measure({"table": "14_glass", "seed": 0}, setup)
    train, test, labels = setup.trial("14_glass", 0)
    detector = setup.paper_detector(200, 0, epochs=clamping.EPOCHS).fit(train)
    expected = roc_auc_score(labels, detector.anomaly_score(test))
    assert measured["clipped"] == pytest.approx(expected)
    assert expected > 0.9
