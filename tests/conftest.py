"""What all tests share."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from aloq.numerics.compiled import forget_programs
from aloq.numerics.computing import CACHE_VARIABLE, computing

# Folders of functions on arrays, which run inside `computing` wherever aloq calls them.
ARRAYS = ("gp", "quadrature", "acquisition")

# Each compiled function takes about 17 memory maps of its process. Linux allows 65,530, and
# compiling crashes the process where there are no more.
MANY_MAPS = 40_000

# Compiling takes most of the time of a first run of the tests. With the first options it takes less
# than half, while what is compiled takes longer. They do not divide a program among threads, since
# several processes compile at once. Slow tests compute for long: the second compile better.
QUICK = (
    "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true --xla_cpu_use_fusion_emitters=false "
    "--xla_cpu_parallel_codegen_split_count=1"
)
THOROUGH = "--xla_backend_optimization_level=1 --xla_cpu_use_fusion_emitters=false"

# JAX makes many objects while it traces a function. Looking for garbage each time some hundreds
# have been made takes a sixteenth of the time.
gc.set_threshold(100_000, 20, 50)

# The same examples on every run, and no deadline: the first call of a JAX function compiles.
settings.register_profile("aloq", derandomize=True, deadline=None)
settings.load_profile("aloq")


# What a shell runs in the background ignores Ctrl-C, and so do the processes that it starts: tests
# that interrupt one would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config: pytest.Config) -> None:
    """Compile quickly, and share what is compiled between the processes and runs of the tests.

    JAX reads the options when it is first used. Compiled functions are found by their content.
    """
    os.environ.setdefault("XLA_FLAGS", THOROUGH if config.getoption("markexpr") == "slow" else QUICK)
    cache: pytest.Cache | None = getattr(config, "cache", None)  # `-p no:cacheprovider` leaves it out
    if cache is not None:
        os.environ.setdefault(CACHE_VARIABLE, str(cache.mkdir("aloq-compiled")))


@pytest.fixture(scope="module", autouse=True)
def _as_aloq_computes(request: pytest.FixtureRequest) -> Iterator[None]:
    if request.path.parent.name in ARRAYS:
        with computing():
            yield
    else:
        yield


@pytest.fixture(scope="module", autouse=True)
def _few_programs() -> Iterator[None]:
    """Forget compiled functions after a file of tests if they are many.

    They are found again in the cache on the disk.
    """
    yield
    maps = Path("/proc/self/maps")  # of Linux alone
    if maps.exists() and maps.read_bytes().count(b"\n") > MANY_MAPS:
        forget_programs()
        gc.collect()


@pytest.fixture
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the test in an empty folder."""
    monkeypatch.chdir(tmp_path)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what needs the physics engine where it cannot be loaded, and say what is missing."""
    if item.get_closest_marker("hexapod") is None:
        return
    # Not above: what is imported there is imported before warnings are errors.
    from aloq.problem.errors import UnavailableError
    from aloq.tasks.hexapod.extra import dart

    try:
        dart()
    except UnavailableError as error:
        pytest.skip(str(error))
