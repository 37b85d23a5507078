"""The report: its content, missing runs and tables, and that it is reproducible."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas
import pytest

from diffint.bench.baselines import METHODS
from diffint.bench.protocol import TABLES
from diffint.bench.report import write_report
from diffint.bench.results import read_results
from diffint.bench.selection import Selection
from diffint.core.errors import InputError

from .synthetic import ABSENT, synthetic_rows

SMALL = [name for name, table in TABLES.items() if table.scale == "small"]


def few_rows(**changes):
    given = {"tables": SMALL[:3], "methods": ["DiffInt", "KNN", "IForest", "Plugin"], "n_seeds": 2}
    return synthetic_rows(**{**given, **changes})


def read(folder, name):
    return (folder / name).read_text(encoding="utf-8")


def pages(folder):
    return {path.name: read(folder, path.name) for path in sorted(folder.glob("*.md"))}


def cells_of(page, first):
    """The cells of the table lines of a page that start with this name."""
    lines = [line for line in page.splitlines() if line.strip("| *").startswith(first)]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


# --- A complete report ---------------------------------------------------------------------------


def test_a_complete_report_has_all_files(full_report):
    folder = full_report
    names = {path.name for path in folder.iterdir()}
    assert {
        "README.md",
        "ranks.md",
        "comparisons.md",
        "time.md",
        "values.csv",
        "ranks.csv",
    } <= names
    for regime in ("paper", "fair"):
        for metric in ("roc_auc", "average_precision"):
            assert f"tables-{regime}-{metric}.md" in names
            for group in ("overall", "small", "medium", "large", "high-dimensional"):
                assert (folder / "figures" / f"cd-{regime}-{metric}-{group}.svg").is_file()
        assert (folder / "figures" / f"time-{regime}.svg").is_file()
    assert len(list((folder / "figures").iterdir())) == 22


def test_links_have_targets(full_report):
    folder = full_report
    for page in pages(folder).values():
        for link in re.findall(r"\]\(([^)]+)\)", page):
            assert (folder / link).is_file(), link


def test_tables_are_rectangular(full_report):
    folder = full_report
    for name, page in pages(folder).items():
        for block in page.split("\n\n"):
            lines = [line for line in block.splitlines() if line.startswith("|")]
            widths = {len(re.findall(r"(?<!\\)\|", line)) for line in lines}
            assert len(widths) <= 1, (name, lines[:2])


def test_absent_tables_are_named_on_every_page(full_report):
    folder = full_report
    for name, page in pages(folder).items():
        assert "12 of the paper's 48 tables have no rows here" in page, name
        assert all(table.replace("_", "\\_") in page for table in ABSENT), name
    values = pandas.read_csv(folder / "values.csv", keep_default_na=False)
    assert set(values.loc[values["state"] == "no rows", "table"]) == set(ABSENT)
    assert "36 of the paper" in read(folder, "figures/cd-fair-roc_auc-overall.svg")


def test_values_equal_those_of_the_rows(full_report, all_rows):
    folder = full_report
    values = pandas.read_csv(folder / "values.csv")
    one = values[
        (values["table"] == "45_wine") & (values["method"] == "LOF") & (values["regime"] == "fair")
    ].set_index("metric")
    rows = all_rows[
        (all_rows["table"] == "45_wine")
        & (all_rows["method"] == "LOF")
        & (all_rows["regime"] == "fair")
    ]
    for metric in ("roc_auc", "average_precision"):
        assert one.loc[metric, "mean"] == pytest.approx(rows[metric].mean(), rel=1e-5)
        assert one.loc[metric, "sd"] == pytest.approx(rows[metric].std(), rel=1e-5)
        assert one.loc[metric, "n_seeds"] == 10
    page = read(folder, "tables-fair-roc_auc.md").replace("\u00a0", " ")
    text = f"{rows['roc_auc'].mean():.3f} ± {rows['roc_auc'].std():.3f} ("
    assert any(text in cell for line in cells_of(page, "LOF") for cell in line)


def test_line_ups(full_report):
    folder = full_report
    ranks = pandas.read_csv(folder / "ranks.csv")
    sizes = ranks.groupby(["regime", "pool"])["method"].nunique()
    assert sizes["paper", "line-up"] == 24  # the paper's 23 and the plugin
    assert sizes["paper", "everyone"] == sizes["fair", "line-up"] == len(METHODS) + 1
    assert sizes["paper", "inlier-only"] == sizes["paper", "inlier-only (DiffInt)"] == 4
    assert sizes["paper", "contaminated"] == sizes["paper", "contaminated (DiffInt)"] == 20
    outside = ranks[(ranks["regime"] == "paper") & (ranks["pool"] == "line-up")]
    assert not {"KNN", "DiffInt"} & set(outside["method"])
    assert ranks.loc[ranks["regime"] == "fair", "paper"].isna().all()


def test_the_papers_numbers_are_in_brackets(full_report):
    folder = full_report
    ranks = read(folder, "ranks.md")
    first = cells_of(ranks, "DiffInt-paper")[0]
    assert [re.findall(r"\[(.*?)\]", cell) for cell in first[1:]] == [
        ["4.10"], ["4.42"], ["3.77"], ["3.18"], ["5.25"],
    ]  # fmt: skip
    assert "[454.36]" in ranks
    assert "[5.01]" in ranks
    assert "[4.31]" in ranks  # complete case
    for number in ("[1.69]", "[2.10]", "[3.35]", "[3.59]", "[4.03]", "[8.83]"):
        assert number in ranks
    paper, fair = read(folder, "README.md").split("## Fair regime")
    assert "[4.10]" in paper
    assert "[" not in fair.split("## More")[0].replace("![", "")
    assert "[0.950]" in read(folder, "tables-paper-roc_auc.md")


def test_missing_runs_are_marked_with_their_reason(full_report):
    folder = full_report
    page = read(folder, "tables-paper-roc_auc.md").replace("\u00a0", " ")
    assert any("– memory" in line for line in cells_of(page, "KDE"))
    assert any("– time" in line for line in cells_of(page, "KPCA"))
    assert any("– error" in line for line in cells_of(page, "QMCD"))
    assert "Fewer than 10 seeds: MCD with 9 on 20\\_letter." in page
    first = read(folder, "README.md")
    assert r"ValueError: Singular covariance \| matrix second line" in first
    assert ["MCD", "error", r"20\_letter", "paper, fair", "3"] in [
        line[:5] for line in cells_of(first, "MCD")
    ]


def test_fits_longer_than_the_limit_on_one_core_are_marked(full_report):
    folder = full_report
    page = read(folder, "tables-paper-roc_auc.md")
    assert "† would not have finished on one core in 120 s" in page
    # 19,020 rows on a GPU are estimated at 380 s, and 0.02 s a row is below 120 s for 5,803.
    columns = [line for line in page.splitlines() if r"22\_magic.gamma" in line and "|" in line]
    place = [cell.strip() for cell in columns[0].strip("|").split("|")].index(r"22\_magic.gamma")
    cells = cells_of(page[page.index(columns[0]) :], "DiffInt-paper")[0]
    assert cells[place].rstrip("*").endswith("†")
    assert "†" not in "".join("".join(line) for line in cells_of(page, "LOF"))


def test_times_of_gpu_runs_are_estimates_for_one_core(full_report):
    folder = full_report
    times = pandas.read_csv(folder / "times.csv")
    one = times[(times["table"] == "32_shuttle") & (times["method"] == "DiffInt-paper")].iloc[0]
    assert one["estimated"]
    assert one["fit_seconds"] == pytest.approx(0.02 * 49097)
    assert one["measured_fit_seconds"] < one["fit_seconds"]
    assert "≈" in read(folder, "time.md")
    assert "≥" in read(folder, "time.md")


def test_the_same_rows_give_the_same_bytes(tmp_path):
    rows = few_rows(regimes=["paper"])
    once = write_report(rows, tmp_path / "once")
    again = write_report(rows.sample(frac=1, random_state=1), tmp_path / "again")
    assert [path.name for path in once] == [path.name for path in again]
    for one, other in zip(once, again, strict=True):
        assert one.read_bytes() == other.read_bytes(), one.name


# --- Partial reports -----------------------------------------------------------------------------


def test_a_plugin_is_ranked(tmp_path):
    calls = []
    paths = write_report(few_rows(), tmp_path, progress=lambda done, of: calls.append((done, of)))
    assert calls[-1][0] == calls[-1][1]
    assert all(path.is_file() for path in paths)
    first = read(tmp_path, "README.md")
    assert "plugins: Plugin" in first
    assert "[4.10]" not in first  # ranks among four methods are not comparable
    assert "In square brackets" not in read(tmp_path, "ranks.md")
    assert "### Plugin" in read(tmp_path, "comparisons.md")


@pytest.mark.parametrize("regime", ["paper", "fair"])
def test_one_regime(tmp_path, regime):
    write_report(few_rows(regimes=[regime]), tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    assert f"tables-{regime}-roc_auc.md" in names
    assert len([name for name in names if name.startswith("tables-")]) == 2
    assert f"## {regime.capitalize()} regime" in read(tmp_path, "README.md")


@pytest.mark.parametrize(
    ("tables", "methods"),
    [(["45_wine"], ["KNN"]), (["45_wine"], ["DiffInt", "KNN"]), (SMALL[:2], ["LOF", "KNN"])],
)
def test_too_few_methods_or_tables_for_tests(tmp_path, tables, methods):
    for _ in range(2):  # also over an existing report
        write_report(few_rows(tables=tables, methods=methods, n_seeds=1), tmp_path)
    assert "too few for Friedman's test" in read(tmp_path, "README.md")
    assert not list((tmp_path / "figures").glob("cd-*"))
    for page in pages(tmp_path).values():
        assert "nan" not in page.lower()


def test_unknown_tables_are_ranked_overall_only(tmp_path):
    write_report(few_rows(tables=["45_wine", "my|table", "other"], regimes=["fair"]), tmp_path)
    ranks = pandas.read_csv(tmp_path / "ranks.csv")
    counts = ranks[ranks["scheme"] == "A"].groupby("group")["n_tables"].max()
    assert counts["overall"] == 3
    assert counts["small"] == 1
    assert "and 2 more: my\\|table, other" in read(tmp_path, "README.md")
    assert "## Other tables (2)" in read(tmp_path, "tables-fair-roc_auc.md")


def test_chosen_tables_and_methods(tmp_path):
    rows = few_rows()
    write_report(rows, tmp_path, tables=["breastw"], methods=["knn", "PLUGIN"])
    values = pandas.read_csv(tmp_path / "values.csv")
    reported = values[values["state"] != "no rows"]
    assert set(reported["table"]) == {"4_breastw"}
    assert set(reported["method"]) == {"KNN", "Plugin"}
    with pytest.raises(
        InputError, match="the results have no method 'GMM'; they have DiffInt, Plugin"
    ):
        write_report(rows, tmp_path, methods=["GMM"])
    with pytest.raises(InputError, match="nothing to report"):
        write_report(rows, tmp_path, tables=["large"])


def test_runs_never_made_are_named_and_count_as_missing(tmp_path):
    rows = few_rows(regimes=["fair"])
    rows = rows[~((rows["method"] == "Plugin") & (rows["table"] == SMALL[0]))]
    write_report(rows, tmp_path)
    text = f"**Plugin**, fair regime: {SMALL[0]}".replace("_", "\\_")
    assert text in read(tmp_path, "README.md")
    values = pandas.read_csv(tmp_path / "values.csv")
    cells = values[(values["method"] == "Plugin") & (values["table"] == SMALL[0])]
    assert set(cells["state"]) == {"not run"}
    assert set(cells["rank"]) == {4.0}


def test_a_table_of_one_regime_is_named(tmp_path):
    rows = few_rows(tables=SMALL[:2], methods=["KNN", "LOF"])
    rows = rows[(rows["regime"] == "fair") | (rows["table"] == SMALL[0])]
    write_report(rows, tmp_path)
    text = f"With rows in the other, but not in the paper regime: {SMALL[1]}.".replace("_", "\\_")
    for page in pages(tmp_path).values():
        assert text in page
        assert "not in the fair regime" not in page


# --- Other suites --------------------------------------------------------------------------------

MACRO = [f"oddbench__T{i}" for i in range(6)]


def macro_rows(**changes):
    given = {"tables": MACRO, "methods": ["DiffInt", "KNN", "IForest"], "regimes": ["fair"]}
    return synthetic_rows(**{**given, "n_seeds": 3, **changes}).assign(suite="macrodata")


@pytest.fixture(scope="module")
def macro_report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("macro")
    write_report(macro_rows(), folder)
    return folder


def test_a_report_on_other_tables_has_nothing_of_the_paper(macro_report):
    for name, page in pages(macro_report).items():
        assert not re.search(r"paper|scale|small|Other|nan", page), name
        assert "\n\n\n" not in page, name
    first = read(macro_report, "README.md")
    assert "| suite | macrodata |" in first
    assert "| tables | 6: oddbench\\_\\_T0" in first
    ranks = pandas.read_csv(macro_report / "ranks.csv")
    assert set(ranks["group"]) == {"overall"}
    assert set(ranks["n_tables"]) == {6}
    assert ", 6 tables," in read(macro_report, "figures/cd-fair-roc_auc-overall.svg")


def test_a_users_tables_may_have_names_of_the_paper(tmp_path):
    methods = [name for name in METHODS if METHODS[name].in_paper or name == "DiffInt"][:16]
    rows = few_rows(methods=methods, regimes=["paper"], n_seeds=1).assign(suite="folder")
    write_report(rows, tmp_path)
    for name, page in pages(tmp_path).items():
        assert "the paper's" not in page, name
        assert "| the paper |" not in page, name
    ranks = pandas.read_csv(tmp_path / "ranks.csv")
    assert set(ranks["pool"]) == {"line-up"}
    assert set(ranks["group"]) == {"overall"}
    assert ranks["paper"].isna().all()
    assert set(ranks["method"]) == set(methods)


def test_head_to_head_with_both_p_values(macro_report):
    comparisons = pandas.read_csv(macro_report / "comparisons.csv")
    assert set(comparisons["method"]) == {"DiffInt"}
    assert set(comparisons["opponent"]) == {"KNN", "IForest"}
    assert (comparisons["p_holm"] >= comparisons["p"]).all()
    one = comparisons[(comparisons["opponent"] == "KNN") & (comparisons["metric"] == "roc_auc")]
    cells = cells_of(read(macro_report, "comparisons.md"), "KNN")[0]
    assert cells[1] == "6"
    assert cells[4:6] == [f"{one['p'].item():.3f}", f"{one['p_holm'].item():.3f}"]


def test_a_method_with_fewer_seeds_and_one_that_lacks_tables(tmp_path):
    rows = macro_rows()
    rows = rows[(rows["method"] != "KNN") | (rows["seed"] == 0)]
    lacking = (rows["method"] == "IForest") & rows["table"].isin(MACRO[:2])
    write_report(rows[~lacking], tmp_path)
    first = read(tmp_path, "README.md")
    assert "mean ROC-AUC (4 tables)" in first  # those that all finished
    finished = {cells[0].strip("*"): cells[-1] for cells in cells_of(first, "")}
    assert finished["IForest"] == "4 of 6"
    assert finished["KNN"] == "6 of 6"
    page = read(tmp_path, "tables-fair-roc_auc.md")
    assert "Fewer than 3 seeds: KNN with 1 on every table that it finished." in page
    ranks = pandas.read_csv(tmp_path / "ranks.csv").set_index(["scheme", "metric", "method"])
    assert ranks.loc[("A", "roc_auc", "IForest"), "n_tables"] == 6
    assert ranks.loc[("B", "roc_auc", "IForest"), "n_tables"] == 4


def test_only_the_tables_of_a_selection(tmp_path):
    listed = tuple(("macrodata", name) for name in (*MACRO[:4], "ovrbench__absent"))
    selection = Selection((*listed, ("adbench", "6_cardio")), "selection.csv")
    rows = macro_rows(methods=["DiffInt", "KNN"])
    write_report(rows, tmp_path, selection=selection)
    values = pandas.read_csv(tmp_path / "values.csv")
    assert set(values.loc[values["state"] == "ok", "table"]) == set(MACRO[:4])
    text = "**1 of the 5 selected tables has no rows here**: ovrbench\\_\\_absent."
    for page in pages(tmp_path).values():
        assert text in page
    complete = Selection(listed[:4], "selection.csv")
    write_report(rows, tmp_path, selection=complete)
    assert "All of the 4 selected tables have rows here." in read(tmp_path, "README.md")


def test_a_selection_of_the_papers_tables(tmp_path):
    selection = Selection((("adbench", SMALL[0]), ("adbench", SMALL[1])), "selection.csv")
    write_report(few_rows(methods=["KNN"]), tmp_path, selection=selection)
    first = read(tmp_path, "README.md")
    assert "| tables | 2 of the paper's 48: 2 small |" in first
    assert "All of the 2 selected tables have rows here." in first


def test_chosen_tables_of_another_suite(tmp_path):
    write_report(macro_rows(methods=["KNN"]), tmp_path, tables=[MACRO[1], "ODDBENCH__t2"])
    assert set(pandas.read_csv(tmp_path / "values.csv")["table"]) == set(MACRO[1:3])
    with pytest.raises(InputError, match="no table is called 'small'; there are 6"):
        write_report(macro_rows(), tmp_path, tables=["small"])


# --- Rows ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (pandas.DataFrame(), "no column 'table', 'method'"),
        (few_rows().head(0), "nothing to report: the results have no rows"),
        (few_rows().assign(state="error"), "24|48 rows, none with state 'ok'"),
        (few_rows().assign(regime="other"), "regime 'other' is not one of paper, fair"),
        (few_rows().assign(roc_auc="high"), "column 'roc_auc'"),
        (few_rows().assign(seed=np.nan), "column 'seed' of the results has empty cells"),
        (few_rows().assign(suite="x"), "the suite 'x', which is not one of adbench, macrodata"),
        (
            pandas.concat([few_rows(), macro_rows()]),
            "of the suites adbench and macrodata; make one report for each",
        ),
    ],
)
def test_rows_that_cannot_be_reported(tmp_path, rows, message):
    folder = tmp_path / "report"
    with pytest.raises(InputError, match=message):
        write_report(rows, folder)
    assert not folder.exists()


def seeds(states, values, **columns):
    given = {"table": "45_wine", "method": "KNN", "regime": "fair", "average_precision": 0.5}
    return pandas.DataFrame(
        {"seed": range(len(states)), "state": states, "roc_auc": values, **given, **columns}
    )


def cell_of(rows):
    other = seeds(["ok"], [0.1], method="LOF")
    cells = read_results(pandas.concat([rows, other], ignore_index=True)).cells
    return cells[cells["method"] == "KNN"].iloc[0]


def test_the_mean_is_over_the_seeds_that_finished():
    cell = cell_of(seeds(["error", "ok", "timeout", "ok"], [np.nan, 0.6, np.nan, 0.8]))
    assert cell["state"] == "ok"
    assert cell["roc_auc"] == pytest.approx(0.7)
    assert cell["roc_auc_sd"] == pytest.approx(0.1 * 2**0.5)
    assert (cell["n_seeds"], cell["n_failed"]) == (2, 2)


@pytest.mark.parametrize("state", ["timeout", "out of memory"])
def test_a_first_seed_out_of_time_or_memory_is_missing(state):
    rows = seeds([state, "ok"], [np.nan, 0.8])
    for given in (rows, rows.iloc[::-1]):  # the lowest seed, in any order
        cell = cell_of(given)
        assert cell["state"] == state
        assert np.isnan(cell["roc_auc"])
        assert cell["n_seeds"] == 0


def test_only_errors_count_as_missing():
    cell = cell_of(seeds(["error", "error"], [np.nan, np.nan]))
    assert cell["state"] == "error"


def test_the_last_of_repeated_rows_counts(tmp_path):
    rows = pandas.concat(
        [seeds(["timeout"], [np.nan]), seeds(["ok"], [0.9]), seeds(["ok"], [0.3], method="LOF")],
        ignore_index=True,
    )
    results = read_results(rows)
    assert results.n_repeated == 1
    assert results.cells.loc[results.cells["method"] == "KNN", "roc_auc"].item() == 0.9
    write_report(rows, tmp_path)
    assert "1 row was replaced by later rows" in read(tmp_path, "README.md")


def test_rows_are_unchanged_by_a_csv_file(tmp_path, all_rows):
    some = all_rows[all_rows["table"].isin(["45_wine", "22_magic.gamma", "25_musk"])]
    path = Path(tmp_path) / "rows.csv"
    some.to_csv(path, index=False)
    given, back = read_results(some), read_results(pandas.read_csv(path))
    pandas.testing.assert_frame_equal(given.cells, back.cells)


def test_runs_on_a_gpu_that_would_exceed_the_limit_on_one_core_count_as_missing_too(tmp_path):
    rows = macro_rows(methods=["DiffInt", "KNN", "IForest"])
    write_report(rows, tmp_path / "within")
    assert "AUC D" not in read(tmp_path / "within", "ranks.md")
    slow = (rows["method"] == "DiffInt") & rows["table"].isin(MACRO[:2])
    rows.loc[slow, "fit_seconds"] = 10 * rows["time_limit"].max()
    write_report(rows, tmp_path / "over")
    assert "AUC D" in read(tmp_path / "over", "ranks.md")
    ranks = pandas.read_csv(tmp_path / "over" / "ranks.csv")
    ranks = ranks[ranks["group"] == "overall"].set_index(["scheme", "metric", "method"])[
        "mean_rank"
    ]
    values = pandas.read_csv(tmp_path / "over" / "values.csv")
    values = values[(values["metric"] == "roc_auc") & (values["method"] == "DiffInt")]
    values.loc[values["table"].isin(MACRO[:2]), "rank"] = 3  # the number of methods
    assert ranks["D", "roc_auc", "DiffInt"] == pytest.approx(values["rank"].mean(), abs=1e-4)
    assert ranks["D", "roc_auc", "DiffInt"] > ranks["A", "roc_auc", "DiffInt"]
