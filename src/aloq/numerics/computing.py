"""The numerical setting of all computation: float64, with compiled functions kept on disk.

No setting outlives its `with` block. Importing or using aloq leaves the caller's JAX settings as
they were.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jax
from jax.experimental.compilation_cache import compilation_cache

from aloq.numerics.threads import single_threaded

CACHE_VARIABLE = "ALOQ_CACHE"
_depth = 0


@contextmanager
def computing() -> Iterator[None]:
    """Compute in float64, with the persistent compilation cache on."""
    with jax.enable_x64(True), single_threaded(), _compilation_cache():
        yield


def cache_folder() -> Path | None:
    """Return the folder for compiled programs: `ALOQ_CACHE`, else one in the user's cache folder.

    `ALOQ_CACHE=off` switches the cache off; the result is then None.
    """
    chosen = os.environ.get(CACHE_VARIABLE, "")
    if chosen.lower() in ("off", "0", "no", "false"):
        return None
    if chosen:
        return Path(chosen).expanduser()
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", "~/AppData/Local"))
    elif sys.platform == "darwin":
        base = Path("~/Library/Caches")
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache")
    return (base / "aloq" / "compiled").expanduser()


@contextmanager
def _compilation_cache() -> Iterator[None]:
    """Use aloq's own compilation cache unless the caller has one. Restore all settings after."""
    global _depth
    folder = cache_folder()
    if _depth or folder is None or _setting("jax_compilation_cache_dir") is not None or not _writable(folder):
        yield
        return
    wanted = {
        "jax_compilation_cache_dir": str(folder),
        "jax_persistent_cache_min_compile_time_secs": 0.1,
        "jax_persistent_cache_min_entry_size_bytes": -1,
        "jax_persistent_cache_enable_xla_caches": "none",
    }
    before = {name: _setting(name) for name in wanted}
    _depth += 1
    try:
        for name, value in wanted.items():
            _set(name, value)
        compilation_cache.reset_cache()
        yield
    finally:
        _depth -= 1
        for name, value in before.items():
            _set(name, value)
        compilation_cache.reset_cache()


def _setting(name: str) -> Any:
    return getattr(jax.config, name)


def _set(name: str, value: Any) -> None:
    jax.config.update(name, value)  # type: ignore[no-untyped-call]


def _writable(folder: Path) -> bool:
    """Return whether the folder can be written to. Makes it if need be.

    Never raises: a home folder without write permission must not stop a study.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError:
        return False
    return os.access(folder, os.W_OK)
