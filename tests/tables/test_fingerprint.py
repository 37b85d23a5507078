import numpy as np
import pytest

from diffint.tables.fingerprint import Fingerprint, fingerprint, full_fingerprint


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


def test_the_full_fingerprint_depends_on_every_row_but_not_on_the_bits_of_equal_cells():
    table = np.random.default_rng(0).normal(size=(5_000, 3))
    table[7, 1], table[8, 1] = 0.0, np.nan
    same = table.copy()
    same[7, 1], same[8, 1] = -0.0, -np.nan
    assert full_fingerprint(same) == full_fingerprint(table)
    assert full_fingerprint(np.asfortranarray(table)) == full_fingerprint(table)
    same[2_500, 0] += 1.0  # not among the rows at the ends
    assert full_fingerprint(same) != full_fingerprint(table)
    assert full_fingerprint(table.reshape(3_000, 5)) != full_fingerprint(table)
