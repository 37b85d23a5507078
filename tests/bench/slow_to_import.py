"""A module that takes its time, and says when it has begun."""

import os
import time
from pathlib import Path

Path(os.environ["PLANTED_LOG"]).touch()
time.sleep(60)
