"""What README and the guides say of everything but the comparison of detectors."""

from __future__ import annotations

from collections.abc import Iterator

from .claims import Claim, claim
from .results import (
    above_the_rate,
    cell,
    frame,
    lines_after,
    lines_of,
    number,
    p,
    percent,
    sentence,
    signed,
    value,
)

README = "README.md"
KERNEL_SHAP, NEIGHBOURS = "KernelSHAP", "20 neighbours without the feature"
SHOWN, ORDER = "reasons shown (ours)", "order of reasons (ours)"
KINDS = ["out of range", "in range", "1 broken", "2 broken", "3 broken"]


def readme() -> Iterator[Claim]:
    """All but the section Accuracy."""
    check = "studies/paper-check.md"
    yield claim(
        README,
        "reproduces it (its accuracy on {:.0f} of {:.0f} tables;",
        *[sentence(check, "Holds in part:", i) for i in (0, 1)],
    )
    real = ("real_tables.md", "## Errors in a raw table", ("all columns", "DiffInt"))
    yield claim(
        README,
        "On raw diamonds ({:,.0f} rows, ten columns, {:.0f} known errors) `find` ranks the errors "
        "with an average precision of {:.3f}, and the {:.0f} gross ones with {:.3f} (means of "
        "three seeds;",
        sentence("real_tables.md", "## Errors in a raw table"),
        sentence("real_tables.md", "diamonds with"), value(*real, "AP of all errors"),
        sentence("real_tables.md", "known errors,"), value(*real, "AP of gross errors"),
    )  # fmt: skip
    yield from fresh_rows()
    yield from first_reasons()


def fresh_rows() -> Iterator[Claim]:
    """README and docs/explanations.md: how far the stated shares are from those of fresh rows."""
    source, all_tables = "explain_quality.md", sentence("explain_quality.md", "processors.")
    stated, off = (
        "Stated coverage minus that of fresh test inliers:",
        "Mean absolute difference of the two:",
    )
    apart, ranges, tables, least, chance = (sentence(source, off, i) for i in range(5))
    yield claim(
        README,
        "where at least {:.0f} fresh rows can be compared (on {:.0f} of {:.0f} tables) it is off "
        "by {:.3f} on average.",
        *(least, tables, all_tables, apart),
    )
    yield claim(
        "docs/explanations.md",
        "shares are {:.4f} too high, on average over {:,.0f} ranges with at least {:.0f} fresh "
        "comparable rows; where there are {:.0f}, which is so for {:,.0f} ranges of {:.0f} of the "
        "{:.0f} tables, they are off by {:.4f}, of which {:.4f} is chance.",
        *[sentence(source, stated, i) for i in range(3)],
        *(least, ranges, tables, all_tables, apart, chance),
    )


# Our method, the other one, the kind of rows: level.
LEVEL = [
    (ORDER, NEIGHBOURS, "1 broken"),
    (SHOWN, KERNEL_SHAP, "1 broken"),
    (ORDER, KERNEL_SHAP, "in range"),
    (SHOWN, KERNEL_SHAP, "in range"),
]


def first_reasons() -> Iterator[Claim]:
    """README and docs/explanations.md: the first reason that is shown, and rivals."""
    source, broken = "explain_quality.md", "1 broken"
    over_all, where_shown = "## Top-1:", "## Top-1 where a reason is shown"

    def first(method: str, kind: str = broken) -> float:
        return percent(source, over_all, method, kind)

    def both(method: str) -> list[float]:
        return [first(method), percent(source, where_shown, method, broken)]

    def lead(before: str, ours: str, rival: str, kind: str) -> tuple[float, float]:
        of = lines_after(source, before, f"{ours[0].upper()}{ours[1:]} minus each other method")
        (line,) = [line for line in of if line[0] == rival]
        text = line[KINDS.index(kind) + 1]
        return number(text), number(text, 1)

    for ours, rival, kind in LEVEL:
        apart, half = lead(over_all, ours, rival, kind)
        assert abs(apart) < half, f"{ours}, {rival}: not level"
    apart, half = lead(over_all, SHOWN, NEIGHBOURS, broken)
    assert apart < -half, "not behind"
    for before, ours in ((over_all, ORDER), (where_shown, SHOWN)):
        apart, half = lead(before, ours, KERNEL_SHAP, broken)
        assert apart > half, "not ahead"
    apart, half = lead(where_shown, SHOWN, NEIGHBOURS, broken)
    assert abs(apart) < half, "not level"
    named = percent(source, "## The reasons shown", "rows with a reason", broken)
    yield claim(
        README,
        "If one value of a row is replaced by an ordinary one that contradicts the others, a "
        "reason is shown in {:.0f} % of the rows. The first reason shown is that value in {:.0f} % "
        "of all rows, counting those without a reason as misses, and in {:.0f} % of the rows with "
        "a reason; KernelSHAP, which names a feature in every row, with thousands of evaluations "
        "of the model for each, puts it first in {:.0f} % and {:.0f} %, 20 neighbours found "
        "without the feature in {:.0f} % and {:.0f} %, and OutlierTree, which names none in many "
        "rows, in {:.0f} % and {:.0f} %. The order of doubt, which every row has, puts it first in "
        "{:.0f} % of all rows.",
        named, *[figure for one in (SHOWN, KERNEL_SHAP, NEIGHBOURS, "OutlierTree")
                 for figure in both(one)], first(ORDER),
    )  # fmt: skip
    yield claim(
        README,
        "An extreme value that is still in range is the first reason shown in {:.0f} % of all rows "
        "(order of doubt: {:.0f} %, KernelSHAP: {:.0f} %, level), one out of range in {:.0f} % "
        "({:.0f} %, {:.0f} %) ({:.0f} tables, {:.0f} seeds;",
        *[first(one, kind) for kind in ("in range", "out of range")
          for one in (SHOWN, ORDER, KERNEL_SHAP)],
        *[sentence(source, "processors.", i) for i in (0, 5)],
    )  # fmt: skip
    yield claim(
        "docs/explanations.md",
        "If one value contradicts the others, the order of doubt puts it first in {:.0f} % of the "
        "rows; a reason is shown in {:.0f} % of them, and the first reason shown is the value in "
        "{:.0f} % of all rows and in {:.0f} % of those with a reason",
        *(first(ORDER), named, *both(SHOWN)),
    )


def explanations() -> Iterator[Claim]:
    """docs/explanations.md"""
    page, source = "docs/explanations.md", "explanations.md"
    boxes = (source, "## Boxes", "mean")
    yield claim(
        page,
        "in the paper's configuration {:.0f} % of test inliers lie inside their own box",
        percent(*boxes, "paper: inliers"),
    )
    yield claim(
        page,
        "{:.0f} % of test inliers and {:.0f} % of anomalies lie inside their box. AUROC and "
        "average precision are {:.3f} and {:.3f}, without the term {:.3f} and {:.3f}.",
        percent(*boxes, "inliers inside"), percent(*boxes, "anomalies inside"),
        *[value(*boxes, column) for column in (3, 4, 9, 10)],
    )  # fmt: skip
    yield claim(
        page,
        "On test inliers these shares are the same on average (differences {} and {}).",
        signed(value(*boxes, "coverage alone: shown − test")), signed(value(*boxes, "together")),
    )  # fmt: skip
    tables = ("14_glass", "18_Ionosphere", "6_cardio")
    kinds = (
        ("paper", "the paper's formula"), ("recommended", "the paper's formula"),
        ("recommended", "ours"),
    )  # fmt: skip
    stability = "studies/stability.md"
    for beginning, column in (
        ("agreement of fits on the order of features (Spearman): glass, ionosphere, cardio", 3),
        ("the same with random intervals that were never trained", 6),
    ):
        yield claim(
            page,
            f"| {beginning} | {{}}, {{}}, {{}} | {{}}, {{}}, {{}} | {{}}, {{}}, {{}} |",
            *[
                cell(stability, "Spearman correlation", (name, *kind), column).split()[0]
                for kind in kinds for name in tables
            ],
        )  # fmt: skip
    ratios = [
        value("studies/faithfulness.md", "Mean ratio by the number", kind, "2") for kind in kinds
    ]
    yield claim(
        page,
        "rise of the score when the two most important constraints of a unit are violated, over "
        "that of random ones | {:.2f} | {:.2f} | {:.2f} |",
        *ratios,
    )
    small = [("14_glass", *kind) for kind in (kinds[2], ("minmax", "ours"))]
    yield claim(
        page,
        "On small tables ours is not stable: {:.2f} on glass, with 121 training rows. Which "
        "features have a [curve](method.md#scaling) then depends on the split, and a curve changes "
        'how tight a range is; without curves (`scaling="minmax"`) it is {:.2f}.',
        *[value(stability, "Spearman correlation", one, 3) for one in small],
    )


def patterns() -> Iterator[Claim]:
    """docs/patterns.md"""
    source, aims = "compact_patterns.md", "## Against what was aimed at"
    below = cell(source, aims, "ROC-AUC below that of the full model", "measured")
    yield claim(
        "docs/patterns.md",
        "the ROC-AUC of the distance is {:.3f} below that of the full model, on average {:.3f}. ",
        number(below), number(below, 1),
    )  # fmt: skip
    yield claim(
        "docs/patterns.md",
        "The F1 of the conditions of planted rectangles is {:.2f}.",
        value(source, aims, "F1 of planted conditions", 3),
    )
    yield claim(
        README,
        "These patterns alone rank anomalies {:.3f} below the full model in ROC-AUC "
        "({:.0f} tables, {:.0f} seeds;",
        number(below),
        sentence(source, "Means over"),
        sentence(source, "Means over", 1),
    )
    letter = (source, "## Tables", "20_letter")
    yield claim(
        "docs/patterns.md",
        "on letter it is {:.3f} instead of {:.3f}.",
        value(*letter, "compact set"),
        value(*letter, "full model"),
    )


def certificates() -> Iterator[Claim]:
    """docs/certificates.md"""
    page, shapes = "docs/certificates.md", ("soundness.md", "over many shapes", "all")
    lines = lines_of("soundness.md", "## `certify_region`\n")
    regions = sentence("soundness.md", "## `certify_region`") * len(lines)
    many_regions = value(*shapes, "regions")
    rows = value(*shapes, "rows scored") + sum(number(line[2]) for line in lines)
    yield claim(
        page,
        "no violation in a million random rows for `certify`, and none in {:.1f} million rows of "
        "{:,.0f} regions",
        rows / 1e6, regions + many_regions,
    )  # fmt: skip
    steps, shape_steps = 2 * 8 * 39, 2 * 10 * 29  # of the adversary in each region, without starts
    assert sentence("soundness.md", "random rows and") == steps + 16
    assert sentence("soundness.md", "near the best ones, and") == shape_steps + 20
    found = regions * steps + many_regions * shape_steps
    yield claim(
        page, "{:.1f} million of these rows are steps of a gradient-based adversary", found / 1e6
    )
    cost = "certified_cost.md"
    yield claim(
        page,
        "the bound is {:.2f} of the score and {:.2f} of the error alone",
        sentence(cost, "Mean of the sixteen, certified: bound / score"),
        sentence(cost, "Mean of the sixteen, certified: bound / score", 1),
    )
    mean, digits = (cost, "# The price", "mean, the sixteen (16)"), (cost, "## By table", "digits")
    yield claim(
        page,
        "So its bounds are tight ({:.2f} of the score) and its scores less accurate: ROC-AUC "
        "{:.3f} against {:.3f} over the sixteen tables, {:.2f} against {:.2f} on handwritten "
        "digits.",
        sentence(cost, "Mean of the sixteen, spectral: bound / score"),
        value(*mean, "spectral"), value(*mean, "certified"),
        value(*digits, "spectral"), value(*digits, "certified"),
    )  # fmt: skip
    slopes = {line[0]: number(line[7]) for line in lines_of(cost, "## By table")
              if line[7] != "–"}  # fmt: skip
    wide = [slopes.pop(name) for name in ("17_InternetAds", "25_musk", "48_arrhythmia")]
    yield claim(
        page,
        "(L is {:.0f} to {:.0f}, on tables with over 100 features {:.0f} to {:.0f})",
        *(min(slopes.values()), max(slopes.values()), min(wide), max(wide)),
    )
    certain = [("regions.md", "Mixed: the share", (kind, "all", "certain"))
               for kind in ("certified", "free")]  # fmt: skip
    yield claim(
        page,
        "on {:.0f} boxes over two or three features of six tables: of those that are truly "
        "certain, as far as a search can tell, the certified decoder decides {:.0f} % with 32 "
        "splits and {:.0f} % within 10 seconds, the free one {:.0f} % and {:.0f} %",
        sentence("regions.md", "describes what is measured."),
        *[percent(*which, column) for which in certain for column in (4, 5)],
    )


def decisions() -> Iterator[Claim]:
    """docs/decisions.md"""
    page, source = "docs/decisions.md", "bound_shapes.md"
    shapes = ("likelihood ratios, as used", "equal local levels", "linear", "constant width")
    selected = [value(source, "48 settings", shape, 1) for shape in shapes]
    yield claim(
        page,
        "{:.2f}, where {:.2f} follow from equal local levels or a linear shape, {:.2f} from a "
        "constant width and {:.2f} from the closed form; the true share of false alerts was "
        "{:.2f}. With 100 calibration rows the linear shape is better ({:.2f} against {:.2f}).",
        selected[0], selected[1], selected[3],
        value(source, "48 settings", "closed form (DKW)", 1),
        value(source, "48 settings", "(true share)", 1),
        value(source, "48 settings", shapes[2], 4), value(source, "48 settings", shapes[0], 4),
    )  # fmt: skip
    after = "From 5,000 rows on the differences are"
    yield claim(
        page,
        "from 5,000 rows on ROC-AUC is level ({}) and average precision {} lower (p = {:.3f})",
        signed(sentence("decisions.md", after)),
        f"{-sentence('decisions.md', after + ' -0.0009 (p = 0.41) and'):.3f}",
        sentence("decisions.md", after + " -0.0009 (p = 0.41) and", 1),
    )
    yield claim(
        page,
        "[Error rates and power of selections](results/decisions.md) are of the same {:.0f}",
        sentence("decisions.md", "of the script."),
    )
    yield from false_positives(page)


def false_positives(page: str) -> Iterator[Claim]:
    """README and docs/decisions.md: rates on average, and with a confidence."""
    source = "false_positives.md"
    n_tables, fewest, most, n_fits = (sentence(source, "of the script.", i) for i in (0, 3, 4, 5))
    rejected, n_tests = (int(sentence(source, "Over all rates:", i)) for i in (0, 1))
    rates = (0.01, 0.05, 0.1)
    runs, proven = ([above_the_rate(rate, rows) for rate in rates] for rows in (0, 5_000))
    shares = [one[what] for what in ("share", "expected") for one in runs]
    p_values = [one[what] for what in ("p", "p_expected") for one in runs]
    p_proven = [one["p_expected"] for one in proven]
    assert rejected == 0, f"{rejected} rates are exceeded"
    assert min(p_values[3:] + p_proven) > 0.05, "above the rate more often than a kept promise"
    for line in lines_of("decisions.md", "## False discoveries of `select`"):
        assert line[-1].startswith("0 of"), f"a rate of selected rows is exceeded: {line}"
    yield claim(
        README,
        "On {:.0f} tables no [rate of flagged rows](docs/results/false_positives.md) or [selected "
        "ones](docs/results/decisions.md) is significantly exceeded on average. With "
        "`confidence=0.95` and rates of {:g}, {:g} and {:g} %, {:.1f}, {:.1f} and {:.1f} % of the "
        "fits exceed the rate on test rows; as these are a sample, {:.1f}, {:.1f} and {:.1f} % "
        "would if the promise were kept exactly.",
        *(n_tables, *(100 * rate for rate in rates), *shares),
    )
    yield claim(
        page,
        "On {:.0f} tables of ADBench and macrOData that no setting was chosen on, {:.0f} to "
        "{:.0f} seeds each ({:.0f} fits), [none of {} rates](results/false_positives.md) of tables "
        "is significantly exceeded on average.",
        *(n_tables, fewest, most, n_fits, n_tests),
    )
    yield claim(
        page,
        "With `confidence=0.95` and rates of 1, 5 and 10 %, {:.1f}, {:.1f} and {:.1f} % of the "
        "fits flag more of the test inliers than the rate. Against 5 % this is tested over tables, "
        "as fits of one table share its rows: p = {}, {} and {} (one-sided). But the "
        "test inliers are a sample: if exactly 5 % of the fits were above the rate, {:.1f}, {:.1f} "
        "and {:.1f} % would seem to be; against this p = {}, {} and {}.",
        *shares[:3], *map(p, p_values[:3]), *shares[3:], *map(p, p_values[3:]),
    )  # fmt: skip
    yield claim(
        page,
        "From 5,000 rows on, where the promise is proven, {:.1f}, {:.1f} and {:.1f} % of the fits "
        "flag more, where a kept promise with rates of 1, 5 and 10 % has {:.1f}, {:.1f} and "
        "{:.1f} % (p = {}, {} and {}): nothing speaks against it, on few tables.",
        *[one[what] for what in ("share", "expected") for one in proven], *map(p, p_proven),
    )  # fmt: skip


def _share(text: str) -> str:
    """0.967 as 96.7 %, 1.000 as 100 %"""
    return f"{100 * number(text):.1f}".removesuffix(".0")


def moving() -> Iterator[Claim]:
    """docs/moving.md"""
    page, source = "docs/moving.md", "drift.md"
    kinds = [line[0] for line in lines_of(source, "Shares of batches")]
    for kind in kinds:
        first = not kind.startswith(("no drift", "the same"))
        here = (source, "Shares of batches", kind)
        seen, ks = _share(cell(*here, 2)), _share(cell(*here, 4))
        if first:
            yield claim(
                page,
                f"| {kind} | {{}} | {{}} % | {{}} % | {{}} % | {{}} % |",
                *(cell(*here, 1), seen, _share(cell(*here, 3)), ks, _share(cell(*here, 5))),
            )
        else:
            yield claim(page, f"| {kind} | {{}} | {{}} % | | {{}} % | |", cell(*here, 1), seen, ks)
    drifts = [(source, "Shares of batches", kind) for kind in kinds[3:]]
    batches = [number(cell(*one, 1)) for one in drifts]
    others = sum(n * value(*one, 6) for n, one in zip(batches, drifts, strict=True)) / sum(batches)
    yield claim(
        page,
        "Features that had not moved were named in {:.1f} % of these batches with a drift.",
        100 * others,
    )
    yield from streams(page)
    yield claim(
        page,
        "[{:.0f} % of the others fall silent",
        percent("accepting.md", "# Accepted rows", "mean", "fell silent"),
    )
    moved = ("refresh.md", "## Rows moved", "mean")
    yield claim(
        page,
        "Of the ranges of features that moved {:.0f} % are reported, of the others {:.1f} %.",
        percent(*moved, "ranges reported: features that moved"), percent(*moved, "others"),
    )  # fmt: skip


def streams(page: str) -> Iterator[Claim]:
    """Of drift in streams."""
    source, late = "drift_streams.md", "## Changes after 5,250 rows"
    alarms = (source, "## Without drift", "all")
    yield claim(
        page,
        "of {} streams of 100,000 rows without drift, {} ever raised an alarm",
        f"{value(*alarms, 'streams'):,.0f}", cell(*alarms, "with an alarm"),
    )  # fmt: skip
    names = {
        "mean": "mean by 0.5 standard deviations", "spread": "spread × 1.5",
        "correlation": "relations of a feature lost", "missing": "10 % of the cells missing",
        "new category": "a new category in 5 % of the rows",
    }  # fmt: skip

    def delay(change: str, way: str) -> str:
        rows = value(source, late, (change, way), "mean")
        return "not seen" if rows == 3000 else f"{rows:,.0f}"

    for change, name in names.items():
        here = (source, late, (change, "monitor"))
        pair = "one of the pair: " if change == "correlation" else ""
        yield claim(
            page,
            f"| {name} | {{}} % | {pair}{{}} % | {{}} | {{}} | {{}} |",
            _share(cell(*here, "within 1,000 rows")), _share(cell(*here, "feature first")),
            delay(change, "monitor"), delay(change, "KS, 500 rows"), delay(change, "MMD, 500 rows"),
        )  # fmt: skip
    yield claim(
        page,
        "needs {} rows for the mean (median {}, ours {})",
        delay("mean", "KS, 100 rows"), cell(source, late, ("mean", "KS, 100 rows"), "median"),
        cell(source, late, ("mean", "monitor"), "median"),
    )  # fmt: skip


def recommended() -> Iterator[Claim]:
    """docs/recommended.md"""
    page = "docs/recommended.md"
    means = frame("lead/settings.csv").groupby(["suite", "variant"])[
        ["roc_auc", "average_precision", "seconds"]
    ].mean()  # fmt: skip

    def difference(variant: str, other: str = "recommended", suite: str = "macrodata") -> list[str]:
        both = means.loc[(suite, variant)] - means.loc[(suite, other)]
        return [signed(both["roc_auc"]), signed(both["average_precision"])]

    def lead(variant: str) -> list[str]:
        return difference(variant, "KNN-standard")

    def leads(variant: str) -> list[str]:
        return [*lead(variant), *difference(variant, "KNN-standard", "adbench")]

    counts = [
        cell("lead/settings.md", "## macrodata", variant, column)
        for variant in ("no kept rows", "recommended") for column in (2, 5)
    ]  # fmt: skip
    yield claim(
        page,
        "has {} / {} on 150 macrOData tables and {} / {} on 18 ADBench tables.",
        *leads("recommended"),
    )
    yield claim(page, "without them it has {} / {} and {} / {}.", *leads("scaling='minmax'"))
    yield claim(
        page,
        "without them {} / {} and {} / {} ({} and {} macrOData tables instead of {} and {}).",
        *(*leads("no kept rows"), *counts),
    )
    yield claim(
        page, "0.05 instead of 0.02 gives {} / {} and {} / {}.", *leads("coverage_weight=0.05")
    )
    yield claim(page, "instead of 100 give {} / {} and {} / {},", *leads("at most 400 passes"))
    missing = ("missing_cells.md", "# Missing cells", "mean")
    complete, removed, imputed, ignored, flagged = (value(*missing, i) for i in range(1, 6))
    yield claim(
        page,
        "ROC-AUC falls from {:.3f} to {:.3f}; the same model after mean imputation has {:.3f}",
        *(complete, removed, imputed),
    )
    yield claim(
        page,
        'Leaving missing cells out (`missing="ignored"`) has {:.3f}: if cells are missing at '
        "random in new rows only, they are no signal, and the signal costs {:.3f}. In return, of "
        "rows that lost nine cells in ten, {:.1f} % are flagged",
        *(ignored, ignored - removed, 100 * flagged),
    )


def scale() -> Iterator[Claim]:
    """docs/scale.md"""
    page, source, times = "docs/scale.md", "spark_scale.md", "from Parquet to Parquet"
    alone = [value(source, times, kind, 1) for kind in ("without reasons", "with reasons")]
    ratios = [value(source, times, kind, 3) for kind in ("without reasons", "with reasons")]
    yield claim(
        page,
        "it scored ten million rows of ten columns in {:.0f} s, and in {:.0f} s with reasons for "
        "the {:.0f} % that were flagged. Spark on the same two cores took {:.2f} and {:.2f} times "
        "as long",
        *(*alone, sentence(source, "Reasons are for the"), *ratios),
    )
    one_row, one_line = (
        value(source, "With reasons:", what, 1)
        for what in ("one row scored, without reasons", "one line of reasons")
    )
    yield claim(
        page,
        "| scoring | {:.0f} hours of one core, {:.0f} minutes of a hundred | {:.1f} µs of a worker",
        *(one_row * 1e4 / 3600, one_row * 1e4 / 60 / 100, one_row),
    )
    yield claim(
        page,
        "| {:.0f} hours of one core: more than the scores | {:.1f} ms of a worker",
        *(one_line * 1e5 / 3600, one_line),
    )
    yield claim(
        page,
        "| two workers instead of one | {:.2f} times as fast |",
        value(source, "With reasons:", "two workers instead of one", 1),
    )
    yield claim(
        page,
        "| {:.0f} hours without reasons | {:.1f} s for ten million rows |",
        *(alone[0] * 1e3 / 3600, alone[0]),
    )
    yield claim(
        page,
        "| {:.0f} s for ten million rows on two cores |",
        value(source, "With reasons:", "`diffint.spark.fit` on the file, `local[2]`", 1),
    )


def command() -> Iterator[Claim]:
    """docs/command.md"""
    yield claim(
        "docs/command.md",
        "ten million rows of ten columns took {:.0f} s on two cores, and {:.0f} s with",
        value("command_scale.md", "# The command", "seconds", 1),
        value("spark_scale.md", "from Parquet to Parquet", "without reasons", 1),
    )


def platforms() -> Iterator[Claim]:
    """docs/platforms.md"""
    times = [value("ray_scale.md", "# Scoring with Ray", "3,000,000", i) for i in (5, 4)]
    yield claim(
        "docs/platforms.md",
        "On three million rows two actors took {:.2f} of the time of `diffint score` on the same "
        "two cores, and were {:.2f} times as fast as one;",
        *times,
    )


def performance() -> Iterator[Claim]:
    """docs/performance.md"""
    page = "docs/performance.md"
    yield claim(
        page,
        "1000 epochs each, takes **{:.0f} s**",
        sentence("gpu_paper_runs.md", "Training took", 1),
    )


CLAIMS = [
    *readme(), *explanations(), *patterns(), *certificates(), *decisions(), *moving(),
    *recommended(), *command(), *scale(), *platforms(), *performance(),
]  # fmt: skip
