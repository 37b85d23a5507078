"""Which rows each member leaves out."""

import warnings

import numpy as np
import pytest

from diffint.core.config import Config
from diffint.core.errors import CalibrationWarning
from diffint.fit.row_split import split_rows


def split(groups, calibration="members", n_members=4):
    groups = np.array(groups)
    config = Config(n_members=n_members, calibration=calibration)
    return split_rows(np.arange(len(groups)), groups, config, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("n_rows", "n_groups", "n_members", "n_left"),
    [
        (100, 100, 4, 20),  # a fifth
        (10, 9, 2, 1),  # nearly as many groups as rows: a fifth
        (10, 8, 2, 4),  # few groups: each is left out by some member
        (10, 8, 1, 1),  # by one member, not all can be
    ],
)
def test_how_many_groups_a_member_leaves_out(n_rows, n_groups, n_members, n_left):
    groups = np.minimum(np.arange(n_rows), n_groups - 1)
    found = split(groups, n_members=n_members)
    assert [len(np.unique(groups[rows])) for rows in found.left_out] == [n_left] * n_members
    for train, left_out in zip(found.train, found.left_out, strict=True):
        assert sorted([*train, *left_out]) == list(range(n_rows))
        assert not set(groups[train]) & set(groups[left_out])


@pytest.mark.parametrize(("n_groups", "kind"), [(4, "training"), (5, "members")])
def test_five_groups_are_enough_to_leave_some_out(n_groups, kind):
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        found = split(np.arange(20) % n_groups)
    assert found.kind == kind
    assert [w.category for w in warned] == ([CalibrationWarning] if kind == "training" else [])
    assert all(len(rows) == 20 for rows in found.train) == (kind == "training")
