"""Checks for a method: what a study relies on."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from aloq.methods.history import Array
from aloq.methods.interface import Learns, Method, Recommendation, Suggestion, SuggestsMany, serves
from aloq.problem.encoding import Encoding
from aloq.problem.errors import ProblemError
from aloq.problem.problem import Problem
from aloq.study.study import Study
from aloq.study.trial import Trial
from aloq.testing.play import MethodCall, check_state, check_suggestion, play, suggested
from aloq.testing.problems import problems as small_problems
from aloq.testing.problems import value_at
from aloq.testing.requirement import bits, finite, left_alone, noting, require, require_written

BATCH = 4

# Returns that are no trouble to a simulator, and may be to a method.
RETURNS: Mapping[str, Callable[[Array], float]] = {
    "constant returns": lambda point: 3.0,
    "returns of two values": lambda point: float(point[0] > 0.5),
    "huge returns": lambda point: 1e12 * value_at(point),
    "tiny returns": lambda point: 1e-12 * value_at(point),
}


def check_method(
    method: Method,
    problems: Mapping[str, Problem] | None = None,
    evaluations: int = 20,
    avoids_taken: bool = True,
    recommends_simulated: bool = True,
) -> None:
    """Check a method on several problems, in studies of so many `evaluations`: give more where its
    first design is longer.

    Say `avoids_taken=False` if it may suggest a pair that is out or has failed, as one that draws
    environments as they come does: a study then moves the pair aside. Say
    `recommends_simulated=False` if it may recommend a policy that was never simulated.
    """
    require_written(method, hashable=False)
    given = problems or small_problems()
    for name, problem in given.items():
        with noting(f"{method!r} on the problem {name!r}"):
            check_served(method, problem)
            check_asked(method, play(method, problem.encoding, evaluations), avoids_taken, recommends_simulated)
            check_resumed(method, problem, evaluations)
    name, problem = next(iter(given.items()))
    with noting(f"{method!r} on the problem {name!r}"):
        check_returns(method, problem.encoding, evaluations, recommends_simulated)


def check_asked(method: Method, call: MethodCall, avoids_taken: bool, recommends_simulated: bool) -> None:
    """Everything that a method can be asked, when some pairs were told, one failed and one is
    out.
    """
    check_repeatable(method, call)
    check_answers(method, call, recommends_simulated)
    if avoids_taken:
        check_avoids_taken(method, call)
    check_batches(method, call, avoids_taken)
    check_learning(method, call)


def check_served(method: Method, problem: Problem) -> None:
    """The method optimises what the problem asks for."""
    require(
        serves(method, problem.objective),
        "A method must serve the objective of the problems that it is checked on",
        f"{type(method).__name__} does not serve {problem.objective!r}",
        "Give `problems` with an objective that it serves",
    )


def check_repeatable(method: Method, call: MethodCall) -> None:
    """The same call has the same answer, bit for bit, also with the state read from JSON."""
    first = method.suggest(*call.arguments)
    method.suggest(*replace(call, seed=call.seed + 1).arguments)  # so that nothing is remembered from the last call
    again = method.suggest(*call.arguments)
    way_out = "Draw all random numbers from np.random.default_rng([seed, history.asked]), and keep nothing outside the state"
    _require_alike(method, first, again, "A method must give the same suggestion for the same arguments", way_out)
    written = replace(call, state=json.loads(json.dumps(call.state)))
    method.suggest(*replace(call, seed=call.seed + 1).arguments)
    way_out = "Put into the state only what JSON can hold: lists for tuples, texts for keys"
    _require_alike(method, first, method.suggest(*written.arguments), "A state must mean the same after JSON", way_out)


def _require_alike(method: Method, first: Suggestion, second: Suggestion, rule: str, way_out: str) -> None:
    alike = bits(first.point) == bits(second.point)
    what = f"first {first.point}, then {second.point}" if not alike else f"states that differ, with the same point {first.point}"
    require(alike and json.dumps(first.state) == json.dumps(second.state), rule, f"{type(method).__name__} gave {what}", way_out)


def check_answers(method: Method, call: MethodCall, recommends_simulated: bool) -> None:
    """Predictions and recommendations are finite, repeatable, and change no argument.

    A method may refuse to predict.
    """
    d, told = call.encoding.policy_dim, call.history.told
    best = _recommended(method, call)
    if recommends_simulated:
        require(
            np.any(np.all(told[:, :d] == best.policy, axis=1)),
            "The policy recommended must be one that was simulated",
            f"{type(method).__name__} recommends {best.policy}",
            "Choose among `history.policies(encoding.policy_dim)`, or say `recommends_simulated=False`",
        )
    others = call.encoding.snap_policies(np.random.default_rng(1).uniform(size=(4, d)))
    try:
        check_prediction(method, call, np.concatenate([best.policy[None], others]))
    except ProblemError:  # a refusal in words, as by a policy gradient
        return


def check_prediction(method: Method, call: MethodCall, policies: Array) -> None:
    """A mean and a standard deviation for each policy, the same each time."""
    encoding, history, state, seed = call.arguments
    name, shape = type(method).__name__, (len(policies),)
    with left_alone(f"{name}.predict", history=history, state=state, policies=policies):
        found = method.predict(encoding, history, state, seed, policies)
    require(
        np.shape(found.mean) == np.shape(found.std) == shape and finite(found.mean, found.std) and np.all(np.asarray(found.std) >= 0),
        "A prediction must have a finite mean and a standard deviation of at least 0 for every policy",
        f"{name} predicts {found.mean} ± {found.std} for {len(policies)} policies",
        "Guard divisions and roots",
    )
    require(
        bits(found) == bits(method.predict(*call.arguments, policies)),
        "A method must predict the same for the same arguments",
        f"{name} predicted something else the second time",
        "Draw all random numbers from np.random.default_rng([seed, history.asked])",
    )


def _recommended(method: Method, call: MethodCall) -> Recommendation:
    """What a method recommends, if it is a possible policy with finite numbers."""
    encoding, history, state, seed = call.arguments
    name = type(method).__name__
    with left_alone(f"{name}.recommend", history=history, state=state):
        best = method.recommend(encoding, history, state, seed)
    require(
        finite(best.mean, best.std) and best.std >= 0,
        "A recommendation must have a finite mean and a standard deviation of at least 0",
        f"{name} gave {best.mean} ± {best.std}",
        "Guard divisions and roots",
    )
    require(
        np.shape(best.policy) == (encoding.policy_dim,) and np.array_equal(encoding.snap_policies(best.policy[None])[0], best.policy),
        "The policy recommended must be a possible one",
        f"{name} recommends {best.policy}",
        "Use `encoding.snap_policies`",
    )
    return best


def check_avoids_taken(method: Method, call: MethodCall) -> None:
    """A pair that is out, or has failed, is not suggested again."""
    for outcome, then in (("out for simulation", MethodCall.awaiting), ("reported as failed", MethodCall.failed)):
        now, seen = call, list(np.concatenate([call.history.pending, call.history.failed]))
        for _ in range(BATCH):
            suggestion = suggested(method, now)
            require(
                not any(np.array_equal(suggestion.point, pair) for pair in seen),
                f"A method must not suggest a pair again that is {outcome}",
                f"{type(method).__name__} suggests {suggestion.point}",
                "Look at `history.pending` and `history.failed`, or say `avoids_taken=False`",
            )
            now, seen = then(now, suggestion), [*seen, suggestion.point]


def check_batches(method: Method, call: MethodCall, avoids_taken: bool) -> None:
    """Suggestions to be made at once are possible, and all different.

    Nothing to check where a method has no way to make them.
    """
    if not isinstance(method, SuggestsMany):
        return
    for now in (MethodCall.first(call.encoding), call):
        batch = _batch(method, now)
        require(
            not avoids_taken or len({suggestion.point.tobytes() for suggestion in batch}) == BATCH,
            "`suggest_many` must give pairs that all differ",
            f"{type(method).__name__} gave {[suggestion.point.tolist() for suggestion in batch]}",
            "Make each as if those before it were out: `history = history.awaiting(point)`",
        )
        require(
            [bits(suggestion.point) for suggestion in batch] == [bits(suggestion.point) for suggestion in _batch(method, now)],
            "`suggest_many` must give the same suggestions for the same arguments",
            f"{type(method).__name__} gave others the second time",
            "Draw all random numbers from np.random.default_rng([seed, history.asked])",
        )


def _batch(method: SuggestsMany, call: MethodCall) -> list[Suggestion]:
    """What a method suggests at once, if these are possible pairs, and as many as it was asked
    for.
    """
    encoding, history, state, seed = call.arguments
    name = type(method).__name__
    with left_alone(f"{name}.suggest_many", history=history, state=state):
        batch = list(method.suggest_many(encoding, history, state, seed, BATCH))
    require(
        len(batch) == BATCH,
        "`suggest_many` must give as many suggestions as it was asked for",
        f"{name} gave {len(batch)} for {BATCH}",
        "Yield one for each",
    )
    for suggestion in batch:
        check_suggestion(name, suggestion, encoding)
    return batch


def check_learning(method: Method, call: MethodCall) -> None:
    """What is learnt elsewhere is not stale, plain JSON, and the same each time.

    Nothing to check for other methods.
    """
    if not isinstance(method, Learns):
        return
    encoding, history, state, seed = call.arguments
    name = type(method).__name__
    with left_alone(f"{name}.learn", history=history, state=state):
        learnt = method.learn(encoding, history, state, seed)
    check_state(name, learnt)
    nothing = MethodCall.first(encoding).history
    require(
        method.stale(history, None) and not method.stale(history, learnt) and not method.stale(nothing, None),
        "`stale` must be true before anything was learnt, and false afterwards, and while nothing was told",
        f"{name} says {method.stale(history, None)}, {method.stale(history, learnt)} and {method.stale(nothing, None)}",
        "Write into the state how many pairs it has met",
    )
    method.learn(*replace(call, seed=seed + 1).arguments)
    require(
        bits(method.learn(*call.arguments)) == bits(learnt),
        "A method must learn the same from the same arguments",
        f"{name} learnt something else the second time",
        "Draw all random numbers from np.random.default_rng([seed, len(history.told)])",
    )
    for suggestion in method.suggest_many(encoding, history, learnt, seed, 2, hurry=True):
        check_suggestion(name, suggestion, encoding)


def check_resumed(method: Method, problem: Problem, evaluations: int) -> None:
    """A study that was closed and resumed goes on with the same trials."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "study.jsonl"
        whole, parted = Study(problem, method), Study(problem, method, journal=path)
        for number in range(evaluations):
            if number == evaluations // 2:
                parted.close()
                parted = Study.resume(path)
            trials = whole.ask(), parted.ask()
            require(
                trials[0] == trials[1],
                "A resumed study must go on with the same trials",
                f"{type(method).__name__} asked for {trials[1]}, and without the interruption for {trials[0]}",
                "Keep in the state all that a method must remember",
            )
            for study, trial in zip((whole, parted), trials, strict=True):
                _simulated(study, trial, problem.encoding)
        parted.close()


def _simulated(study: Study, trial: Trial, encoding: Encoding) -> None:
    """The trial is told, but every fourth fails."""
    if trial.id % 4 == 3:
        study.fail(trial, "every fourth fails")
    else:
        point = np.concatenate([encoding.encode_policy(trial.policy), encoding.encode_environment(trial.environment)])
        study.tell(trial, value_at(point))


def check_returns(method: Method, encoding: Encoding, evaluations: int, recommends_simulated: bool) -> None:
    """Returns that are all alike, of few values, huge or tiny, and one alone."""
    for what, value in RETURNS.items():
        with noting(what):
            check_answers(method, play(method, encoding, evaluations, value), recommends_simulated)
    with noting("one return"):
        first = MethodCall.first(encoding)
        second = first.told(suggested(method, first), 1.0)
        suggested(method, second)
        check_answers(method, second, recommends_simulated)
