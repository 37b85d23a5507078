"""Tables and detectors for the tests of platforms."""

import numpy as np
import pandas as pd

from diffint import DiffInt
from diffint.persist.array_file import FORMAT_VERSION

QUICK = {"n_units": 16, "hidden_width": 16, "epochs": 5, "n_members": 2, "random_state": 0}


def number_table(n_rows=400, seed=0):
    """An id, and four columns of numbers with some missing cells and some far away rows."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n_rows, 4)) @ rng.normal(size=(4, 4)) + 100.0
    rows[::17] += 30.0
    rows[rng.random(rows.shape) < 0.03] = np.nan
    frame = pd.DataFrame(rows, columns=["a", "b", "c", "d"])
    return frame.assign(id=np.arange(n_rows) + 1_000)


def mixed_table(n_rows=400, seed=0):
    """An id, text, whole numbers, times, and a shop that is a segment."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 3, n_rows)
    colour = np.array(["red", "green", "blue"], dtype=object)[kind]
    colour[rng.random(n_rows) < 0.05] = None
    hours = pd.to_timedelta(rng.integers(0, 24 * 60, n_rows), unit="h")
    return pd.DataFrame(
        {
            "id": [f"row-{i}" for i in range(n_rows)],
            "colour": colour,
            "size": 5.0 * kind + rng.normal(size=n_rows),
            "count": kind + rng.integers(0, 4, n_rows),
            "time": (pd.Timestamp("2024-01-01") + hours).astype("datetime64[us]"),
            "shop": rng.choice(["north", "south"], n_rows),
        }
    )


def number_detector(**settings):
    """Fitted on normal rows of `number_table`."""
    rows = number_table(seed=1).drop(columns="id")
    return DiffInt(**{**QUICK, "false_positive_rate": 0.05, **settings}).fit(rows)


def mixed_detector(**settings):
    """Fitted on `mixed_table`, with the shops as segments."""
    rows = mixed_table(800, seed=1).drop(columns="id")
    detector = DiffInt(**{**QUICK, "false_positive_rate": 0.1, **settings})
    return detector.fit(rows, segments="shop")


def expected(detector, rows, n_reasons=3):
    """score, p_value, flagged and reasons by the methods of the detector."""
    flagged = detector.predict(rows) == -1
    why = detector.explain(rows)
    return pd.DataFrame(
        {
            "score": detector.anomaly_score(rows),
            "p_value": detector.p_values(rows),
            "flagged": flagged,
            "reasons": [
                why.brief(i, n_reasons) if is_flagged else None
                for i, is_flagged in enumerate(flagged)
            ],
        },
        index=rows.index,
    )


def assert_same_bits(found, wanted):
    """Whether two frames have the same scores, p-values, flags and reasons, in the same order."""
    assert len(found) == len(wanted) > 0
    assert 0 < wanted["flagged"].sum() < len(wanted)
    for name in ("score", "p_value"):
        np.testing.assert_array_equal(
            found[name].to_numpy(np.float64), wanted[name].to_numpy(np.float64)
        )
    assert found["flagged"].tolist() == wanted["flagged"].tolist()
    reasons, others = (
        [text if isinstance(text, str) else None for text in frame["reasons"]]
        for frame in (found, wanted)
    )
    assert reasons == others


def make_newer(path):
    """Give a model file the next format version, which cannot be read."""
    own, newer = (f'"diffint_format":"{FORMAT_VERSION + i}"'.encode() for i in (0, 1))
    data = path.read_bytes()
    assert data.count(own) == 1
    path.write_bytes(data.replace(own, newer))
