"""What README and docs/benchmark.md say of the comparison of detectors."""

from __future__ import annotations

from collections.abc import Iterator

from .claims import Claim, claim
from .results import (
    METRICS,
    Comparison,
    best,
    frame,
    largest,
    lines_of,
    mean_value,
    number,
    ranks,
    ranks_on,
    row,
    selected,
    sentence,
)

ROC_AUC, AP = METRICS
MACRO, RIVALS = "lead/macrodata", "lead/rivals"
REPORTED = selected("lead/selection.csv", "macrodata", "report")
RIVAL_TABLES = selected("lead/rivals/tables.csv", "adbench")
SLOW = frame("bench/times.csv").query("method == 'DiffInt-paper' and regime == 'fair'")
SLOW_NAMES = [name.split("_", 1)[1] for name in SLOW["table"][SLOW["over_limit"]]]


def _both(opponent: str, folder: str = "bench", tables: list[str] | None = None):
    return [Comparison(metric, opponent, folder, tables) for metric in METRICS]


def readme() -> Iterator[Claim]:
    """The section Accuracy."""
    page = "README.md"
    of_all, ap_of_all = _both("KNN-standard", MACRO)
    half, ap_half = _both("KNN-standard", MACRO, REPORTED)
    yield claim(
        page,
        "On {} real tables (macrOData), trained on normal rows, `DiffInt()` is ahead of KNN on "
        "standardised rows, the strongest of four simple rivals there, by {} in ROC-AUC and {} in "
        "average precision (3 seeds; {} wins and {} losses, {} and {}; p = {} and {}), also on "
        "the half of the tables that no setting was chosen on ({} and {}, p = {} and {}).",
        of_all.n_tables, of_all.difference[1:], ap_of_all.difference[1:],
        of_all.wins, of_all.losses, ap_of_all.wins, ap_of_all.losses, of_all.p, ap_of_all.p,
        half.difference, ap_half.difference, half.p, ap_half.p,
    )  # fmt: skip
    yield claim(
        page,
        "it has the best mean rank of {}: {:.2f} by ROC-AUC and {:.2f} by average precision (10 "
        "seeds). KNN on standardised rows and KNN are next with {:.2f} / {:.2f} and {:.2f} / "
        "{:.2f}.",
        best(columns="n_methods")[0], *ranks("DiffInt"), *ranks("KNN-standard"), *ranks("KNN"),
    )  # fmt: skip
    ours, standard, knn, n_tables = mean_value("bench", ROC_AUC, ["DiffInt", "KNN-standard", "KNN"])
    yield claim(
        page,
        "By average precision it is ahead of KNN by {}, of KNN on standardised rows by {} and of "
        "LUNAR by {} (p = {}, {} and {}, each comparison taken alone); by ROC-AUC it is level with "
        "them (over {} tables {:.3f}, KNN {:.3f} and {:.3f}), and KNN has the better mean rank on "
        "the small tables.",
        *[Comparison(AP, rival).difference[1:] for rival in ("KNN", "KNN-standard", "LUNAR")],
        *[Comparison(AP, rival).p for rival in ("KNN", "KNN-standard", "LUNAR")],
        n_tables, ours, knn, standard,
    )  # fmt: skip
    yield claim(
        page,
        "`DiffInt()` has the best mean rank of {} methods, {:.2f} / {:.2f}. The paper's "
        "configuration is first of the paper's {} methods with {:.2f} / {:.2f} if it may use a "
        "GPU; with the time limit of the other methods on one core it does not finish on {} tables "
        "and has {:.2f} / {:.2f}, behind TCCM with {:.2f} / {:.2f}.",
        best(regime="paper", pool="everyone", columns="n_methods")[0],
        *ranks("DiffInt", regime="paper", pool="everyone"),
        best(regime="paper", columns="n_methods")[0],
        *ranks("DiffInt-paper", regime="paper"), len(SLOW_NAMES),
        *ranks("DiffInt-paper", regime="paper", scheme="D"),
        *ranks("TCCM", regime="paper", scheme="D"),
    )  # fmt: skip


def paper_regime() -> Iterator[Claim]:
    """docs/benchmark.md, ADBench, paper regime."""
    page = "docs/benchmark.md"
    yield claim(
        page,
        "Ranked with all {} methods, the recommended configuration has the best mean rank, {:.2f} "
        "/ {:.2f} by ROC-AUC / average precision, and finished on every table. Among the paper's "
        "{} methods alone, the paper configuration has the best, {:.2f} / {:.2f} (in the paper: "
        "{:.2f} / {:.2f}), and is first by both in all {} scale groups",
        best(regime="paper", pool="everyone", columns="n_methods")[0],
        *ranks("DiffInt", regime="paper", pool="everyone"),
        best(regime="paper", columns="n_methods")[0],
        *ranks("DiffInt-paper", regime="paper"),
        *ranks("DiffInt-paper", regime="paper", column="paper"),
        sum(
            best(regime="paper", group=group) == ["DiffInt-paper"] * 2
            for group in ("small", "medium", "large", "high-dimensional")
        ),
    )  # fmt: skip
    yield claim(
        page,
        "This rests on a GPU: on one core, within the 120 s that the other methods had, it would "
        "not have finished on {} tables, and with the worst rank there (scheme D) it has {:.2f} / "
        "{:.2f}, behind TCCM ({:.2f} / {:.2f}) and, by ROC-AUC, AutoEncoder ({:.2f} / {:.2f}). "
        "With all its runs, next are TCCM ({:.2f} / {:.2f}) and AutoEncoder ({:.2f} / {:.2f})",
        len(SLOW_NAMES),
        *[r for m in ("DiffInt-paper", "TCCM", "AutoEncoder")
          for r in ranks(m, regime="paper", scheme="D")],
        *ranks("TCCM", regime="paper"), *ranks("AutoEncoder", regime="paper"),
    )  # fmt: skip
    yield claim(
        page,
        "LUNAR, second in the paper ({:.2f} / {:.2f}), has {:.2f} / {:.2f} here",
        *ranks("LUNAR", regime="paper", column="paper"),
        *ranks("LUNAR", regime="paper"),
    )
    yield claim(
        page,
        "On inliers, on the {} tables that it finished, it is behind DiffInt by average precision.",
        Comparison(ROC_AUC, "LUNAR").n_tables,
    )


def fair_regime() -> Iterator[Claim]:
    """docs/benchmark.md, ADBench, fair regime."""
    page = "docs/benchmark.md"
    tests = {"regime": "fair", "pool": "line-up", "group": "overall", "metric": ROC_AUC}
    yield claim(
        page,
        "{} methods, DiffInt with ten seeds. The paper configuration has {:.2f} / {:.2f}, behind "
        "KNN-standard with {:.2f} / {:.2f} and KNN with {:.2f} / {:.2f}; the recommended "
        "configuration has the best mean rank by both metrics, {:.2f} / {:.2f}. Nemenyi's critical "
        "difference is {:.2f},",
        best(columns="n_methods")[0],
        *[r for m in ("DiffInt-paper", "KNN-standard", "KNN", "DiffInt") for r in ranks(m)],
        row("bench/tests.csv", **tests)["critical_difference"],
    )  # fmt: skip
    for opponent in ("KNN", "KNN-standard", "LUNAR", "LOF-standard", "DiffInt-paper"):
        by, ap = _both(opponent)
        yield claim(
            page,
            "| " + opponent + " | {} | {} | {} | {} | {} | {} | {} |",
            *(by.n_tables, by.counts, by.difference, by.p, ap.counts, ap.difference, ap.p),
        )
    ours, knn, standard, n_tables = mean_value("bench", ROC_AUC, ["DiffInt", "KNN", "KNN-standard"])
    yield claim(
        page,
        "over the {} tables that all three finished, the means are {:.3f}, {:.3f} (KNN) and {:.3f} "
        "(KNN-standard)",
        *(n_tables, ours, knn, standard),
    )
    yield claim(
        page,
        "the p are {} (KNN), {} (KNN-standard) and {} (LUNAR).",
        *(Comparison(AP, rival).p_holm for rival in ("KNN", "KNN-standard", "LUNAR")),
    )
    yield claim(
        page,
        "On the small tables KNN has the better mean rank by ROC-AUC ({:.2f}, DiffInt {:.2f}).",
        ranks("KNN", group="small")[0], ranks("DiffInt", group="small")[0],
    )  # fmt: skip
    yield claim(
        page,
        "DiffInt and KNN have {:.2f} / {:.2f} and {:.2f} / {:.2f} (scheme B), or {:.2f} / {:.2f} "
        "and {:.2f} / {:.2f} (scheme C), KNN-standard {:.2f} / {:.2f} and {:.2f} / {:.2f}.",
        *[r for s in "BC" for m in ("DiffInt", "KNN") for r in ranks(m, scheme=s)],
        *[r for s in "BC" for r in ranks("KNN-standard", scheme=s)],
    )
    second = best(scheme="B", place=1)
    yield claim(
        page,
        "Under scheme B {} is second by average precision with {:.2f}.",
        second[1], best(scheme="B", place=1, columns="mean_rank")[1],
    )  # fmt: skip
    yield claim(
        page,
        "**Where DiffInt is worse** than KNN, fair regime (DiffInt, KNN). ROC-AUC: {}. Average "
        "precision: {}. **Where it is better.** ROC-AUC: {}. Average precision: {}. The largest "
        "losses against KNN-standard are {} by ROC-AUC, and {} by average precision.",
        largest(ROC_AUC, "KNN", 6, losses=True), largest(AP, "KNN", 6, losses=True),
        largest(ROC_AUC, "KNN", 5, losses=False), largest(AP, "KNN", 6, losses=False),
        largest(ROC_AUC, "KNN-standard", 3, losses=True),
        largest(AP, "KNN-standard", 2, losses=True),
    )  # fmt: skip


def times() -> Iterator[Claim]:
    """docs/benchmark.md: times, and how many runs there are."""
    page = "docs/benchmark.md"
    fair = frame("bench/times.csv").query("regime == 'fair'")
    ours = fair[fair["method"] == "DiffInt"].sort_values("fit_seconds", ascending=False)
    assert [name.split("_")[1] for name in ours["table"][:2]] == ["InternetAds", "campaign"]
    yield claim(
        page,
        "fits in {:.1f} s (median over the tables, 16 fits at a time) and {:.0f} s at most "
        "(InternetAds, 1,555 features; next is campaign with {:.0f} s).",
        ours["fit_seconds"].median(), *ours["fit_seconds"][:2],
    )  # fmt: skip
    finished = fair[fair["state"] == "ok"].groupby("method").size()
    everywhere = sorted(finished[finished == fair["table"].nunique()].index)
    others = [name for name in everywhere if not name.startswith("DiffInt")]
    yield claim(
        page, "as did {} and {}. The paper configuration was", ", ".join(others[:-1]), others[-1]
    )
    yield claim(
        page,
        "in 120 s on {} of the {} tables ({}).",
        len(SLOW_NAMES), fair["table"].nunique(), ", ".join(sorted(SLOW_NAMES, key=str.lower)),
    )  # fmt: skip
    cells = frame("bench/values.csv").query("regime == 'fair' and metric == 'roc_auc'")
    seeds = cells["n_seeds"][cells["state"] == "ok"]
    yield claim(
        page,
        "{} have ten seeds, {} have three to nine (a run took more than 10 s, or some seeds "
        "failed) and {} has fewer",
        (seeds == 10).sum(), seeds.between(3, 9).sum(), (seeds < 3).sum(),
    )  # fmt: skip
    differ = int(sentence("bench/agreement.md", "By roc_auc,"))
    of = int(sentence("bench/agreement.md", "By roc_auc,", 1))
    yield claim(
        page,
        "agrees within two standard errors on all but {} of {} tables",
        *({2: "two"}.get(differ, differ), of),
    )
    rivals = frame("lead/rivals/adbench.csv").query("table == '6_cardio' and seed == 0")
    neutral, goad = rivals.set_index("method").loc[["NeuTraL", "GOAD"], "roc_auc"]
    yield claim(page, "instead of {:.2f} on cardio, GOAD 0.41 instead of {:.2f}.", neutral, goad)


def same_seed() -> Iterator[Claim]:
    """docs/benchmark.md: one seed on two processors."""
    page, source = "docs/benchmark.md", "same_seed.md"
    lines = [(number(line[1]), number(line[2])) for line in lines_of(source, "fair regime")]
    fits = ("the committed row, Intel Xeon", "AMD EPYC",
            "AMD EPYC, compiled for an older processor (without AVX-512)")  # fmt: skip
    for fit, figures in zip(fits, lines, strict=False):
        yield claim(page, f"| {fit} | {{:.3f}} | {{:.3f}} |", *figures)
    yield claim(
        page,
        "| {:.3f}, {:.3f}, {:.3f} | {:.3f}, {:.3f}, {:.3f} |",
        *[figures[column] for column in (0, 1) for figures in lines[3:]],
    )
    letter = {"table": "20_letter", "method": "DiffInt", "regime": "fair", "metric": AP}
    yield claim(
        page,
        "there are only {:.0f} anomalies in the test part, and each that comes first instead of "
        "far down adds 1/{:.0f} by itself. Over the ten splits its standard deviation is {:.3f}.",
        *[sentence(source, "fair regime;")] * 2, row("bench/values.csv", **letter)["sd"],
    )  # fmt: skip


def macrodata() -> Iterator[Claim]:
    """docs/benchmark.md, macrOData."""
    page, bold = "docs/benchmark.md", "**{:.2f}** | **{:.2f}** | **{:.3f}** | **{:.3f}** | | |"
    methods = ["DiffInt", "KNN-standard", "KNN", "LOF-standard", "IForest"]
    halves = (("all {}", None, methods), ("reporting half, {}", REPORTED, methods[:2]))
    for name, tables, shown in halves:
        means = [mean_value(MACRO, metric, methods, tables) for metric in METRICS]
        for i, method in enumerate(shown):
            rank = ranks(method, MACRO) if tables is None else ranks_on(tables, method, MACRO)
            figures = (*rank, means[0][i], means[1][i])
            if method == "DiffInt":
                yield claim(page, f"| {name} | DiffInt | {bold}", int(means[0][-1]), *figures)
                continue
            by, ap = _both(method, MACRO, tables)
            yield claim(
                page,
                "| | " + method + " | {:.2f} | {:.2f} | {:.3f} | {:.3f} | {} ({}) | {} ({}) |",
                *(*figures, by.counts, by.p, ap.counts, ap.p),
            )


def newer_rivals() -> Iterator[Claim]:
    """docs/benchmark.md, the newer rivals."""
    page = "docs/benchmark.md"
    for rival in ("DTE-C", "MCM", "NeuTraL", "SLAD", "ICL", "GOAD"):
        figures: list[object] = []
        for suite in ("adbench", "macrodata"):
            pair = _both(rival, f"{RIVALS}/{suite}")
            figures.append(pair[0].n_tables)
            figures += [text for one in pair for text in (one.counts, one.difference, one.p)]
        shown = " | {} | {}, {} ({}) | {}, {} ({})"
        yield claim(page, f"| {rival}{shown}{shown} |", *figures)
    adbench = {rival: _both(rival, f"{RIVALS}/adbench") for rival in ("DTE-C", "MCM")}
    yield claim(
        page,
        "not significant for DTE-C (p = {} and {}) and, by ROC-AUC, for MCM ({}); every other p is "
        "below 0.05.",
        adbench["DTE-C"][0].p, adbench["DTE-C"][1].p, adbench["MCM"][0].p,
    )  # fmt: skip
    one, macro = f"{RIVALS}/adbench", f"{RIVALS}/macrodata"
    yield claim(
        page,
        "On this one split of the {} ADBench tables KNN-standard has the best mean rank of {}, "
        "{:.2f} / {:.2f}, before DiffInt with {:.2f} / {:.2f}; over all ten seeds, without the "
        "newer rivals, DiffInt has it there ({:.2f} / {:.2f}, KNN-standard {:.2f} / {:.2f}). On "
        "the macrOData tables DiffInt has the best of {}, {:.2f} / {:.2f}, before KNN-standard "
        "with {:.2f} / {:.2f}.",
        len(RIVAL_TABLES), best(one, columns="n_methods")[0],
        *ranks("KNN-standard", one), *ranks("DiffInt", one),
        *ranks_on(RIVAL_TABLES, "DiffInt"), *ranks_on(RIVAL_TABLES, "KNN-standard"),
        best(macro, columns="n_methods")[0],
        *ranks("DiffInt", macro), *ranks("KNN-standard", macro),
    )  # fmt: skip


CLAIMS = [
    *readme(), *paper_regime(), *fair_regime(), *times(), *same_seed(), *macrodata(),
    *newer_rivals(),
]  # fmt: skip
