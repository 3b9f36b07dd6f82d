"""The numerical setting: on inside, gone outside."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from aloq.numerics import threads
from aloq.numerics.computing import CACHE_VARIABLE, cache_folder, computing

SETTINGS = ("jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs", "jax_persistent_cache_min_entry_size_bytes")


def settings() -> dict[str, object]:
    return {name: getattr(jax.config, name) for name in SETTINGS}


@pytest.fixture(autouse=True)
def _callers_float32() -> Iterator[None]:
    with jax.enable_x64(False):
        yield


def test_computing_is_in_float64_and_leaves_float32(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "compiled"))
    before = settings()
    with computing():
        assert jnp.asarray(np.ones(1)).dtype == jnp.float64
        assert settings()["jax_compilation_cache_dir"] == str(tmp_path / "compiled")
        with computing():
            assert settings()["jax_compilation_cache_dir"] == str(tmp_path / "compiled")
        assert settings()["jax_compilation_cache_dir"] == str(tmp_path / "compiled")
    assert jnp.asarray(np.ones(1)).dtype == jnp.float32
    assert settings() == before


def test_settings_come_back_after_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    before = settings()
    with pytest.raises(KeyboardInterrupt), computing():
        raise KeyboardInterrupt
    assert settings() == before
    assert jnp.asarray(np.ones(1)).dtype == jnp.float32


def test_compiled_programs_are_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))

    @jax.jit
    def slow_to_compile(x: jax.Array) -> jax.Array:
        for _ in range(40):
            x = jnp.linalg.cholesky(x @ x.T + jnp.eye(3))
        return x

    with computing():
        slow_to_compile(jnp.eye(3)).block_until_ready()
    assert list(tmp_path.iterdir())


def test_a_callers_own_cache_is_respected(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "ours"))
    before = settings()["jax_compilation_cache_dir"]
    jax.config.update("jax_compilation_cache_dir", str(tmp_path / "theirs"))  # type: ignore[no-untyped-call]  # JAX's own is bare
    try:
        with computing():
            assert settings()["jax_compilation_cache_dir"] == str(tmp_path / "theirs")
    finally:
        jax.config.update("jax_compilation_cache_dir", before)  # type: ignore[no-untyped-call]  # as above
    assert not (tmp_path / "ours").exists()


@pytest.mark.parametrize("off", ["off", "OFF", "0", "no", "false"])
def test_the_cache_can_be_switched_off(monkeypatch: pytest.MonkeyPatch, off: str) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, off)
    assert cache_folder() is None
    with computing():
        assert settings()["jax_compilation_cache_dir"] is None


def test_the_cache_lies_in_the_users_cache_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(CACHE_VARIABLE, raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "aloq" / "compiled"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "aloq" / "compiled"


def test_a_folder_that_cannot_be_made_stops_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "file" / "compiled"))
    with computing():
        assert settings()["jax_compilation_cache_dir"] is None
        assert float(jnp.asarray(1.0) + 1) == 2


def test_blas_threads_come_back() -> None:
    libraries = threads._openblas()
    if not libraries:
        pytest.skip("scipy and NumPy were built on another BLAS")
    before = [count() for count, _ in libraries]
    with computing():
        assert all(count() == 1 for count, _ in libraries)
    assert [count() for count, _ in libraries] == before
