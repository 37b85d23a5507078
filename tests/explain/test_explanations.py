"""Explanations of rows and models: data, frames and texts agree."""

import copy
import dataclasses
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from diffint import DiffInt, InputError

from ..conftest import QUICK, make_rows
from ..operations import calls_in

COLUMN = {
    name: j for j, name in enumerate(["age", "amount", "visits", "member", "version", "height"])
}
COLUMNS = ["row", "feature", "value", "lower", "upper", "side", "distance", "share", "unit"]


def make_records(n_rows=400, seed=0):
    """A table with amounts that depend on age, a count, a flag, a constant, and missing cells."""
    rng = np.random.default_rng(seed)
    age = rng.uniform(20, 60, n_rows)
    frame = pd.DataFrame(
        {
            "age": age,
            "amount": 50 * age + rng.normal(0, 40, n_rows),
            "visits": rng.poisson(3, n_rows),
            "member": rng.random(n_rows) < 0.02,
            "version": 7,
            "height": rng.normal(170, 8, n_rows),
        }
    )
    frame.loc[rng.random(n_rows) < 0.1, "height"] = np.nan
    return frame


@pytest.fixture(scope="module")
def records():
    return make_records()


@pytest.fixture(scope="module")
def detector(records):
    return DiffInt(random_state=0, epochs=30, n_units=60, n_members=3).fit(records)


@pytest.fixture(scope="module")
def suspects():
    """New rows; the first few have an error each."""
    frame = make_records(40, seed=1).astype({"member": float, "version": float})
    frame.loc[0, "amount"] = 9_000
    frame.loc[1, "age"] = 25
    frame.loc[1, "amount"] = 2_900  # in range, but wrong for this age
    frame.loc[2, "version"] = 9
    frame.loc[3, "visits"] = 40
    frame.loc[4, ["age", "visits"]] = np.nan
    return frame


class TestLocal:
    def test_planted_causes_come_first(self, detector, suspects):
        first = detector.explain(suspects).to_frame(1).set_index("row")["feature"]
        assert first[0] == "amount"
        assert first[1] in ("amount", "age")
        assert first[2] == "version"
        assert first[3] == "visits"

    def test_frame(self, detector, suspects):
        frame = detector.explain(suspects).to_frame()
        assert list(frame.columns) == COLUMNS
        assert len(frame) == suspects.size
        np.testing.assert_array_equal(frame["row"], np.repeat(np.arange(40), 6))
        assert (frame.groupby("row")["feature"].nunique() == 6).all()
        values = suspects.to_numpy(dtype=float)
        for line in frame.itertuples():
            value = values[line.row, list(suspects.columns).index(line.feature)]
            assert line.value == value or (np.isnan(value) and np.isnan(line.value))
        np.testing.assert_allclose(frame.groupby("row")["share"].sum(), 1.0)

    def test_side_distance_and_ends_agree(self, detector, suspects):
        frame = detector.explain(suspects).to_frame()
        assert set(frame["side"]) == {"below", "inside", "above", "missing"}
        for side, lines in frame.groupby("side"):
            if side == "above":
                assert (lines["value"] > lines["upper"]).all()
                np.testing.assert_allclose(lines["distance"], lines["value"] - lines["upper"])
            elif side == "below":
                assert (lines["value"] < lines["lower"]).all()
                np.testing.assert_allclose(lines["distance"], lines["lower"] - lines["value"])
            else:
                assert (lines["distance"] == 0).all()
                assert (side == "missing") == lines["value"].isna().all()
                inside = lines["value"].between(lines["lower"], lines["upper"])
                assert (inside | lines["value"].isna()).all()
        assert (frame["lower"] <= frame["upper"]).all()

    def test_agrees_with_scoring_and_matching(self, detector, suspects):
        explanation = detector.explain(suspects)
        np.testing.assert_array_equal(explanation.score, detector.anomaly_score(suspects))
        np.testing.assert_array_equal(explanation.p_value, detector.p_values(suspects))
        np.testing.assert_array_equal(explanation.flagged, detector.predict(suspects) == -1)
        matched = detector.match(suspects)
        np.testing.assert_array_equal(explanation.unit, matched["unit"])
        np.testing.assert_array_equal((explanation.side != 0).sum(axis=1), matched["violations"])
        assert explanation.nearest.shape == (40, 3)
        assert (explanation.nearest // 60 == [0, 1, 2]).all()
        assert all(explanation.unit[i] in explanation.nearest[i] for i in range(40))

    def test_a_row_does_not_depend_on_the_others(self, detector, suspects):
        whole = detector.explain(suspects).to_frame()
        alone = detector.explain(suspects.iloc[[3]]).to_frame()
        expected = whole.loc[[3]].assign(row=0)
        pd.testing.assert_frame_equal(alone, expected, rtol=1e-7)

    def test_every_number_in_the_text_is_in_the_frame(self, detector, suspects):
        explanation = detector.explain(suspects)
        frame = explanation.reasons_frame()
        for row in range(5):
            lines = frame[frame["row"] == row]
            for line, reason in zip(lines.itertuples(), explanation.reasons(row), strict=True):
                assert reason.startswith(f"{line.feature} ")
                if line.kind == "missing":
                    assert reason.startswith(f"{line.feature} is missing, ")
                    continue
                shown = [float(n.replace(",", "")) for n in re.findall(r"\d[\d,]*\.?\d*", reason)]
                limits = [line.upper if line.value > line.upper else line.lower]
                if line.kind == "range":
                    limits = [line.lower, line.upper, line.expected, line.support]
                for number in (line.value, *limits):
                    assert any(np.isclose(n, number, rtol=5e-3, atol=5e-3) for n in shown), reason

    def test_the_parts_in_the_text_are_the_shares_and_sum_to_the_score(self, detector, suspects):
        explanation = detector.explain(suspects)
        for row in np.flatnonzero(explanation.flagged):
            parts = explanation.text(row).splitlines()[-1]
            assert parts.startswith("  Parts of the score: ")
            found = dict(re.findall(r"([\w ]+) (?:under |over )?(\d+) %", parts[22:-1]))
            named = {name.strip(): int(share) / 100 for name, share in found.items()}
            assert abs(sum(named.values()) - 1) < 0.03
            for name, share in named.items():
                if name in COLUMN:
                    assert abs(share - explanation.share[row, COLUMN[name]]) < 0.011
            largest = explanation.share[row].argmax()
            assert explanation.feature_names[largest] == next(iter(named))
        quiet = next(i for i in range(40) if not explanation.reasons(i))
        assert "Parts of the score" not in explanation.text(quiet)

    def test_large_whole_numbers_have_exact_ends(self):
        rng = np.random.default_rng(0)
        code = 1_000_000 + rng.integers(0, 100, 300)
        table = pd.DataFrame({"code": code, "v": (code - 1_000_050) / 30 + rng.normal(0, 0.1, 300)})
        frame = DiffInt(random_state=0, epochs=10, n_units=30).fit(table).explain(table).to_frame()
        outside = frame[frame["side"].isin(["above", "below"])]
        assert len(outside) > 5
        assert (outside["distance"] > 0).all()

    def test_a_feature_without_training_values_has_no_range(self):
        rng = np.random.default_rng(0)
        table = np.column_stack([rng.normal(size=(100, 2)), np.full(100, np.nan)])
        with pytest.warns(UserWarning, match="no value"):
            explanation = DiffInt(**QUICK).fit(table).explain([[0, 0, 5.0]])
        assert np.isnan(explanation.lower[0, 2])
        assert "no training row has a value to compare it with" in explanation.reason(0, 2)

    def test_does_not_share_memory_with_the_rows(self, detector, suspects):
        rows = suspects.to_numpy(dtype=float).copy()
        plain = DiffInt(**QUICK).fit(rows)
        explanation = plain.explain(rows)
        before = explanation.text(0)
        rows[0] = 99
        assert explanation.text(0) == before
        with pytest.raises(ValueError, match="read-only"):
            explanation.value[0, 0] = 5

    def test_the_work_for_a_row_of_text_does_not_grow(self, detector):
        few, many = (detector.explain(make_records(n, seed=5)) for n in (500, 4_000))
        few.text(0)  # what is done once
        assert calls_in(many.text) < 10 * calls_in(few.text)

    def test_text(self, detector, suspects):
        explanation = detector.explain(suspects)
        first = explanation.text(0, n_reasons=1)
        assert re.fullmatch(
            r"Row 0: score [\d.]+, above the threshold of [\d.]+ \(p = [\d.]+\)\.\n"
            r"  1\. amount = 9000, but no training row is above [\d,.]+; [\d,.]+ would fit\.\n"
            r"  Parts of the score: amount \d+ %, \w+ \d+ %, \w+ \d+ %, \d others? \d+ %\.",
            first,
        ), first
        assert "version = 9, but was 7 in every training row." in explanation.text(2)
        assert explanation.text().count("Row ") == 40
        assert explanation.text(-1).startswith("Row 39:")

    def test_whole_numbers_and_flags_have_whole_ends(self, detector, suspects):
        frame = detector.explain(suspects).to_frame().query("feature in ['visits', 'member']")
        frame = frame.dropna()
        for column in ("lower", "upper"):
            assert (frame[column] == frame[column].round()).all()

    def test_ends_are_cut_to_the_training_range(self, detector, suspects, records):
        frame = detector.explain(suspects).to_frame().query("side == 'inside'")
        for feature in ("age", "height", "amount"):
            lines = frame[frame["feature"] == feature]
            low, high = records[feature].min(), records[feature].max()
            usual = lines["value"].between(low, high)
            assert (lines["lower"][usual] >= low).all()
            assert (lines["upper"][usual] <= high).all()

    def test_number_of_reasons_and_lines(self, detector, suspects):
        explanation = detector.explain(suspects)
        assert len(explanation.reasons(4, 50)) >= 2  # two cells are missing
        for n in (1, 2, 50):
            assert 1 <= len(explanation.reasons(0, n)) <= n
            assert len(explanation.reasons(4, n)) == min(n, len(explanation.reasons(4, 50)))
            assert len(explanation.to_frame(n)) == 40 * min(n, 6)
            assert (explanation.reasons_frame(n).groupby("row").size() <= n).all()

    def test_missing_cells_that_training_rows_have_are_reasons(self, detector, suspects):
        explanation = detector.explain(suspects)
        lines = explanation.to_frame().query("row == 4").set_index("feature")
        text = explanation.text(4, n_reasons=6)
        for feature in ("age", "visits"):
            assert lines.loc[feature, "side"] == "missing"
            assert lines.loc[feature, "share"] > 0
            assert f"{feature} is missing, but no training row misses it." in text
            assert f"{feature} missing" in explanation.brief(4, 6)

    def test_missing_cells_that_are_common_are_no_reasons(self, detector, suspects):
        explanation = detector.explain(suspects)
        row = np.flatnonzero(suspects["height"].isna())[0]
        assert "height is" not in explanation.text(row, n_reasons=6)
        assert re.search(
            r"height is missing, as in \d+ % of the training rows\.",
            explanation.reason(row, COLUMN["height"]),
        )

    def test_missing_cells_that_are_rare(self, records):
        table = records.copy()
        table.loc[:5, "age"] = np.nan  # 6 of 400
        detector = DiffInt(**QUICK).fit(table)
        reason = detector.explain(table.iloc[:1]).reason(0, COLUMN["age"])
        assert reason == "age is missing, but only in 2 % of the training rows."

    def test_missing_cells_have_no_share_if_they_are_ignored(self, records, suspects):
        explanation = DiffInt(**QUICK, missing="ignored").fit(records).explain(suspects)
        assert not explanation.share[4, [COLUMN["age"], COLUMN["visits"]]].any()
        assert "is missing" not in explanation.text(4, n_reasons=6)

    def test_a_score_that_is_the_threshold(self, detector, suspects):
        why = detector.explain(suspects)
        same = dataclasses.replace(why, threshold=float(why.score[0]))
        assert re.match(r"Row \S+: score \S+, exactly at the threshold \(p = ", same.headline(0))
        assert not same.flagged[0]
        below = dataclasses.replace(why, threshold=float(np.nextafter(why.score[0], 0)))
        assert "above the threshold of" in below.headline(0)

    def test_a_row_without_any_value(self, detector, records, suspects):
        blank = suspects.iloc[:1] * np.nan
        explanation = detector.explain(blank)
        assert explanation.score[0] > np.quantile(detector.anomaly_score(records), 0.99)
        assert all("is missing, but no training row misses it" in r for r in explanation.reasons(0))
        assert explanation.share.sum() == pytest.approx(1.0)
        headline = explanation.headline(0)
        assert headline.endswith("It has no value that could be compared.")

    def test_a_row_without_any_value_if_missing_cells_are_ignored(self, records, suspects):
        detector = DiffInt(**QUICK, missing="ignored").fit(records)
        explanation = detector.explain(suspects.iloc[:1] * np.nan)
        assert explanation.score[0] == 0
        assert explanation.reasons(0) == []
        assert (explanation.to_frame()["share"] == 0).all()

    def test_number_of_features_for_a_part_of_the_score(self, detector, suspects):
        explanation = detector.explain(suspects)
        for row in range(5):
            shares = np.sort(explanation.share[row])[::-1]
            needed = explanation.features_for(0.8)[row]
            assert shares[:needed].sum() >= 0.8 - 1e-9
            assert shares[: needed - 1].sum() < 0.8

    def test_the_work_for_a_row_does_not_grow(self):
        rows = make_rows(10_000, 30)
        detector = DiffInt(random_state=0, epochs=1, n_jobs=1).fit(rows[:1000])
        detector.explain(rows[:10]).to_frame()  # compiles
        few, many = (
            calls_in(lambda n=n: detector.explain(rows[:n]).to_frame()) for n in (1_000, 10_000)
        )
        assert many < 3 * few  # most is done for all rows at once

    @pytest.mark.parametrize(
        "bad", [{"row": 40}, {"row": -41}, {"n_reasons": 0}, {"n_reasons": True}]
    )
    def test_bad_requests(self, detector, suspects, bad):
        with pytest.raises(InputError):
            detector.explain(suspects).text(**bad)

    def test_bad_rows_raise_the_same_errors_as_scoring(self, detector, suspects):
        for method in (detector.explain, detector.match, detector.nearest_normal):
            with pytest.raises(InputError, match="infin"):
                method(suspects.replace(9_000, np.inf))
            with pytest.raises(ValueError, match="feature names"):
                method(suspects[suspects.columns[::-1]])
            with pytest.raises(TypeError, match="text"):
                method(suspects.astype({"age": object}).replace(25, "old"))
            with pytest.raises(ValueError, match="0 sample"):
                method(suspects.iloc[:0])
            with pytest.raises(NotFittedError):
                getattr(DiffInt(), method.__name__)(suspects)

    def test_one_feature_one_member_one_row(self):
        detector = DiffInt(**{**QUICK, "n_members": 1}).fit(make_rows(50, 1))
        text = detector.explain([[1e9]]).text()
        assert text.count("\n") == 1
        assert "x0 = 1,000,000,000, but no training row is above" in text
        assert "Parts of the score" not in text


class TestMatch:
    def test_frame(self, detector, suspects, records):
        matched = detector.match(suspects.set_index(suspects.index + 100))
        assert list(matched.columns)[:3] == ["unit", "inside", "violations"]
        np.testing.assert_array_equal(matched.index, np.arange(100, 140))
        np.testing.assert_array_equal(matched["inside"], matched["violations"] == 0)
        assert matched["inside"].dtype == bool
        assert not matched["inside"][:4].any()
        assert matched["unit"].between(0, 179).all()

    def test_boxes_contain_about_the_share_box_coverage(self):
        rows, fresh = np.split(make_rows(3_400, 4, seed=0), [2_400])
        for coverage in (0.6, 0.9):
            detector = DiffInt(random_state=0, epochs=20, n_units=50, box_coverage=coverage)
            inside = detector.fit(rows).match(fresh)["inside"].mean()
            assert abs(inside - coverage) < 0.08

    @pytest.mark.parametrize("scaling", ["none", "standard", "unit", "minmax", "adaptive"])
    def test_a_constant_is_inside_every_box_and_nothing_else_is(self, scaling):
        rows = make_rows(200, 4, seed=0)
        rows[:, 1] = 3.0
        settings = {"init": "gaussian", "n_units": 20, "epochs": 5, "n_members": 2}
        detector = DiffInt(**settings, scaling=scaling, random_state=0).fit(rows)
        frame = detector.explain(rows).to_frame()
        assert (frame.loc[frame["value"] == 3.0, "side"] == "inside").all()
        for other in (2.0, 4.0):
            rows[:, 1] = other
            assert not detector.match(rows)["inside"].any()

    def test_with_a_coverage_of_0_boxes_are_the_intervals(self, rows):
        detector = DiffInt(**QUICK, box_coverage=0.0).fit(rows)
        assert all(member.box_scale == 1.0 for member in detector.model_.members)

    def test_threads_do_not_matter(self, detector):
        rows = pd.concat([make_records(5_000, seed=3)] * 2)
        single = copy.copy(detector).set_params(n_jobs=1)
        pd.testing.assert_frame_equal(detector.match(rows), single.match(rows))


class TestGlobal:
    def test_importance(self, detector):
        explanation = detector.explain_global()
        np.testing.assert_allclose(
            explanation.importance,
            explanation.support * explanation.tightness * explanation.stability,
        )
        assert explanation.importance.shape == (180, 6)
        assert explanation.feature_importance.shape == (6,)
        soft = explanation.mean_membership * explanation.tightness * explanation.stability
        expected = ((soft.reshape(3, 60, 6) ** 3).mean(axis=1) ** (1 / 3)).mean(axis=0)
        varying = ~explanation.constant
        np.testing.assert_allclose(explanation.feature_importance[varying], expected[varying])

    def test_tight_features_are_important(self):
        rng = np.random.default_rng(0)
        rows = rng.uniform(-1, 1, (500, 6))
        usual = rng.random((500, 2)) > 0.02
        rows[:, :2] = np.where(usual, rng.normal(0.4, 0.05, (500, 2)), rows[:, :2])
        explanation = DiffInt(random_state=0, epochs=20).fit(rows).explain_global()
        assert set(explanation.feature_order[:2]) == {0, 1}

    def test_frame(self, detector, records):
        explanation = detector.explain_global()
        frame = explanation.to_frame(n_units=4, n_constraints=2)
        assert len(frame) == 8
        assert frame["unit"].nunique() == 4
        subjects = frame.groupby("unit", sort=False)["feature"].agg(frozenset).tolist()
        distinct = len(set(subjects))
        assert len(set(subjects[:distinct])) == distinct >= 2  # repeated subjects come last
        for _, lines in frame.groupby("unit"):
            assert lines["importance"].is_monotonic_decreasing
            assert lines["joint_coverage"].is_monotonic_decreasing
            assert lines["joint_coverage"].iloc[0] == pytest.approx(lines["coverage"].iloc[0])
        assert frame[["coverage", "stability", "support", "tightness"]].stack().between(0, 1).all()

    def test_coverage_agrees_with_new_rows(self, detector):
        frame = detector.explain_global().to_frame(n_units=6, n_constraints=3)
        fresh = make_records(4_000, seed=9)
        differences = []
        for line in frame.itertuples():
            value = fresh[line.feature].dropna().astype(float)
            lower = line.lower if line.binds_below else -np.inf
            upper = line.upper if line.binds_above else np.inf
            differences.append(line.coverage - value.between(lower, upper).mean())
        assert np.mean(np.abs(differences)) < 0.05  # 80 held-out rows

    def test_text(self, detector):
        explanation = detector.explain_global()
        text = explanation.text(n_features=2, n_units=2, n_constraints=2)
        assert text.startswith("Learned from 400 rows with 6 features: ")
        assert len(re.findall(r"^  \S+ +0\.\d\d$|^  \S+ +1\.00$", text, re.M)) == 2
        assert text.count("Pattern ") == 2
        assert text.count("held-out rows") == 4
        assert text.count("Both together hold for") == 2
        frame = explanation.to_frame(2, 2)
        shown = [int(n) for n in re.findall(r"holds for (?:over )?(\d+) %", text)]
        np.testing.assert_allclose(shown, 100 * frame["coverage"], atol=1.0)

    def test_text_names_constant_features(self, detector):
        assert "Constant in training: version" in detector.explain_global().text()

    def test_text_names_training_rows_if_none_were_held_out(self, rows):
        detector = DiffInt(**QUICK, calibration="training").fit(rows)
        text = detector.explain_global().text()
        assert re.search(r"holds for (over )?\d+ % of \d+ training rows", text)
        assert "held-out" not in text
        assert "optimistic" in detector.explain(rows[:1]).text()

    @pytest.mark.parametrize("bad", [{"n_units": 0}, {"n_constraints": 1.5}, {"n_features": -1}])
    def test_bad_requests(self, detector, bad):
        with pytest.raises(InputError):
            detector.explain_global().text(**bad)

    def test_only_patterns_are_shown(self, detector):
        explanation = detector.explain_global()
        assert explanation.is_pattern[explanation.top_units(20)].all()
        assert (explanation.box_rows[explanation.is_pattern] >= 1).all()

    def test_joint_coverage_with_missing_values(self):
        rng = np.random.default_rng(0)
        table = rng.normal(size=(500, 3))
        table[rng.random(500) < 0.9, 0] = np.nan
        table[rng.random(500) < 0.5, 1] = np.nan
        explanation = DiffInt(**QUICK).fit(table).explain_global()
        text = explanation.text()
        assert "of 100 held-out rows" in text  # the complete column
        frame = explanation.to_frame(10, 1)
        np.testing.assert_allclose(frame["joint_coverage"], frame["coverage"])

    def test_texts_are_the_same_after_saving_and_loading(self, detector, suspects, tmp_path):
        detector.save(tmp_path / "m.diffint")
        loaded = DiffInt.load(tmp_path / "m.diffint")
        assert loaded.explain_global().text() == detector.explain_global().text()
        assert loaded.explain(suspects).text() == detector.explain(suspects).text()
