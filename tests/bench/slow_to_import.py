"""A module whose import takes a minute, and that creates a file when it starts."""

import os
import time
from pathlib import Path

Path(os.environ["PLUGIN_LOG"]).touch()
time.sleep(60)
