"""A module whose import does not end, and that creates a file when it starts."""

import os
import time
from pathlib import Path

Path(os.environ["PLUGIN_LOG"]).touch()
while True:
    time.sleep(1)
