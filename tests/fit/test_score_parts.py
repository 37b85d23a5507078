"""What counts in a score beside the error: missing cells, kept rows, and no single cell."""

import re
from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from diffint import DiffInt
from diffint.engine.reference import score as reference
from diffint.fit.score_parts import keep_rows, weigh_parts

from ..conftest import QUICK, make_rows

FEW = {"epochs": 20, "n_units": 60, "n_members": 2, "random_state": 0}
N_FEATURES, SOMETIMES, RARELY, NEVER = 10, 2, 5, 7  # columns by how often cells are missing


def make_table(n_rows, seed):
    """Rows near a plane of three dimensions."""
    rng = np.random.default_rng(seed)
    directions = np.random.default_rng(99).normal(size=(3, N_FEATURES))
    return rng.normal(size=(n_rows, 3)) @ directions + 0.2 * rng.normal(size=(n_rows, N_FEATURES))


def with_holes(x, seed=0):
    x, rng = x.copy(), np.random.default_rng(seed)
    x[rng.random(len(x)) < 0.3, SOMETIMES] = np.nan
    x[rng.random(len(x)) < 0.02, RARELY] = np.nan
    return x


@pytest.fixture(scope="module")
def detector():
    return DiffInt(**FEW).fit(with_holes(make_table(500, 0)))


@pytest.fixture(scope="module")
def new():
    return make_table(800, 1)


def without(x, *columns):
    x = x.copy()
    x[:, columns] = np.nan
    return x


class TestMissingCells:
    def test_a_cell_adds_to_the_score_if_training_rows_never_miss_it(self, detector, new):
        added = detector.anomaly_score(without(new, NEVER)) - detector.anomaly_score(new)
        assert np.median(added) > 0
        assert added.mean() > 0

    def test_it_adds_less_if_some_training_rows_miss_it(self, detector, new):
        added = [
            np.median(detector.anomaly_score(without(new, j)) - detector.anomaly_score(new))
            for j in (SOMETIMES, RARELY, NEVER)
        ]
        assert added[0] < added[1] < added[2]

    def test_it_is_neutral_if_many_training_rows_miss_it(self, detector, new):
        present, missing = (
            detector.anomaly_score(new),
            detector.anomaly_score(without(new, SOMETIMES)),
        )
        assert abs(missing.mean() / present.mean() - 1) < 0.1
        explanation = detector.explain(without(new, SOMETIMES))
        typical = detector.explain(new).share[:, SOMETIMES].mean()
        assert explanation.share[:, SOMETIMES].mean() == pytest.approx(typical, rel=0.5)
        assert not explanation.responsibility[:, SOMETIMES].any()

    def test_it_is_a_reason_in_words(self, detector, new):
        explanation = detector.explain(without(new[:20], SOMETIMES, RARELY, NEVER))
        for row in range(20):
            text = explanation.text(row, n_reasons=N_FEATURES)
            assert f"x{NEVER} is missing, but no training row misses it." in text
            assert re.search(rf"x{RARELY} is missing, but only in \d % of the training rows", text)
            assert f"x{SOMETIMES} is missing" not in text

    def test_nearly_empty_rows_have_small_p_values(self, detector, new):
        for present in range(N_FEATURES):
            if present in (SOMETIMES, RARELY):
                continue
            rows = np.full((50, N_FEATURES), np.nan)
            rows[:, present] = new[:50, present]
            assert detector.p_values(rows).max() < 0.1
        assert detector.p_values(np.full((1, N_FEATURES), np.nan))[0] < 0.02

    def test_more_missing_cells_score_higher(self, detector, new):
        columns = [j for j in range(N_FEATURES) if j != SOMETIMES]
        means = [
            detector.anomaly_score(without(new[:100], *columns[:count])).mean()
            for count in range(3, len(columns) + 1)
        ]
        assert (np.diff(means) > 0).all()

    def test_rows_with_common_gaps_are_not_flagged_more_often(self):
        rate = []
        for seed in range(3):
            x, fresh = make_table(1_400, seed)[:400], make_table(1_400, seed)[400:]
            rng = np.random.default_rng(seed)
            x[rng.random(x.shape) < 0.2] = np.nan
            fresh[rng.random(fresh.shape) < 0.2] = np.nan
            detector = DiffInt(**{**FEW, "random_state": seed}, false_positive_rate=0.05).fit(x)
            rate.append((detector.predict(fresh) == -1).mean())
        assert np.mean(rate) < 0.075

    def test_ignored_cells_neither_add_nor_count(self, new):
        detector = DiffInt(**FEW, missing="ignored").fit(with_holes(make_table(500, 0)))
        for member in detector.model_.members:
            assert not member.missing_error.any()
            assert not member.missing_surprise.any()
        explanation = detector.explain(without(new, NEVER))
        assert not explanation.share[:, NEVER].any()
        assert not explanation.responsibility[:, NEVER].any()

    def test_a_column_that_a_member_has_never_seen_counts_nothing(self):
        x = make_rows(100, 3)
        x[:, 1] = np.nan
        x[0, 1] = 5.0  # of which some members see no value
        detector = DiffInt(**{**QUICK, "n_members": 5}).fit(x)
        for member in detector.model_.members:
            if not member.scaler.seen[1]:
                assert member.missing_error[1] == member.missing_surprise[1] == 0.0
        assert not all(member.scaler.seen[1] for member in detector.model_.members)
        assert np.isfinite(detector.anomaly_score(x)).all()


class TestKeptRows:
    def test_kept_rows_find_gaps_between_training_rows(self):
        """Two clusters on a circle: its middle is near no training row."""
        rng = np.random.default_rng(0)
        angle = rng.uniform(0, 2 * np.pi, 600)
        x = np.column_stack([np.cos(angle), np.sin(angle)]) + rng.normal(0, 0.05, (600, 2))
        middle = rng.normal(0, 0.1, (50, 2))
        auc = {}
        for kept in (0, 500):
            detector = DiffInt(**FEW, kept_rows=kept).fit(x[:400])
            scores = detector.anomaly_score(np.vstack([x[400:], middle]))
            auc[kept] = roc_auc_score(np.arange(250) >= 200, scores)
        assert auc[500] > 0.98
        assert auc[500] >= auc[0] - 0.01

    def test_each_member_keeps_its_own_training_rows(self, rows):
        detector = DiffInt(**QUICK, kept_rows=30).fit(rows)
        first, second = (member.kept_rows for member in detector.model_.members)
        assert first.shape == second.shape == (30, 5)
        assert not np.array_equal(first, second)

    def test_the_seed_chooses_the_rows(self, rows):
        same = [DiffInt(**QUICK, kept_rows=9).fit(rows).model_.members[0] for _ in range(2)]
        other = DiffInt(**{**QUICK, "random_state": 1}, kept_rows=9).fit(rows).model_.members[0]
        np.testing.assert_array_equal(same[0].kept_rows, same[1].kept_rows)
        assert not np.array_equal(same[0].kept_rows, other.kept_rows)

    @pytest.mark.filterwarnings("ignore::UserWarning")  # too few rows for a threshold
    @pytest.mark.parametrize("n_rows", [2, 3, 5, 8, 30])
    def test_small_tables(self, n_rows):
        x = make_rows(n_rows, 3)
        detector = DiffInt(**QUICK).fit(x)
        assert np.isfinite(detector.anomaly_score(np.vstack([x, 2 * x]))).all()
        assert detector.anomaly_score(10 * x).min() > detector.anomaly_score(x).max()

    def test_kept_rows_with_missing_cells(self):
        x = make_rows(120, 4)
        x[np.random.default_rng(0).random(x.shape) < 0.4] = np.nan
        x = x[~np.isnan(x).all(axis=1)]
        detector = DiffInt(**QUICK).fit(x)
        assert all(np.isfinite(member.kept_rows).all() for member in detector.model_.members)
        assert np.isfinite(detector.anomaly_score(x)).all()


class TestExtremeCells:
    @pytest.mark.parametrize("extreme", [1e9, -1e300])
    def test_one_cell_hardly_changes_the_scores_of_other_rows(self, extreme):
        x, fresh = make_table(400, 0), make_table(300, 7)
        rng = np.random.default_rng(0)
        wrong = fresh.copy()
        column = rng.integers(N_FEATURES, size=300)
        wrong[np.arange(300), column] += 3.0
        y = np.repeat([0, 1], 300)
        scores = []
        for cell in (x[17, 4], extreme):
            changed = x.copy()
            changed[17, 4] = cell
            detector = DiffInt(**FEW).fit(changed)
            scores.append(detector.anomaly_score(np.vstack([fresh, wrong])))
        assert roc_auc_score(y, scores[0]) > 0.85
        assert roc_auc_score(y, scores[1]) > roc_auc_score(y, scores[0]) - 0.02
        assert np.corrcoef(*scores)[0, 1] > 0.98
        assert np.median(np.abs(scores[1] - scores[0]) / scores[0]) < 0.1

    def test_an_extreme_cell_is_itself_anomalous(self):
        x = make_table(400, 0)
        x[17, 4] = 1e9
        detector = DiffInt(**FEW).fit(x)
        fresh = make_table(50, 3)
        fresh[0, 4], fresh[1, 4] = 1e9, 1e12
        scores = detector.anomaly_score(fresh)
        assert scores[:2].min() > scores[2:].max()
        assert detector.explain(fresh).order[1, 0] == 4


def test_the_paper_has_none_of_these_parts(rows):
    detector = DiffInt.paper(**{**QUICK, "n_members": 1}).fit(rows)
    member = detector.model_.members[0]
    assert type(member.scaler).name == "minmax"
    assert len(member.kept_rows) == 0
    assert member.distance_weight == 0.0
    assert not member.missing_error.any()
    # The score of the paper: the mean absolute error in scaled units.
    scaled = member.scaler.transform(rows)[0]
    reconstructed = member.scaler.scaled(detector.reconstruct(rows))
    errors = np.abs(scaled - reconstructed).mean(axis=1)
    np.testing.assert_allclose(detector.anomaly_score(rows), errors, rtol=1e-3)


def spread(values):
    """How far high values are from the middle; where most are equal, a tenth of the deviation."""
    high, middle = np.quantile(values, [0.9, 0.5])
    return max(high - middle, 0.1 * values.std())


def test_distances_count_so_that_they_vary_as_much_as_errors(rows):
    model = DiffInt(**QUICK, kept_rows=50).fit(rows).model_
    members = tuple(replace(member, distance_weight=0.0) for member in model.members)
    measured = [np.arange(0, 200), np.arange(100, 300)]
    found = weigh_parts(model.config, members, rows, measured, np.zeros(5), n_jobs=1)
    for member, some in zip(found, measured, strict=True):
        x = rows[some]
        target = member.scaler.target(x, model.config.error)
        error = np.abs(target - reference.reconstruction(model.config, member, x)).sum(axis=1)
        distance = reference.distances(member, target).sum(axis=1)
        assert member.distance_weight == pytest.approx(spread(error) / spread(distance), rel=1e-4)


def test_kept_rows_that_are_near_each_other_stand_together_in_sixteens():
    """16 rows are far from 24 others, and these are halved by the column that they spread in."""
    rng = np.random.default_rng(0)
    x = np.column_stack(
        [np.repeat([0.0, 100.0], [16, 24]) + rng.normal(size=40), rng.uniform(0, 50, 40)]
    )
    model = DiffInt(**QUICK, scaling="none").fit(x).model_
    scaler = model.members[0].scaler
    scaled = scaler.target(x, "unclipped")
    kept, _ = keep_rows(x, rng.permutation(40), scaled, scaler, model.config, 40, rng)
    assert (kept[:16, 0] < 50).all()
    assert (kept[16:, 0] > 50).all()
    assert kept[16:32, 1].max() < kept[32:, 1].min()
    assert sorted(kept.tolist()) == sorted(scaled.tolist())
