"""Parts of scores compared with their definition."""

import numpy as np
import pytest

from diffint import DiffInt
from diffint.engine.reference.score import parts
from diffint.score.parts import scores_and_parts

from ..conftest import QUICK, make_rows


@pytest.mark.parametrize("decoder", ["free", "certified"])
def test_parts_equal_the_definition(decoder, rows):
    detector = DiffInt(**QUICK, decoder=decoder).fit(rows)
    new = make_rows(60, seed=3)
    new[::4, 1] = np.nan
    score, part = scores_and_parts(detector.prepared, new)
    np.testing.assert_allclose(part, parts(detector.model_, new), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(part.sum(axis=1), score, rtol=1e-6)
