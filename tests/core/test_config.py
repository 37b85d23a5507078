import pytest

from diffint.core.config import (
    PAPER,
    RECOMMENDED,
    Config,
    check_false_positive_rate,
    paper_batch_size,
)
from diffint.core.errors import InputError


def test_paper_preset_has_the_values_of_the_paper():
    assert (PAPER.n_units, PAPER.temperature, PAPER.hidden_width) == (200, 0.1, 128)
    assert (PAPER.epochs, PAPER.learning_rate, PAPER.schedule) == (1000, 5e-5, "constant")
    assert (PAPER.n_members, PAPER.init, PAPER.error) == (1, "gaussian", "clipped")
    assert PAPER.support_decay == 0.999
    assert PAPER.calibration == "training"


def test_recommended_preset():
    assert (RECOMMENDED.init, RECOMMENDED.error) == ("data", "unclipped")
    assert RECOMMENDED.schedule == "cosine"
    assert (RECOMMENDED.scaling, RECOMMENDED.missing) == ("adaptive", "signal")


@pytest.mark.parametrize(
    ("n_rows", "n_features", "n_members", "kept_rows"),
    [
        (10, 1, 5, 4_000),
        (2_000, 36, 5, 1_000),
        (2_001, 36, 3, 1_000),
        (10**6, 144, 3, 250),
        (500, 1_500, 5, 250),
    ],
)
def test_members_and_kept_rows_by_table(n_rows, n_features, n_members, kept_rows):
    config = RECOMMENDED.for_table(n_rows, n_features)
    assert (config.n_members, config.kept_rows) == (n_members, kept_rows)
    given = Config(n_members=2, kept_rows=7, calibration="members")
    assert given.for_table(n_rows, n_features) == given


@pytest.mark.parametrize(
    ("n_rows", "every_row", "expected"),
    [(4_999, False, "members"), (5_000, False, "holdout"), (5_000, True, "members")],
)
def test_calibration_by_table(n_rows, every_row, expected):
    assert RECOMMENDED.for_table(n_rows, 3, None, every_row).calibration == expected
    assert RECOMMENDED.for_table(100 * n_rows, 3, n_rows, every_row).calibration == expected
    for given in ("members", "holdout", "training"):
        assert Config(calibration=given).for_table(n_rows, 3, None, every_row).calibration == given


@pytest.mark.parametrize(
    ("rows", "size"), [(10, 64), (10_000, 64), (10_001, 512), (20_000, 512), (20_001, 1024)]
)
def test_batch_size_by_rows(rows, size):
    assert paper_batch_size(rows) == size
    assert PAPER.resolved(rows, rows).batch_size == size
    assert PAPER.resolved(rows, rows).epochs == 1000


@pytest.mark.parametrize(
    ("rows", "size", "epochs"),
    [
        (10, 64, 100),  # the most passes
        (900, 64, 100),
        (1_000, 64, 94),  # 1,500 steps
        (4_000, 64, 24),
        (6_400, 64, 19),  # 1,500 · √(6,400 / 4,000) steps
        (64_000, 256, 16),  # 4,000 steps
        (10**9, 256, 1),
    ],
)
def test_automatic_batch_size_and_epochs(rows, size, epochs):
    resolved = RECOMMENDED.resolved(rows, rows)
    assert (resolved.batch_size, resolved.epochs) == (size, epochs)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_units", 0),
        ("n_units", 2.5),
        ("n_units", True),
        ("n_members", -1),
        ("epochs", 0),
        ("hidden_width", "128"),
        ("batch_size", 0),
        ("temperature", 0.0),
        ("temperature", -0.1),
        ("temperature", 1e-40),
        ("temperature", 1e40),
        ("n_members", 1_001),
        ("temperature", float("nan")),
        ("learning_rate", float("inf")),
        ("support_decay", 1.0),
        ("support_decay", -0.1),
        ("decoder", "linear"),
        ("scaling", "robust"),
        ("init", None),
        ("error", "squared"),
        ("schedule", "step"),
        ("calibration", "none"),
        ("missing", "mean"),
        ("kept_rows", -1),
        ("kept_rows", 2.5),
        ("kept_rows", 10**7),
    ],
)
def test_an_invalid_setting_is_named(name, value):
    with pytest.raises(InputError, match=name):
        Config(**{name: value})


@pytest.mark.parametrize("rate", [0, 1, -0.1, 1.5, float("nan"), "0.1", None])
def test_rate_outside_zero_and_one(rate):
    with pytest.raises(InputError, match="false_positive_rate"):
        check_false_positive_rate(rate)
