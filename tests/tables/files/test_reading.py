"""Tables in files, as the command reads them."""

import os
import threading

import numpy as np
import pytest

from diffint.tables.files.reading import ReadingOptions, open_table


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes on this system")
def test_a_pipe_is_read_like_standard_input(tmp_path):
    """What `diffint fit <(command)` passes: a path that can be read once and has no size."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=("a,b\n1,2\n3,4\n",))
    writer.start()
    with open_table(str(pipe), ReadingOptions("csv")) as file:
        rows = [file.numbers(batch, ["a", "b"], first) for first, batch in file.batches(["a", "b"])]
    writer.join()
    assert np.concatenate(rows).tolist() == [[1.0, 2.0], [3.0, 4.0]]
