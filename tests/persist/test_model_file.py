import os
import subprocess
import sys
import textwrap
from dataclasses import fields
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from benchmarks.attacks.forged_files import ModelFile, sealed

from diffint import DiffInt, InputError, ModelFileError
from diffint.core.config import MISSING_WORDS
from diffint.tables.atomic_write import atomic_write

from ..conftest import QUICK
from .forging import forge

GOLDEN = Path(__file__).parents[1] / "golden"


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
    @pytest.mark.parametrize("scaling", ["adaptive", "minmax", "unit", "standard", "none"])
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
    @pytest.mark.parametrize(
        "change",
        [
            lambda m: m["config"].update(n_units=10**15),
            lambda m: m["config"].update(n_members=10**9),
            lambda m: m["config"].update(epochs=-1),
            lambda m: m["config"].update(epochs=4),
            lambda m: m["config"].update(surprise=1),
            lambda m: m["config"].update(temperature=10**400),
            lambda m: m["config"].update(temperature=1e-300),
            lambda m: m.update(config=[]),
            lambda m: m.update(surprise=1),
            lambda m: m.update(n_features=0),
            lambda m: m.update(n_features=10**6),
            lambda m: m.update(n_features="5"),
            lambda m: m.update(n_features=True),
            lambda m: m.update(name_bytes=-1),
            lambda m: m.update(n_scores=0),
            lambda m: m.update(n_scores=10**15),
            lambda m: m.update(calibration_kind="guess"),
            lambda m: m["settings"].update(false_positive_rate=10**400),
            lambda m: m["settings"].update(false_positive_rate=7),
            lambda m: m["settings"].update(id_column="\ud800"),
            lambda m: m["settings"].update(id_column=1),
            lambda m: m["settings"].update(named=1),
            lambda m: m["config"].update(missing_words="NA"),
            lambda m: m["config"].update(missing_words=[1]),
            lambda m: m["config"].update(missing_words=["\ud800"]),
            lambda m: m["config"].update(missing_words=["x"] * 1_001),
            lambda m: m["training"].update(epochs=0),
            lambda m: m["training"].update(n_rows=0),
            lambda m: m["training"].update(seconds=float("nan")),
            lambda m: m["training"].update(created="a\nb"),
            lambda m: m["training"].update(version="x" * 1_000),
            lambda m: m.update(flag_rates=dict.fromkeys(_RATES, 1)),  # the decoder is free
            lambda m: m.pop("training"),
        ],
    )
    def test_a_false_description_fails_to_load(self, saved, change):
        forge(saved, describe=change)
        with pytest.raises(ModelFileError, match="model"):
            DiffInt.load(saved)

    @pytest.mark.parametrize("text", ["[" * 200_000, "9" * 6_000, "", "null", "[]", "{}"])
    def test_a_description_that_is_no_description(self, saved, text):
        file = ModelFile.parse(saved.read_bytes())
        file.description = text
        saved.write_bytes(sealed(file.content()))
        with pytest.raises(ModelFileError, match="description is damaged"):
            DiffInt.load(saved)

    def test_names_that_are_not_utf8_or_do_not_add_up(self, saved):
        original = saved.read_bytes()
        for name, place, value in [
            ("features.name_bytes", 1, 0xFF),
            ("features.name_ends", 0, -1),
            ("features.name_ends", 1, 10**9),
            ("features.name_ends", -1, 0),
        ]:
            saved.write_bytes(original)
            forge(saved, arrays=lambda a, n=name, p=place, v=value: a[n].__setitem__(p, v))
            with pytest.raises(ModelFileError, match="name"):
                DiffInt.load(saved)

    def test_a_name_that_has_no_encoding_is_not_saved(self, rows, tmp_path):
        frame = pd.DataFrame(rows, columns=pd.Index([*"abcd", "e\ud800"], dtype=object))
        detector = DiffInt(**QUICK).fit(frame)
        with pytest.raises(InputError, match="rename the column"):
            detector.save(tmp_path / "m")
        assert os.listdir(tmp_path) == []


_RATES = ("n_rows", "out_of_support", "strict", "strict_envelope", "beyond_envelope")


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


@pytest.mark.parametrize("version", [4, 5, 6])
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
    assert detector.missing_words == (() if version >= 6 else MISSING_WORDS)
