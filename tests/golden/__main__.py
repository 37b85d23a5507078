"""Write the reference model and scores of the current format version, once."""

from pathlib import Path

import numpy as np
import pandas as pd

from diffint import DiffInt
from diffint.persist.array_file import FORMAT_VERSION

folder = Path(__file__).parent
model, scores = (
    folder / f"model-v{FORMAT_VERSION}.diffint",
    folder / f"scores-v{FORMAT_VERSION}.npz",
)
if model.exists():
    raise SystemExit(f"{model} exists and is kept for good")
rng = np.random.default_rng(0)
x = pd.DataFrame(rng.normal(size=(120, 3)), columns=["width", "height", "weight"])
x.iloc[::10, 1] = np.nan
detector = DiffInt(n_units=12, hidden_width=8, epochs=20, n_members=2, random_state=0)
detector.fit(x)
detector.save(model)
probe = np.vstack([x.to_numpy()[:20], rng.normal(0, 5, size=(20, 3))])
frame = pd.DataFrame(probe, columns=x.columns)
np.savez_compressed(scores, x=probe, scores=detector.anomaly_score(frame))
