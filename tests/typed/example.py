"""A study as a user writes it. Nothing here is run: `test_typing.py` has mypy read it.

Every `type: ignore` marks a mistake. Where mypy finds no mistake, it reports the ignore as unused.
"""

from __future__ import annotations

from typing import Any, assert_type

import aloq


def simulate(policy: dict[str, Any], environment: dict[str, Any]) -> float:
    speed: float = policy["speed"]
    ice: int = environment["ice"]
    return speed - 80 * ice * speed**2


def simulate_policy(policy: dict[str, Any]) -> float:
    return 1.0


problem = aloq.Problem(
    policy={"speed": (0.0, 2.0), "gear": aloq.Integer(1, 5)},
    environment={"ice": aloq.Discrete([0, 1], p=[0.99, 0.01])},
    direction="maximize",
)
study = aloq.Study(problem, aloq.ALOQ(), journal="drive.jsonl", seed=1)

trial = study.ask()
study.tell(trial, simulate(trial.policy, trial.environment))
for one in study.ask(3):
    study.tell(one.id, 1.0, seconds=0.5)
study.fail(study.ask(), "the solver diverged")
study.optimize(simulate, evaluations=30, parallel=2, timeout=60, retries=1)

best = study.best()
assert_type(best.policy, dict[str, Any])
assert_type(best.mean, float)
assert_type(best.interval, tuple[float, float])
assert_type(study.counts.told, int)
assert_type(aloq.__version__, str)
assert_type(study.verify(simulate, evaluations=40).agrees, bool | None)
belief = study.predict([best.policy, {"speed": 1.0, "gear": 2}])
spread: float = belief.std.max()

with aloq.Study.resume("drive.jsonl") as resumed:
    assert_type(resumed.problem, aloq.Problem)

try:
    aloq.tasks.load("fsre1")
except aloq.AloqError as error:
    print(error)

aloq.Problem(policy={"speed": "fast"}, environment={})  # type: ignore[dict-item]
aloq.Problem(policy={"speed": (0.0, 2.0)}, environment={}, directions="maximize")  # type: ignore[call-arg]
aloq.Study("drive.jsonl")  # type: ignore[arg-type]
study.tell(trial, None)  # type: ignore[arg-type]
study.optimize(simulate_policy, evaluations=3)  # type: ignore[arg-type]
study.predict(best.policy)  # type: ignore[arg-type]
study.bets()  # type: ignore[attr-defined]
