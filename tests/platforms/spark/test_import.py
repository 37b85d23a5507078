"""The core does not need Spark, and without it the module says what to install."""

import subprocess
import sys


def test_without_pyspark():
    code = "import sys; sys.modules['pyspark'] = None; import diffint.spark"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    last = done.stderr.strip().splitlines()[-1]
    assert "diffint.spark needs the package pyspark" in last
    assert "pip install 'diffint-ad[spark]'" in last


def test_the_core_does_not_import_pyspark():
    code = (
        "import sys, diffint; diffint.DiffInt; import diffint.platforms.score_frame, "
        "diffint.platforms.model_bytes; assert 'pyspark' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
