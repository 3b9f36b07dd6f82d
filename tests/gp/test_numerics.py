"""The numerical setting: float64 inside, the caller's settings untouched outside, shapes that seldom change."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from aloq.gp import blas
from aloq.gp.numerics import CACHE_VARIABLE, cache_folder, computing, pad, padded_size


def settings() -> dict[str, object]:
    return dict(jax.config.values)


def test_computes_in_float64_and_leaves_settings_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    with jax.enable_x64(False):
        before = settings()
        with computing():
            assert jnp.ones(1).dtype == np.float64
        assert jnp.ones(1).dtype == np.float32
        assert settings() == before


def test_settings_come_back_after_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    before = settings()
    with pytest.raises(RuntimeError, match="stop"), computing():
        raise RuntimeError("stop")
    assert settings() == before


def compile_something(tmp_path: Path, setting: str) -> list[Path]:
    """Files in the folder after a fresh process compiled a program that takes long enough to be kept."""
    code = (
        "import jax, jax.numpy as jnp\n"
        "from aloq.gp.numerics import computing\n"
        "from aloq.gp.warp import beta_cdf\n"
        "with computing():\n"
        "    jax.jit(jax.grad(lambda x: beta_cdf(x, jnp.asarray(2.0), jnp.asarray(3.0))))(jnp.asarray(0.4)).block_until_ready()\n"
    )
    env = {**os.environ, CACHE_VARIABLE: setting, "HOME": str(tmp_path / "home"), "XDG_CACHE_HOME": ""}
    subprocess.run([sys.executable, "-c", code], check=True, env=env)
    return [path for path in tmp_path.rglob("*") if path.is_file()]


def test_compiled_programs_are_kept_in_the_chosen_folder(tmp_path: Path) -> None:
    assert compile_something(tmp_path, str(tmp_path / "chosen"))


def test_the_cache_can_be_switched_off(tmp_path: Path) -> None:
    assert compile_something(tmp_path, "off") == []


@pytest.mark.parametrize("word", ["off", "OFF", "0", "no"])
def test_words_that_switch_the_cache_off(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, word)
    assert cache_folder() is None


def test_a_folder_that_cannot_be_made_does_not_stop_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "file" / "below"))
    with computing():
        assert float(jnp.ones(1)[0]) == 1.0


def test_a_cache_of_the_caller_is_left_in_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "ours"))
    before = jax.config.values["jax_compilation_cache_dir"]
    jax.config.update("jax_compilation_cache_dir", str(tmp_path / "theirs"))
    try:
        with computing():
            assert jax.config.values["jax_compilation_cache_dir"] == str(tmp_path / "theirs")
    finally:
        jax.config.update("jax_compilation_cache_dir", before)


def test_blas_threads_are_given_back() -> None:
    library = blas._openblas()
    if library is None:
        pytest.skip("scipy is not built on its own OpenBLAS")
    before = library.scipy_openblas_get_num_threads()
    with blas.single_threaded():
        assert library.scipy_openblas_get_num_threads() == 1
    assert library.scipy_openblas_get_num_threads() == before


def test_padded_sizes_grow_by_a_half_at_most() -> None:
    sizes = [padded_size(n) for n in range(1, 1025)]
    assert sorted(set(sizes)) == [64, 96, 128, 192, 256, 384, 512, 768, 1024]
    assert all(n <= size < max(65, 1.5 * n) for n, size in enumerate(sizes, start=1))


def test_pad_keeps_rows_and_fills_the_rest() -> None:
    padded = pad(np.arange(6.0).reshape(3, 2), 5, fill=-1.0)
    np.testing.assert_array_equal(padded, [[0, 1], [2, 3], [4, 5], [-1, -1], [-1, -1]])
