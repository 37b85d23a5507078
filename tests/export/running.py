"""Run the graph of a detector on a table, and compare it with the library and the definition."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import numpy as np
import onnxruntime
import pandas as pd

from diffint.engine.reference.score import scores as defined_scores

SAME = 2e-6  # relative difference up to which two scores may count as equal or not


class Found(NamedTuple):
    scores: np.ndarray
    p_values: np.ndarray
    flagged: np.ndarray


def session_of(detector: Any, path: Any) -> Any:
    """The graph of a detector, ready to run."""
    detector.to_onnx(path)
    return onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])


def feeds_of(session: Any, table: Any, segments: Any = None) -> dict[str, Any]:
    """The inputs of a graph, made as its metadata say."""
    given: dict[str, Any] = {}
    for one in json.loads(session.get_modelmeta().custom_metadata_map["diffint.inputs"]):
        name, column, kind = one["name"], one["column"], one["kind"]
        if kind == "matrix":
            given[name] = np.asarray(table, dtype=np.float64)
        elif name.startswith("segment") and segments is not None:
            given[name] = np.asarray(segments, dtype=object)
        elif kind == "text":
            given[name] = table[column].fillna("").astype(str).to_numpy(object)
        elif kind == "times":
            times = pd.to_datetime(table[column])
            if times.dt.tz is not None:
                zone = json.loads(session.get_modelmeta().custom_metadata_map["diffint.times"])
                times = times.dt.tz_convert(zone[column]).dt.tz_localize(None)
            given[name] = times.to_numpy().astype("datetime64[ms]").astype(np.int64)
        else:
            given[name] = table[column].to_numpy(dtype=np.float64)
    return given


def run_graph(detector: Any, path: Any, table: Any, segments: Any = None) -> Found:
    """The outputs of a detector's graph for the rows of a table."""
    session = session_of(detector, path)
    return Found(*session.run(None, feeds_of(session, table, segments)))


def assert_same(detector: Any, found: Found, table: Any, segments: Any = None) -> None:
    """Scores agree; p-values and flags do, except where scores are almost equal."""
    scores = detector.anomaly_score(table)
    np.testing.assert_allclose(found.scores, scores, rtol=1e-5, atol=1e-9)
    definition = defined_scores(detector.model_, detector._read(table))
    np.testing.assert_allclose(found.scores, definition, rtol=1e-6, atol=1e-12)
    rule = detector._rule_for(table, segments)
    threshold = np.broadcast_to(rule.threshold, len(scores))
    near_threshold = np.abs(scores - threshold) <= SAME * threshold
    np.testing.assert_array_equal(
        found.flagged[~near_threshold], (detector.predict(table, segments) == -1)[~near_threshold]
    )
    calibration = rule.calibration.scores
    apart = np.abs(scores[:, None] - calibration).min(axis=1)
    same = apart > SAME * scores
    expected = detector.p_values(table, segments)
    np.testing.assert_array_equal(found.p_values[same], expected[same])
    assert same.mean() > 0.9
    assert found.flagged.dtype == bool
    assert found.flagged.any()
    assert not found.flagged.all()
