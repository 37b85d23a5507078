"""The container: its checksum, and everything that can be wrong with a file as such."""

import itertools
import json
import os
import stat
import struct
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest
from benchmarks.attacks.forged_files import ModelFile, sealed
from safetensors import safe_open
from safetensors.numpy import save, save_file

from diffint import DiffInt, ModelFileError
from diffint.persist import array_file

from .forging import forge


class TestChecksum:
    def test_every_flipped_bit_is_refused(self, fitted, saved):
        content = bytearray(saved.read_bytes())
        rng = np.random.default_rng(0)
        # Half of them in the header, which is a small part of the file.
        header = 8 + struct.unpack("<Q", content[:8])[0]
        places = np.concatenate([rng.integers(0, header, 250), rng.integers(0, len(content), 250)])
        with open(saved, "r+b") as file:
            for place in places:
                bit = 1 << int(rng.integers(8))
                os.pwrite(file.fileno(), bytes([content[place] ^ bit]), place)
                with pytest.raises(ModelFileError, match=r"."):
                    DiffInt.load(saved)
                os.pwrite(file.fileno(), bytes([content[place]]), place)
        DiffInt.load(saved)

    def test_the_message_says_what_to_do(self, saved):
        content = bytearray(saved.read_bytes())
        content[-1] ^= 1
        saved.write_bytes(content)
        with pytest.raises(ModelFileError, match=r"checksum is wrong.*copy it again or fit"):
            DiffInt.load(saved)

    def test_another_spelling_of_the_same_header_is_refused(self, saved):
        """Where two spellings mean the same, another reader could see another model."""
        content = saved.read_bytes()
        size = struct.unpack("<Q", content[:8])[0]
        header, data = content[8 : 8 + size], content[8 + size :]
        for other in (
            header + b" " * 8,
            header.replace(b'{"__metadata__":', b'{"__metadata__": '),
            header.replace(b'"members.center"', b'"members.\\u0063enter"'),
            header.rstrip()[:-1] + b',"members.center":{"dtype":"F32"}}',
        ):
            saved.write_bytes(sealed(struct.pack("<Q", len(other)) + other + data))
            with pytest.raises(ModelFileError, match=r"array"):
                DiffInt.load(saved)

    def test_it_is_a_safetensors_file(self, fitted, saved):
        with safe_open(saved, framework="np") as file:
            center = file.get_tensor("members.center")
            assert len(file.metadata()["diffint_checksum"]) == 64
        np.testing.assert_array_equal(center[0], fitted.model_.members[0].center)

    def test_the_same_model_gives_the_same_bytes(self, fitted, saved, tmp_path):
        DiffInt.load(saved).save(tmp_path / "again")
        assert (tmp_path / "again").read_bytes() == saved.read_bytes()


class TestOtherFiles:
    def test_missing_file_and_folder(self, tmp_path):
        with pytest.raises(FileNotFoundError):
            DiffInt.load(tmp_path / "nowhere")
        with pytest.raises(IsADirectoryError):
            DiffInt.load(tmp_path)

    @pytest.mark.parametrize("path", ["/dev/zero", "/dev/null", "a pipe"])
    def test_what_is_not_a_regular_file(self, tmp_path, path):
        if path == "a pipe":
            path = tmp_path / "pipe"
            os.mkfifo(path)  # nobody writes to it: waiting for a writer would take forever
        elif not stat.S_ISCHR(os.stat(path).st_mode):
            pytest.skip(f"no {path}")
        with pytest.raises(ModelFileError, match="not a regular file"):
            DiffInt.load(path)

    @pytest.mark.parametrize(
        "content",
        [
            b"",
            b"hello",
            b"\x00" * 100,
            b"\xff" * 8,
            b"PK\x03\x04",
            struct.pack("<Q", 2**62),
            struct.pack("<Q", 2**20) + b"{",
            struct.pack("<Q", 2) + b"{}",
            struct.pack("<Q", 8) + b'{"__meta',
            struct.pack("<Q", 4) + b"null",
        ],
    )
    def test_garbage(self, tmp_path, content):
        path = tmp_path / "m"
        path.write_bytes(content)
        with pytest.raises(ModelFileError, match=r"not a (diffint )?model"):
            DiffInt.load(path)

    def test_another_safetensors_file(self, tmp_path):
        save_file({"a": np.ones(3)}, tmp_path / "m")
        with pytest.raises(ModelFileError, match="not a diffint model"):
            DiffInt.load(tmp_path / "m")

    def test_truncated_anywhere(self, saved):
        content = saved.read_bytes()
        for size in np.linspace(0, len(content) - 1, 25).astype(int):
            saved.write_bytes(content[:size])
            with pytest.raises(ModelFileError):
                DiffInt.load(saved)

    @pytest.mark.parametrize(("version", "remedy"), [(3, "fit the model again"), (7, "upgrade")])
    def test_other_versions(self, tmp_path, version, remedy):
        metadata = {"diffint_format": str(version), "diffint_model": "{}"}
        (tmp_path / "m").write_bytes(save({"a": np.ones(3)}, metadata))
        with pytest.raises(ModelFileError, match=rf"version {version}.*{remedy}"):
            DiffInt.load(tmp_path / "m")

    @pytest.mark.parametrize("version", [[], None, 3.5, float("inf"), "x", "9" * 5_000])
    def test_versions_that_are_none(self, saved, version):
        content = saved.read_bytes()
        size = struct.unpack("<Q", content[:8])[0]
        header = json.loads(content[8 : 8 + size])
        header["__metadata__"]["diffint_format"] = version
        text = json.dumps(header).encode()
        saved.write_bytes(struct.pack("<Q", len(text)) + text + content[8 + size :])
        with pytest.raises(ModelFileError):
            DiffInt.load(saved)


class TestArrays:
    def test_missing_and_extra_arrays_types_and_shapes(self, saved):
        original = saved.read_bytes()
        for change, message in [
            (lambda a: a.pop("members.center"), "'members.center' is missing"),
            (lambda a: a.update(extra=np.ones(3)), "'extra' does not belong"),
            (lambda a: a.update({"members.center": np.ones((2, 16, 4), "f4")}), "shape"),
            (lambda a: a.update({"members.center": np.ones((2, 16, 5))}), "type F64"),
        ]:
            saved.write_bytes(original)
            forge(saved, arrays=change)
            with pytest.raises(ModelFileError, match=message):
                DiffInt.load(saved)

    def test_bytes_that_are_neither_true_nor_false(self, saved):
        forge(saved, arrays=lambda a: a["members.is_pattern"].view(np.uint8).fill(2))
        with pytest.raises(ModelFileError, match="neither true nor false"):
            DiffInt.load(saved)


class TestWhileReading:
    def test_a_file_that_becomes_shorter(self, saved, monkeypatch):
        original = array_file._read_data

        def cut(file, n_bytes, digest):
            os.truncate(saved, 5_000)
            return original(file, n_bytes, digest)

        monkeypatch.setattr(array_file, "_read_data", cut)
        with pytest.raises(ModelFileError, match="became shorter"):
            DiffInt.load(saved)

    def test_a_file_that_is_replaced_all_the_time(self, fitted, saved, rows, tmp_path):
        """Each load gives one of the two models: what is hashed is what is used."""
        other = DiffInt.load(saved)
        other.set_params(false_positive_rate=0.2)
        contents = [saved.read_bytes()]
        other.save(saved)
        contents.append(saved.read_bytes())
        stop = threading.Event()

        def replace() -> None:
            for i in itertools.count():
                temporary = tmp_path / "temporary"
                temporary.write_bytes(contents[i % 2])
                os.replace(temporary, saved)
                if stop.is_set():
                    return

        thread = threading.Thread(target=replace)
        thread.start()
        try:
            for _ in range(50):
                rate = DiffInt.load(saved).false_positive_rate
                assert rate in (0.05, 0.2)
        finally:
            stop.set()
            thread.join()


def with_long_description(content: bytes) -> bytes:
    file = ModelFile.parse(content)
    file.description["members"] = [{"box_scale": 1.0, "n_rows": 3}] * 220_000
    return sealed(file.content())


def with_many_arrays(content: bytes) -> bytes:
    entry = {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}
    text = json.dumps({f"a{i}": entry for i in range(220_000)}).encode()
    return struct.pack("<Q", len(text)) + text + content


def described_as_larger(setting: str, content: bytes) -> bytes:
    file = ModelFile.parse(content)
    file.description["config"][setting] = 10**9
    file.description["training"]["epochs"] = file.description["config"]["epochs"]
    return sealed(file.content())


def test_wrong_files_are_refused_by_their_sizes(saved, tmp_path):
    """Before anything is built from them: in few steps, and a little more than their size."""
    content = saved.read_bytes()
    wrong = [with_long_description(content), with_many_arrays(content)]
    for setting in ("n_units", "n_members", "hidden_width", "epochs"):
        wrong.append(described_as_larger(setting, content))
    for i, changed in enumerate([*wrong, content, content]):
        (tmp_path / f"wrong-{i}").write_bytes(changed)
    os.truncate(tmp_path / f"wrong-{len(wrong)}", 100 * 2**20)
    os.truncate(tmp_path / f"wrong-{len(wrong) + 1}", 2**40)  # a hole: it takes no disk space
    script = f"""
    import resource, sys
    from pathlib import Path
    from diffint import DiffInt, ModelFileError
    import diffint.persist.model_file
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    steps = 0
    def count(frame, event, argument):
        global steps
        steps += 1
        return count
    for path in sorted(Path({str(tmp_path)!r}).glob("wrong-*")):
        limit = used + min(path.stat().st_size, 2**27) + 2**26
        resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
        steps = 0
        sys.settrace(count)
        try:
            DiffInt.load(path)
        except ModelFileError as error:
            sys.settrace(None)
            print("refused" if steps < 20_000 else f"{{steps}} steps for {{path}}")
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == ["refused"] * (len(wrong) + 2), done.stderr
