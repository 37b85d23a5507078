"""No global random state is touched, by imports either: a fresh process shows it."""

import subprocess
import sys

import pytest

STEPS = """
import random, sys, warnings
import numpy as np

earlier = random.getstate(), np.random.get_state()

def check(what):
    assert random.getstate() == earlier[0], f"{what}: the state of random"
    for part, former in zip(np.random.get_state(), earlier[1]):
        assert np.array_equal(part, former), f"{what}: the state of NumPy"
    torch = sys.modules.get("torch")
    if torch is not None:
        unused = torch.Generator().get_state()
        assert torch.equal(torch.get_rng_state(), unused), f"{what}: the state of torch"

import diffint
from diffint import *
from diffint import DiffInt
import pandas

check("import")
warnings.simplefilter("ignore")
quick = dict(epochs=2, n_units=8, n_members=2)
rng = np.random.default_rng(0)
rows = pandas.DataFrame(rng.normal(size=(400, 3)), columns=["a", "b", "c"])
mixed = rows.assign(
    city=np.resize(["Oslo", "Rome"], 400),
    day=pandas.Timestamp("2024-01-01") + pandas.to_timedelta(np.arange(400) % 30, unit="D"),
)
"""
SCORING = """
settings = dict(quick, calibration="holdout", false_positive_rate=0.1)
DiffInt(**settings).fit(mixed)
check("fit")
detector = DiffInt(**settings, random_state=0).fit(mixed)
detector.predict(mixed), detector.p_values(mixed, weights="estimate"), detector.select(mixed)
detector.match(mixed), detector.reconstruct(mixed)
check("score")
why = detector.explain(mixed[:9])
why.text(0), why.to_frame(), why.reasons_frame(), why.alert_groups(), why.plot(0)
detector.nearest_normal(mixed[:9])
check("explain")
detector.explain_global().plot(), detector.patterns().plot()
check("explain_global")
detector.report(mixed, sys.argv[1] + "/report.html")
check("report")
detector.save(sys.argv[1] + "/model"), DiffInt.load(sys.argv[1] + "/model")
check("save")
"""
MOVING = """
detector = DiffInt(**quick, calibration="holdout", random_state=0).fit(mixed)
detector.drift(mixed[:100]).plot()
check("drift")
DriftMonitor(detector).update(mixed), AlertStream(detector).select(mixed)
check("streams")
detector.accept(mixed[:5]), detector.refresh(mixed)
check("refresh")
find_anomalies(mixed, **quick).explain(mixed)
check("find")
stability_over_fits([DiffInt(**quick).fit(rows) for _ in range(2)])
DiffInt(**quick, decoder="certified").fit(rows).certify(rows[:3])
check("certify")
"""
PYOD = """
from diffint.pyod_detector import DiffIntDetector
check("import of pyod_detector")
DiffIntDetector(**quick).fit(rows.to_numpy())
check("fit of DiffIntDetector")
"""


@pytest.mark.parametrize("steps", [SCORING, MOVING, PYOD], ids=["scoring", "moving", "pyod"])
def test_no_global_random_state_is_touched(tmp_path, steps):
    if steps is PYOD:
        pytest.importorskip("pyod")
    command = [sys.executable, "-c", STEPS + steps, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
