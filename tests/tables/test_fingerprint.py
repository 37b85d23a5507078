import numpy as np
import pytest

from diffint.tables.fingerprint import Fingerprint, fingerprint


@pytest.mark.parametrize("n_rows", [1, 999, 1_000, 1_001, 2_500])
@pytest.mark.parametrize("step", [1, 700, 1_000, 5_000])
def test_batches_do_not_change_it(n_rows, step):
    table = np.random.default_rng(0).normal(size=(n_rows, 3))
    parts = Fingerprint()
    for start in range(0, n_rows, step):
        parts.add(table[start : start + step])
    assert parts.hexdigest() == fingerprint(table)


def test_equal_values_have_the_same_and_others_another():
    table = np.array([[0.0, np.nan], [1.0, 2.0]])
    same = np.array([[-0.0, -np.nan], [1.0, 2.0]])
    assert fingerprint(table) == fingerprint(same) == fingerprint(table.astype(np.float32))
    assert fingerprint(table) != fingerprint(table[::-1])
    assert fingerprint(table) != fingerprint(table[:1])
    assert fingerprint(table) != fingerprint(table.reshape(1, 4))
