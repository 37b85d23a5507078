"""Write texts of flagged rows for a person who is to say, from the text alone, what is wrong.

    python benchmarks/texts_to_read.py [--seed 0] [--per-table 10] -o FOLDER

Five tables: the diamonds with their known errors, which the detector was trained on; penguins,
mammals, benign biopsies and wines with an error in one column, as people make them: a number in
another unit (10, 100 or 1,000 times as large or small), a number or a category of another row. The
rows are not flagged before the error was made, and flagged after, at a rate of 5 %.

`texts.md` has the texts, in random order; `truth.csv` has, for each of them, the columns that are
wrong, the kind of the error, and whether the text gives a reason to doubt one of them at all, and
first.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_wine

import real_data
from diffint import DiffInt, find_anomalies
from diffint.explain.local_explanation import LocalExplanation
from explain_mixed import culprits

RATE = 0.05
_TRAINED_SHARE = 0.8
_FACTORS = (0.001, 0.01, 0.1, 10, 100, 1_000)
_MOST_TRIES = 100  # rows with an error that is not flagged, for each text


class Text(NamedTuple):
    """A text to read, and what is wrong with its row."""

    table: str
    text: str
    wrong: set[str]
    kind: str
    named: list[str]  # the columns with a reason, in order

    def names_wrong(self, most: int | None = None) -> bool:
        """Whether one of the first reasons is to doubt a wrong column."""
        return bool(self.wrong & set(self.named[:most]))


def benign_biopsies() -> pd.DataFrame:
    """357 biopsies: the first ten numbers."""
    data = load_breast_cancer(as_frame=True)
    return pd.DataFrame(data.data[data.target == 1].iloc[:, :10])


def wines() -> pd.DataFrame:
    """178 wines: 13 numbers and the grower."""
    data = load_wine(as_frame=True)
    return pd.DataFrame(data.data).assign(grower=data.target.map({0: "A", 1: "B", 2: "C"}))


def mammals() -> pd.DataFrame:
    """83 mammals, without their names."""
    return real_data.sleep().drop(columns=["name", "genus"])


PLANTED = {
    "penguins": lambda: real_data.penguins().drop(columns="year"),
    "mammals": mammals,
    "biopsies": benign_biopsies,
    "wines": wines,
}


def planted_texts(name: str, count: int, rng: np.random.Generator) -> Iterator[Text]:
    """Texts of rows of a table that an error was made in."""
    table = PLANTED[name]()
    shuffled = table.iloc[rng.permutation(len(table))]
    n_train = int(_TRAINED_SHARE * len(table))
    train, test = shuffled.iloc[:n_train], shuffled.iloc[n_train:]
    detector = DiffInt(false_positive_rate=RATE, random_state=0).fit(train)
    normal = test[detector.predict(test) == 1]
    found = 0
    for _ in range(count * _MOST_TRIES):
        row = normal.iloc[[int(rng.integers(len(normal)))]].copy()
        column, kind = make_error(row, train, rng)
        if column is None or detector.predict(row)[0] == 1:
            continue
        found += 1
        yield text_of(name, detector.explain(row), 0, {column}, kind)
        if found == count:
            return


def make_error(
    row: pd.DataFrame, train: pd.DataFrame, rng: np.random.Generator
) -> tuple[str | None, str]:
    """Change one value of a row in place: the column, None if nothing was changed, and the kind."""
    column = str(rng.choice(train.columns))
    before = row[column].iloc[0]
    is_number = pd.api.types.is_numeric_dtype(train[column])
    if pd.isna(before):
        return None, ""
    if is_number and rng.random() < 0.5:
        row[column] = float(before) * float(rng.choice(_FACTORS))
        kind = "other unit"
    else:
        row[column] = rng.choice(train[column].dropna().to_numpy())
        kind = "of another row"
    return (None if row[column].iloc[0] == before else column), kind


def diamond_texts(count: int, rng: np.random.Generator) -> Iterator[Text]:
    """Texts of diamonds with known errors, which the detector was trained with."""
    table = real_data.diamonds()
    known = culprits(table)
    chosen = rng.permutation(list(known))
    detector = find_anomalies(table, random_state=0).detector
    why = detector.explain(table.iloc[chosen])
    flagged = [i for i in range(len(why)) if why.flagged[i]][:count]
    for i in flagged:
        yield text_of("diamonds", why, i, known[int(chosen[i])], "known")


def text_of(table: str, why: LocalExplanation, row: int, wrong: set[str], kind: str) -> Text:
    """The text of a row, without its headline."""
    lines = [f"{rank}. {reason}" for rank, reason in enumerate(why.reasons(row), 1)]
    named = [why.feature_names[j] for j in why.doubted(row)]
    return Text(table, "\n".join(lines), wrong, kind, named)


def main() -> None:
    """Write the texts and the truth."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--per-table", type=int, default=10)
    parser.add_argument("-o", "--output", type=Path, required=True, help="a folder")
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    texts = list(diamond_texts(options.per_table, rng))
    for name in PLANTED:
        texts += planted_texts(name, options.per_table, rng)
    texts = [texts[i] for i in rng.permutation(len(texts))]
    options.output.mkdir(parents=True, exist_ok=True)
    shown = [f"## {i}: one of the {t.table}\n\n{t.text}\n" for i, t in enumerate(texts, 1)]
    (options.output / "texts.md").write_text("\n".join(shown), encoding="utf-8")
    with (options.output / "truth.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["text", "table", "kind", "wrong", "named", "named_first"])
        for i, t in enumerate(texts, 1):
            named = int(t.names_wrong()), int(t.names_wrong(1))
            writer.writerow([i, t.table, t.kind, " ".join(sorted(t.wrong)), *named])
    n_named, n_first = (sum(t.names_wrong(most) for t in texts) for most in (None, 1))
    print(f"{len(texts)} texts; {n_named} have a reason to doubt a wrong column, {n_first} first")


if __name__ == "__main__":
    main()
