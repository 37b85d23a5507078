"""Card payments: learn normal payments, flag unusual ones, and print the reasons."""

import numpy as np
import pandas as pd

from diffint import DiffInt

PLANTED = {
    "a coffee for 900": {"merchant": 1, "amount": 900.0},
    "a hotel bill at 4 in the morning": {"merchant": 3, "amount": 180.0, "hour": 4.0},
    "the 25th payment of one day": {"merchant": 2, "payments_today": 25.0},
}


def make_payments(n_rows: int, seed: int) -> pd.DataFrame:
    """Three kinds of merchant (1 café, 2 grocer, 3 hotel), each with its own amounts and hours."""
    rng = np.random.default_rng(seed)
    merchant = rng.integers(1, 4, n_rows)
    usual_amount = np.array([6.0, 45.0, 190.0])[merchant - 1]
    usual_hour = np.array([9.0, 17.5, 13.0])[merchant - 1]
    return pd.DataFrame(
        {
            "merchant": merchant,
            "amount": np.round(usual_amount * rng.lognormal(0.0, 0.3, n_rows), 2),
            "hour": np.round(np.clip(rng.normal(usual_hour, 1.5), 0, 23.9), 1),
            "payments_today": rng.poisson(2.0, n_rows) + 1,
        }
    ).astype(float)


def main() -> None:
    """Fit on 2,000 normal payments; score 500 new ones, three of which were changed."""
    detector = DiffInt(false_positive_rate=0.01, random_state=0).fit(make_payments(2000, seed=0))
    new = make_payments(500, seed=1)
    for row, (what, changes) in enumerate(PLANTED.items()):
        for column, value in changes.items():
            new.loc[row, column] = value
        print(f"Planted in row {row}: {what}.")

    flagged = np.flatnonzero(detector.predict(new) == -1)
    caught = np.intersect1d(flagged, np.arange(len(PLANTED)))
    n_others = len(flagged) - len(caught)
    print(
        f"\n{len(flagged)} of {len(new)} payments are flagged: {len(caught)} of the {len(PLANTED)}"
    )
    print(f"planted ones and {n_others} others. At a false-positive rate of 1 %, about 5 of 497")
    print("normal payments are expected; read the reasons before you act.")

    why = detector.explain(new)
    nearest = detector.nearest_normal(new)
    for row in caught:
        print()
        print(why.text(int(row), n_reasons=2))
        print(nearest.text(int(row)))


if __name__ == "__main__":
    main()
