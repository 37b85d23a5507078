"""Write a report on the example table and take its picture: ``python docs/make_report_picture.py``.

Needs Chromium and the packages of the tests. The report is written to demo/report.html.
"""

import io
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas
from PIL import Image

from diffint import DiffInt
from diffint.cli.demo import training_rows
from diffint.show.report import ScoredTable, build_report
from diffint.tables.datasets import breast_cancer

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))
from tests.show.report.browser import Browser, find_chromium  # noqa: E402

PICTURE = ROOT / "docs" / "images" / "report.png"
REPORT = ROOT / "demo" / "report.html"
SIZE = (1080, 1750)


def main() -> None:
    """Train on 214 benign biopsies; report on all other rows."""
    REPORT.parent.mkdir(exist_ok=True)
    REPORT.write_text(report(), encoding="utf-8")
    photograph(REPORT)


def report() -> str:
    """The report on the rows that are not in the training set."""
    table = breast_cancer()
    chosen = training_rows(table.y)  # the split of `diffint demo`
    train, test = np.flatnonzero(chosen), np.flatnonzero(~chosen)
    frame = pandas.DataFrame(table.x, columns=table.feature_names)
    detector = DiffInt(random_state=0, false_positive_rate=0.05).fit(frame.iloc[train])
    scores = detector.anomaly_score(frame.iloc[test])
    order = np.argsort(-scores, kind="stable")[: int((scores > -detector.offset_).sum())]
    ids = tuple(str(row) for row in test[order])
    scored = ScoredTable("biopsies.csv", scores, table.x[test[order]], ids, table.y[test])
    return build_report(detector, scored)


def photograph(page: Path) -> None:
    """Take a picture of the list of rows with one row opened; few colours keep the file small."""
    command = find_chromium()
    if command is None:
        raise SystemExit("Chromium was not found; install it to take the picture")
    with tempfile.TemporaryDirectory() as profile:
        browser = Browser(command, Path(profile))
        try:
            browser.resize(*SIZE)
            browser.open(page.resolve())
            browser.click("#items summary")
            browser.evaluate("scrollTo({top: 0, behavior: 'instant'})")
            browser.evaluate("document.activeElement.blur()")
            browser.settle()
            picture = browser.screenshot()
        finally:
            browser.close()
    with Image.open(io.BytesIO(picture)) as image:
        image.convert("RGB").quantize(64).save(PICTURE, optimize=True)


if __name__ == "__main__":
    main()
