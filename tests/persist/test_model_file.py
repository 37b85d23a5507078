import contextlib
import json
import os
import struct
import subprocess
import sys
import textwrap
from dataclasses import fields
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file

from diffint import DiffInt, ModelFileError
from diffint.tables.atomic_write import atomic_write

from ..conftest import QUICK, make_rows

GOLDEN = Path(__file__).parents[1] / "golden"


@pytest.fixture
def saved(fitted, tmp_path):
    path = tmp_path / "model.diffint"
    fitted.save(path)
    return path


def header_of(content: bytes) -> tuple[dict, bytes]:
    size = struct.unpack("<Q", content[:8])[0]
    return json.loads(content[8 : 8 + size]), content[8 + size :]


def with_header(header: dict, data: bytes) -> bytes:
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


class TestRoundTrip:
    def test_scores_are_identical(self, fitted, saved, rows):
        loaded = DiffInt.load(saved)
        np.testing.assert_array_equal(loaded.anomaly_score(rows), fitted.anomaly_score(rows))
        np.testing.assert_array_equal(loaded.p_values(rows), fitted.p_values(rows))
        assert loaded.offset_ == fitted.offset_
        assert loaded.false_positive_rate == fitted.false_positive_rate
        np.testing.assert_array_equal(loaded.history_, fitted.history_)

    def test_all_values_are_restored(self, fitted, saved):
        loaded = DiffInt.load(saved).model_
        assert loaded.config == fitted.model_.config
        assert loaded.training == fitted.model_.training
        for member, original in zip(loaded.members, fitted.model_.members, strict=True):
            for field in fields(member):
                a, b = getattr(member, field.name), getattr(original, field.name)
                if isinstance(a, np.ndarray):
                    np.testing.assert_array_equal(a, b, err_msg=field.name)
        for field in fields(loaded.features):
            np.testing.assert_array_equal(
                getattr(loaded.features, field.name), getattr(fitted.model_.features, field.name)
            )

    def test_names_are_kept_and_checked(self, rows, tmp_path):
        frame = pd.DataFrame(rows, columns=["a", "b", "ü", "<script>", "e e"])
        DiffInt(**QUICK).fit(frame).save(tmp_path / "m")
        loaded = DiffInt.load(tmp_path / "m")
        assert list(loaded.feature_names_in_) == list(frame.columns)
        with pytest.raises(ValueError, match="same order"):
            loaded.anomaly_score(frame[frame.columns[::-1]])

    @pytest.mark.parametrize("decoder", ["free", "certified"])
    @pytest.mark.parametrize("scaling", ["minmax", "unit", "standard", "none"])
    def test_every_configuration(self, tmp_path, decoder, scaling):
        x = np.random.default_rng(0).normal(size=(60, 3))
        x[:5, 1] = np.nan
        detector = DiffInt(**QUICK, decoder=decoder, scaling=scaling).fit(x)
        detector.save(tmp_path / "m")
        np.testing.assert_array_equal(
            DiffInt.load(tmp_path / "m").anomaly_score(x), detector.anomaly_score(x)
        )

    def test_loads_and_scores_where_torch_cannot_be_imported(self, fitted, saved, rows, tmp_path):
        np.save(tmp_path / "x.npy", rows)
        script = f"""
        import sys
        class NoTorch:
            def find_spec(self, name, path=None, target=None):
                if name.partition(".")[0] == "torch":
                    raise ImportError("torch is blocked")
        sys.meta_path.insert(0, NoTorch())
        import numpy as np
        from diffint import DiffInt
        scores = DiffInt.load({str(saved)!r}).anomaly_score(np.load({str(tmp_path / "x.npy")!r}))
        np.save({str(tmp_path / "s.npy")!r}, scores)
        """
        subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=True)
        np.testing.assert_array_equal(np.load(tmp_path / "s.npy"), fitted.anomaly_score(rows))


class TestInvalidFiles:
    def test_missing_file_and_folder(self, tmp_path):
        with pytest.raises(FileNotFoundError):
            DiffInt.load(tmp_path / "nowhere")
        with pytest.raises(IsADirectoryError):
            DiffInt.load(tmp_path)

    @pytest.mark.parametrize("content", [b"", b"hello", b"\x00" * 100, b"\xff" * 8, b"PK\x03\x04"])
    def test_garbage(self, tmp_path, content):
        path = tmp_path / "m"
        path.write_bytes(content)
        with pytest.raises(ModelFileError, match="not a model file"):
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

    def test_a_newer_version_raises(self, saved):
        header, data = header_of(saved.read_bytes())
        header["__metadata__"]["diffint_format"] = "3"
        saved.write_bytes(with_header(header, data))
        with pytest.raises(ModelFileError, match=r"version 3.*upgrade"):
            DiffInt.load(saved)

    @pytest.mark.parametrize(
        "change",
        [
            lambda m: m["config"].update(n_units=10**15),
            lambda m: m["config"].update(n_members=10**9),
            lambda m: m["config"].update(epochs=-1),
            lambda m: m["config"].update(surprise=1),
            lambda m: m.update(feature_names=[]),
            lambda m: m.update(feature_names=["a"] * 10**6),
            lambda m: m.update(feature_names=[1, 2, 3, 4, 5]),
            lambda m: m.update(members=[]),
            lambda m: m["calibration"].update(n_scores=0),
            lambda m: m["calibration"].update(n_scores=10**15),
            lambda m: m["settings"].update(false_positive_rate=10**400),
            lambda m: m["config"].update(temperature=10**400),
            lambda m: m["members"][0].update(center_movement=10**400),
            lambda m: m["calibration"].update(kind="guess"),
            lambda m: m["settings"].update(false_positive_rate=7),
            lambda m: m.pop("training"),
            lambda m: m.update(config=[]),
        ],
    )
    def test_a_false_description_fails_to_load(self, saved, change):
        header, data = header_of(saved.read_bytes())
        model = json.loads(header["__metadata__"]["diffint_model"])
        change(model)
        header["__metadata__"]["diffint_model"] = json.dumps(model)
        saved.write_bytes(with_header(header, data))
        with pytest.raises(ModelFileError):
            DiffInt.load(saved)

    def test_deeply_nested_json(self, saved):
        header, data = header_of(saved.read_bytes())
        header["__metadata__"]["diffint_model"] = "[" * 200_000
        saved.write_bytes(with_header(header, data))
        with pytest.raises(ModelFileError):
            DiffInt.load(saved)

    def test_values_that_are_not_finite(self, saved):
        header, data = header_of(saved.read_bytes())
        start, _ = header["members.0.center"]["data_offsets"]
        data = data[:start] + struct.pack("<f", float("nan")) + data[start + 4 :]
        saved.write_bytes(with_header(header, data))
        with pytest.raises(ModelFileError, match="not finite"):
            DiffInt.load(saved)

    @settings(
        deadline=None,
        max_examples=60,
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )
    @given(position=st.integers(0, 20_000), byte=st.integers(0, 255))
    def test_flipped_bytes_at_worst_fail_to_load(self, fitted, tmp_path, position, byte):
        path = tmp_path / "m"
        fitted.save(path)
        content = bytearray(path.read_bytes())
        content[position % len(content)] = byte
        path.write_bytes(content)
        with contextlib.suppress(ModelFileError):
            DiffInt.load(path).anomaly_score(make_rows(3))


class TestWriting:
    def test_a_folder_and_a_missing_folder_raise(self, fitted, tmp_path):
        with pytest.raises(IsADirectoryError, match="is a folder"):
            fitted.save(tmp_path)
        with pytest.raises(FileNotFoundError, match="does not exist"):
            fitted.save(tmp_path / "missing" / "m")

    def test_an_unwritable_folder(self, fitted):
        with pytest.raises(OSError, match=r"."):
            fitted.save("/proc/model.diffint")

    def test_a_full_disk_keeps_the_old_file(self, fitted, saved, monkeypatch):
        before = saved.read_bytes()

        def no_space(_):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", no_space)
        with pytest.raises(OSError, match="No space"):
            fitted.save(saved)
        assert saved.read_bytes() == before
        assert os.listdir(saved.parent) == [saved.name]

    def test_an_interrupt_leaves_no_file(self, tmp_path, monkeypatch):
        def interrupt(*_):
            raise KeyboardInterrupt

        monkeypatch.setattr(os, "replace", interrupt)
        with pytest.raises(KeyboardInterrupt):
            atomic_write(tmp_path / "m", b"content")
        assert os.listdir(tmp_path) == []

    def test_unfitted(self, tmp_path):
        from sklearn.exceptions import NotFittedError

        with pytest.raises(NotFittedError):
            DiffInt().save(tmp_path / "m")
        assert os.listdir(tmp_path) == []

    def test_permissions_follow_the_umask_and_are_kept(self, fitted, saved):
        mask = os.umask(0)
        os.umask(mask)
        assert saved.stat().st_mode & 0o777 == 0o666 & ~mask
        saved.chmod(0o600)
        fitted.save(saved)
        assert saved.stat().st_mode & 0o777 == 0o600

    def test_a_symbolic_link_is_kept(self, fitted, saved, tmp_path):
        link = tmp_path / "link"
        link.symlink_to(saved)
        saved.write_bytes(b"")
        fitted.save(link)
        assert link.is_symlink()
        assert saved.stat().st_size > 0


@pytest.mark.parametrize("version", [2])
def test_files_of_every_version_can_be_read(version):
    """Written once by `python -m tests.golden`; never regenerated."""
    detector = DiffInt.load(GOLDEN / f"model-v{version}.diffint")
    expected = np.load(GOLDEN / f"scores-v{version}.npz")
    names = ["width", "height", "weight"]
    frame = pd.DataFrame(expected["x"], columns=names)
    np.testing.assert_allclose(
        detector.anomaly_score(frame), expected["scores"], rtol=1e-5, atol=1e-7
    )
    assert list(detector.feature_names_in_) == names
