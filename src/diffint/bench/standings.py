"""Statistics of the results as tidy frames, with the paper's numbers if it has them."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas

from .baselines import DIFFINT_METHODS, METHODS
from .paper_numbers import (
    CRITICAL_DIFFERENCE,
    FRIEDMAN_CHI2,
    METRICS,
    POOL_SIZES,
    RANKS,
    Metric,
    RankKey,
)
from .protocol import TABLES, Regime
from .ranking import (
    SCHEMES,
    compare,
    complete_tables,
    critical_difference,
    friedman,
    mean_ranks,
    ranked_tables,
    table_ranks,
)
from .results import Results, is_plugin

_INLIER_POOL = ("TCCM", "AutoEncoder", "VAE")


def pools(results: Results, regime: Regime) -> dict[str, list[str]]:
    """Groups of methods that are ranked together, by name.

    'line-up' is the main one. In the paper regime, 'everyone' also has the methods that are not in
    the paper; 'inlier-only' and 'contaminated' split its methods by their training rows, with
    DiffInt in both: as in the paper, and in '… (DiffInt)' as recommended. On tables that are not
    the paper's there is only the line-up.
    """
    everyone = results.methods(regime)
    found = {"line-up": results.line_up(regime)}
    if regime == "fair" or not results.suite.in_paper:
        return found
    if set(everyone) != set(found["line-up"]):
        found["everyone"] = everyone
    contaminated = [
        name
        for name, method in METHODS.items()
        if method.in_paper and method.trains_on == "everything" and name in everyone
    ]
    inliers = [name for name in _INLIER_POOL if name in everyone]
    for diffint, ending in (("DiffInt-paper", ""), ("DiffInt", " (DiffInt)")):
        if diffint in everyone and inliers:
            found[f"inlier-only{ending}"] = [diffint, *inliers]
        if diffint in everyone and contaminated:
            found[f"contaminated{ending}"] = [diffint, *contaminated]
    return found


def comparable_with_paper(results: Results, regime: Regime, pool: str) -> bool:
    """Whether ranks in a pool can be compared with the paper's: most of its methods are there.

    Among four methods, for example, a rank of 4.10 would be the worst.
    """
    if not results.suite.in_paper or regime != "paper" or pool not in POOL_SIZES:
        return False
    members = pools(results, regime).get(pool, [])
    n_papers = sum(name in METHODS and METHODS[name].in_paper for name in members)
    return 4 * n_papers > 3 * POOL_SIZES[pool]


def rank_records(results: Results) -> pandas.DataFrame:
    """A row per regime, pool, scheme, group, metric and method: its mean rank, best first.

    Scheme B uses the tables that every method of the line-up (and of the pool) finished. In scheme
    D the limit of one core holds for runs on a GPU too.
    """
    records = []
    for regime, metric in _regimes_and_metrics(results):
        found = pools(results, regime)
        comparable = {pool for pool in found if comparable_with_paper(results, regime, pool)}
        for pool, group, scheme in product(found, results.groups, SCHEMES):
            wide = results.values(
                regime, metric, results.methods(regime), group, within_limit=scheme == "D"
            )
            if scheme == "B":
                finished = [*found[pool], *found["line-up"]]
                wide = wide.loc[complete_tables(wide[finished])]
            values = ranked_tables(wide[found[pool]])
            for method, rank in mean_ranks(values, scheme).items():
                key = RankKey(pool, scheme, group, metric, str(method))
                paper = RANKS.get(key) if pool in comparable else None
                records.append(
                    {
                        "regime": regime,
                        **key._asdict(),
                        "mean_rank": rank,
                        "n_tables": len(values),
                        "n_methods": values.shape[1],
                        "paper": paper.value if paper else np.nan,
                        "paper_source": paper.source if paper else "",
                    }
                )
    return pandas.DataFrame(records)


def friedman_records(results: Results) -> pandas.DataFrame:
    """A row per regime, pool (line-up, everyone), group and metric: Friedman's test.

    chi2, p and critical_difference are NaN if there are too few methods or tables.
    """
    records = []
    for regime, metric in _regimes_and_metrics(results):
        found = pools(results, regime)
        tested = [pool for pool in ("line-up", "everyone") if pool in found]
        for pool, group in product(tested, results.groups):
            values = ranked_tables(results.values(regime, metric, found[pool], group))
            n_tables, n_methods = values.shape
            test = friedman(values)
            difference = critical_difference(n_methods, n_tables) if test else np.nan
            comparable = group == "overall" and comparable_with_paper(results, regime, pool)
            paper_chi2 = FRIEDMAN_CHI2.value if comparable and metric == "roc_auc" else np.nan
            records.append(
                {
                    "regime": regime,
                    "pool": pool,
                    "group": group,
                    "metric": metric,
                    "n_methods": n_methods,
                    "n_tables": n_tables,
                    "chi2": test.chi2 if test else np.nan,
                    "p": test.p if test else np.nan,
                    "critical_difference": difference,
                    "paper_chi2": paper_chi2,
                    "paper_critical_difference": CRITICAL_DIFFERENCE.value
                    if comparable
                    else np.nan,
                }
            )
    return pandas.DataFrame(records)


def comparison_records(results: Results) -> pandas.DataFrame:
    """A row per regime, metric, DiffInt method or plugin, and each other method."""
    frames = []
    for regime, metric in _regimes_and_metrics(results):
        everyone = results.methods(regime)
        values = results.values(regime, metric, everyone)
        for method in everyone:
            if method in DIFFINT_METHODS or is_plugin(method):
                frame = compare(values, method)
                frame.insert(0, "method", method)
                frame.insert(0, "metric", metric)
                frame.insert(0, "regime", regime)
                frames.append(frame)
    if not frames:  # no DiffInt method and no plugin
        empty = pandas.DataFrame(columns=["a", "b"], dtype=np.float64)
        frames = [compare(empty, "a").iloc[:0].assign(method="", metric="", regime="")]
    return pandas.concat(frames, ignore_index=True)


def cell_records(results: Results) -> pandas.DataFrame:
    """A row per table, method, regime and metric: mean, sd, number of seeds, rank, state.

    rank: among all methods of the regime, the worst for one that did not finish (scheme A);
    line_up_rank: the same among the line-up, NaN for methods that are not in it. Expected tables
    without any row (of the paper, of a selection) are included, with no method and the state
    'no rows'.
    """
    frames = []
    in_paper = results.suite.in_paper
    scales = {name: table.scale for name, table in TABLES.items() if in_paper}
    for regime, metric in _regimes_and_metrics(results):
        cells = results.cells[results.cells["regime"] == regime]
        frame = cells[["table", "scale", "method", "regime"]].copy()
        frame["metric"] = metric
        frame["mean"], frame["sd"] = cells[metric], cells[f"{metric}_sd"]
        frame["n_seeds"] = cells["n_seeds"]
        for column, methods in (
            ("rank", results.methods(regime)),
            ("line_up_rank", results.line_up(regime)),
        ):
            ranks = table_ranks(results.values(regime, metric, methods)).stack()
            places = pandas.MultiIndex.from_frame(cells[["table", "method"]])
            frame[column] = ranks.reindex(places).to_numpy()
        frame["state"] = cells["state"]
        frame["over_limit"] = cells["over_limit"]
        absent = [
            {"table": name, "scale": scales.get(name, ""), "method": "", "regime": regime,
             "metric": metric, "n_seeds": 0, "state": "no rows", "over_limit": False}
            for name in results.absent_tables
        ]  # fmt: skip
        frames += [frame, pandas.DataFrame(absent, columns=frame.columns)]
    return pandas.concat([frame for frame in frames if len(frame)], ignore_index=True)


def time_records(results: Results) -> pandas.DataFrame:
    """A row per regime, method and group: time and memory on one core.

    fit_seconds, score_seconds, seconds (both): geometric means over the tables; a run that was
    stopped at its time limit counts with the limit (`at_least`), other missing runs are left out.
    peak_memory_mb: the largest. estimated: whether some fit ran on a GPU and its time on one core
    is an estimate. finished, timeout, out_of_memory, error, not_run: numbers of tables.
    """
    records = []
    for regime in results.regimes:
        for method in results.methods(regime):
            of_method = results.cells[
                (results.cells["regime"] == regime) & (results.cells["method"] == method)
            ]
            for group in results.groups:
                cells = of_method if group == "overall" else of_method[of_method["scale"] == group]
                if cells.empty:
                    continue
                stopped = (cells["state"] == "timeout") & cells["time_limit"].notna()
                fit = cells["fit_seconds"].where(~stopped, cells["time_limit"])
                total = fit + cells["score_seconds"].where(~stopped, 0.0)
                states = cells["state"].value_counts()
                records.append(
                    {
                        "regime": regime,
                        "method": method,
                        "group": group,
                        "fit_seconds": _geometric_mean(fit),
                        "score_seconds": _geometric_mean(cells["score_seconds"]),
                        "seconds": _geometric_mean(total),
                        "at_least": bool(stopped.any()),
                        "estimated": bool(cells["estimated"].any()),
                        "peak_memory_mb": float(cells["peak_memory_mb"].max()),
                        "finished": int(states.get("ok", 0)),
                        "timeout": int(states.get("timeout", 0)),
                        "out_of_memory": int(states.get("out of memory", 0)),
                        "error": int(states.get("error", 0)),
                        "not_run": int(states.get("not run", 0)),
                    }
                )
    return pandas.DataFrame(records)


def _geometric_mean(seconds: pandas.Series) -> float:
    known = seconds.dropna().clip(lower=1e-4)  # the resolution of the clock
    return float(np.exp(np.log(known).mean())) if len(known) else np.nan


def _regimes_and_metrics(results: Results) -> list[tuple[Regime, Metric]]:
    return [(regime, metric) for regime in results.regimes for metric in METRICS]
