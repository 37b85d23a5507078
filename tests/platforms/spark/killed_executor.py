"""Score a file on two executors, of which one is killed while it works.

    python killed_executor.py FOLDER

The folder has model.diffint and new.parquet, and gets scored.parquet.
"""

import os
import shutil
import signal
import sys
from pathlib import Path


def main(folder: Path) -> None:
    import psutil
    from pyspark.sql import SparkSession

    from diffint.spark import score

    mark = folder / "killed"

    def kill_once(batches):
        for batch in batches:
            yield batch
            if not mark.exists():
                mark.touch()
                executor = psutil.Process().parent().parent()  # of the daemon of the workers
                assert "CoarseGrainedExecutorBackend" in " ".join(executor.cmdline())
                os.kill(executor.pid, signal.SIGKILL)

    session = (
        SparkSession.builder.master("local-cluster[2,1,1024]")
        .config("spark.executor.memory", "512m")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.local.dir", str(folder))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    scored = score(folder / "model.diffint", session.read.parquet(str(folder / "new.parquet")))
    scored = scored.repartition(4).mapInArrow(kill_once, scored.schema)
    frame = scored.toArrow().to_pandas().sort_values("id", ignore_index=True)
    frame.to_parquet(folder / "scored.parquet")
    application = session.sparkContext.applicationId
    session.stop()
    # Executors write into the folder of Spark itself.
    home = Path(os.environ.get("SPARK_HOME") or Path(sys.modules["pyspark"].__file__).parent)
    shutil.rmtree(home / "work" / application, ignore_errors=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
