from __future__ import annotations

import binascii
import itertools
import json
from pathlib import Path
from typing import Any

import pytest
import study_stub
from hypothesis import given, settings
from hypothesis import strategies as st
from study_stub import Alert

from aloq.problem.errors import JournalError, StudyError
from aloq.problem.problem import Problem
from aloq.study.journal.file import Journal, parse, read, text
from aloq.study.journal.record import as_record, dump, load, sealed, unsealed
from aloq.study.journal.repair import repair
from aloq.study.study import Study

floats = st.floats(allow_nan=False, allow_infinity=False)
leaves = st.none() | st.booleans() | st.integers() | floats | st.text(max_size=5)
names = st.text(max_size=5).filter(lambda name: name not in ("line", "crc"))
values = st.recursive(leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3), max_leaves=5)
records = st.dictionaries(names, values, max_size=4)

HEADER = {"format": "aloq-journal", "schema": 1}
SEALED = {"format": "aloq-journal", "schema": 2}
headers = st.sampled_from([HEADER, SEALED])


def bits(value: Any) -> Any:
    """`value` with each float as its bits, so that 0.0 and -0.0 differ."""
    if isinstance(value, dict):
        return {key: bits(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [bits(inner) for inner in value]
    return value.hex() if isinstance(value, float) else value


def alone(path: Path) -> list[str]:
    return sorted(file.name for file in path.parent.iterdir())


@given(records)
def test_a_line_comes_back_bit_for_bit(record: dict[str, Any]) -> None:
    line = dump(record)
    assert line.index(b"\n") == len(line) - 1
    assert bits(load(line)) == bits(record)
    line = sealed(record, 7)
    assert line.index(b"\n") == len(line) - 1
    assert bits(unsealed(line)) == bits((7, record))
    assert json.loads(line)["line"] == 7


@given(headers, st.lists(records, max_size=4), st.data())
def test_a_file_cut_anywhere_gives_its_whole_lines(header: dict[str, Any], log: list[dict[str, Any]], data: st.DataObject) -> None:
    """With a checksum, a line that lacks its end of line only is known to be whole, and counts
    as a record.
    """
    lines = text([header, *log], header).splitlines(keepends=True)
    ends = list(itertools.accumulate(map(len, lines)))
    cut = data.draw(st.integers(0, ends[-1]) | st.sampled_from(ends).map(lambda end: end - 1))
    whole = sum(end <= cut for end in ends)
    known = sum(end - (header is SEALED) <= cut for end in ends)
    contents = parse(b"".join(lines)[:cut], "x")
    assert contents.header == (header if known else None)
    assert bits(list(contents.records)) == bits(log[: max(known - 1, 0)])
    assert (contents.size, contents.lines) == (ends[whole - 1] if whole else 0, whole)


@settings(max_examples=25)
@given(headers, st.lists(st.lists(records, max_size=3), max_size=4))
def test_what_is_written_in_steps_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, header: dict[str, Any], steps: list[list[dict[str, Any]]]
) -> None:
    path = tmp_path_factory.mktemp("journal") / "x.jsonl"
    journal = Journal(path)
    journal.begin(header)
    log: list[dict[str, Any]] = []
    for step in steps:
        log += step
        journal.write(log)
        assert bits(list(read(path).records)) == bits(log)
    journal.close()


@pytest.mark.parametrize(
    "tail", [b'{"event": "te', b'{"event": "tell"}', b"\0\0\0\0", b"{]\n", b"\n", b"\xff\xfe\n", b"NaN\n", b'{"a": NaN}\n']
)
def test_a_torn_tail_is_ignored_and_replaced(path: Path, tail: bytes) -> None:
    good = dump(HEADER) + dump({"a": 1})
    path.write_bytes(good + tail)
    journal = Journal(path)
    assert journal.contents.records == ({"a": 1},)
    journal.write([{"a": 1}, {"b": 2}])
    journal.close()
    assert path.read_bytes() == good + dump({"b": 2})


@pytest.mark.parametrize("tail", [b'{"event": "te', b'{"a": 1, "line": 3, "crc": "12', b"\0\0\0\0", b'{"event"\0\0\0\0', b"\xff\xfe"])
def test_a_torn_tail_of_lines_with_checksums_is_ignored_and_replaced(path: Path, tail: bytes) -> None:
    good = text([SEALED, {"a": 1}], SEALED)
    path.write_bytes(good + tail)
    journal = Journal(path)
    assert journal.contents.records == ({"a": 1},)
    journal.write([{"a": 1}, {"b": 2}])
    journal.close()
    assert path.read_bytes() == text([SEALED, {"a": 1}, {"b": 2}], SEALED)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda line: line.replace(b"1.5", b"1.7"), r"its checksum does not fit its content"),
        (lambda line: line.replace(b"1.5", b"1.7")[:-1], r"its checksum does not fit its content"),  # with its end lost as well
        (lambda line: line[:-1] + b"\x0b", r"its end of line is damaged"),
        (lambda line: b"\0" * 20 + line[20:], r"its checksum does not fit its content"),
        (lambda line: dump({"a": 1.5}), r"it has no checksum"),
        (lambda line: sealed({"a": 1.5}, 4), r"it was written as line 4: lines before it are missing, doubled, or in another order"),
        (lambda line: b"\n", r"it has no checksum"),
    ],
)
def test_a_last_line_that_was_perhaps_acknowledged_is_not_dropped(path: Path, damage: Any, message: str) -> None:
    """A torn write leaves the beginning of a line.

    What reaches to the checksum, or has an end of line, is no torn write.
    """
    path.write_bytes(text([SEALED, {"b": 1}], SEALED) + damage(sealed({"a": 1.5}, 3)))
    with pytest.raises(JournalError, match=rf"walk\.jsonl, line 3: the line is damaged \({message}\)\. .*aloq journal repair"):
        read(path)


def test_a_last_line_that_lacks_its_end_only_is_kept_and_ended(path: Path, problem: Problem) -> None:
    for records in (1, 2, 3):
        with Study(problem, Alert(), journal=path, seed=7) as study:
            study.tell(study.ask(), 1.5)
        whole = path.read_bytes().splitlines(keepends=True)[:records]
        path.write_bytes(b"".join(whole)[:-1])
        with Study.resume(path) as study:
            assert len(study._book.ledger.log) == records - 1
        assert path.read_bytes() == b"".join(whole)
        path.unlink()


@pytest.mark.parametrize("written", [2], indirect=True)
def test_lines_that_are_dropped_doubled_or_swapped_are_noticed(written: Path) -> None:
    header, *lines = written.read_bytes().splitlines(keepends=True)
    for damaged, line in [
        (lines[:2] + lines[3:], 4),  # a return is gone: the trial would be pending again
        (lines[:2] + lines[3:1:-1], 4),  # told in another order
        ([*lines, lines[-1]], 6),
        (lines[1:], 2),
    ]:
        written.write_bytes(header + b"".join(damaged))
        with pytest.raises(JournalError, match=rf"line {line}: the line is damaged \(it was written as line \d: lines before it are"):
            read(written)


@pytest.mark.parametrize("rest", [dump({}), b'{"torn'])
def test_a_damaged_line_in_the_middle_is_an_error_with_its_number(path: Path, rest: bytes) -> None:
    path.write_bytes(dump(HEADER) + dump({}) + b"{oops\n" + rest)
    with pytest.raises(JournalError, match=r"walk\.jsonl, line 3: the line is damaged \("):
        read(path)


@pytest.mark.parametrize("data", [b"hello", b"hello\n", b"{}\n", b"[]\n", b'{"format": "other"}\n{}\n', b"\x80\x04\x95", b"\n"])
def test_another_file_is_refused_and_left_alone(path: Path, problem: Problem, data: bytes) -> None:
    path.write_bytes(data)
    with pytest.raises(JournalError, match=r"walk\.jsonl is not an aloq journal"):
        Study(problem, Alert(), journal=path)
    with pytest.raises(JournalError, match=r"walk\.jsonl is not an aloq journal"):
        Study.resume(path)
    assert path.read_bytes() == data
    assert alone(path) == ["walk.jsonl"]


@pytest.mark.parametrize("data", [b"", b'{"form', b'{"format": "aloq-journal", "sch'])
def test_an_empty_file_and_a_torn_header_count_as_new(path: Path, problem: Problem, data: bytes) -> None:
    path.write_bytes(data)
    with pytest.raises(JournalError, match=r"is empty: there is no study to resume\. Start one"):
        Study.resume(path)
    with Study(problem, Alert(), journal=path) as study:
        study.ask()
    assert len(read(path).records) == 1


def test_places_where_no_journal_can_be(path: Path, problem: Problem) -> None:
    with pytest.raises(JournalError, match=r"A journal is a file, but .* is a directory\. Name a file in it"):
        Study(problem, Alert(), journal=path.parent)
    with pytest.raises(JournalError, match=r"there is no .*nowhere\. Create it first"):
        Study(problem, Alert(), journal=path.parent / "nowhere" / "walk.jsonl")
    with pytest.raises(JournalError, match=r"is a directory"):
        Study.resume(path.parent)
    with pytest.raises(JournalError, match=r"There is no journal at .*walk\.jsonl\. To start one, use aloq\.Study"):
        Study.resume(path)
    assert alone(path) == []


def test_a_method_that_json_cannot_hold_leaves_no_file(path: Path, problem: Problem) -> None:
    class UnregisteredMethod(Alert):
        pass

    with pytest.raises(ValueError, match="registered"):
        Study(problem, UnregisteredMethod(), journal=path)
    assert alone(path) == []


def edited(path: Path, line: int, **changes: Any) -> None:
    """Change fields of a line, counted from 1, and its checksum with them; ... removes a field."""
    lines = path.read_bytes().splitlines(keepends=True)
    seal = b"crc" in lines[0]
    record = (unsealed(lines[line - 1])[1] if seal else load(lines[line - 1])) | changes
    record = {key: value for key, value in record.items() if value is not ...}
    lines[line - 1] = sealed(record, line) if seal else dump(record)
    path.write_bytes(b"".join(lines))


@pytest.fixture(params=[1, 2])
def written(path: Path, problem: Problem, request: pytest.FixtureRequest) -> Path:
    """A journal of each schema with two trials: lines 2 and 3 ask, 4 tells the first, 5 fails
    the second.
    """
    with Study(problem, Alert(), journal=path, seed=7) as study:
        first, second = study.ask(2)
        study.tell(first, 1.5)
        study.fail(second, "no")
    if request.param == 1:
        contents = read(path)
        assert contents.header is not None
        old = contents.header | {"schema": 1}
        path.write_bytes(text([old, *contents.records], old))
    return path


@pytest.mark.parametrize(
    ("line", "changes", "message"),
    [
        (1, {"schema": 3, "aloq": "9.9"}, r"up to schema 2, but .* has schema 3, written by aloq '9\.9'\. Upgrade aloq"),
        (1, {"schema": True}, r"line 1: the schema must be a positive integer, but is True"),
        (1, {"schema": 0}, r"line 1: the schema must be a positive integer, but is 0"),
        (1, {"schema": "1"}, r"line 1: the schema must be a positive integer, but is '1'"),
        (1, {"schema": ...}, r"line 1: the schema must be a positive integer, but is None"),
        (1, {"seed": ...}, r"line 1: a header must have 'seed'"),
        (1, {"seed": "7"}, r"line 1: `seed` must be an integer of at least 0, but is '7'"),
        (1, {"seed": 7.0}, r"line 1: `seed` must be an integer of at least 0, but is 7\.0"),
        (1, {"seed": True}, r"line 1: `seed` must be an integer of at least 0, but is True"),
        (1, {"seed": -1}, r"line 1: `seed` must be an integer of at least 0, but is -1"),
        (1, {"seed": 10**400}, r"line 1: `seed` must be below 2\*\*63"),
        (1, {"method": {"type": "Alerd"}}, r"line 1: .*Alerd"),
        (1, {"method": None}, r"line 1: the method must be an object with a `type`, but is None"),
        (1, {"method": {"type": "Real", "low": 0.0, "high": 1.0}}, r"line 1: `method` must have suggest"),
        (1, {"problem": {}}, r"line 1: "),
        (1, {"problem": []}, r"line 1: .*but hold list"),
        (1, {"problem": 10**400}, r"line 1: .*but hold int"),
        (1, {"problem": {"type": "Problem", "policy": {"x": [0, 10**400]}, "environment": {}}}, r"line 1: "),
        (2, {"event": "asks"}, r"line 2: The event of a record must be one of ask, tell, .*, verified, but is 'asks'"),
        (2, {"id": 4}, r"line 2: Trials are numbered in order, so that the next is 0, but 4 came"),
        (2, {"policy": ...}, r"line 2: A record must have the field 'policy'"),
        (2, {"policy": {"kp": 1.0}}, r"line 2: .*kd"),
        (2, {"state": 3}, r"line 2: A trial may name the one that brought the last state, None, but 3 came"),
        (4, {"id": 2}, r"line 4: Only a trial that was asked for .* the trials 0 to 1, but 2 came"),
        (4, {"id": True}, r"line 4: The field 'id' has the wrong type: True"),
        (4, {"value": "1.5"}, r"line 4: The field 'value' has the wrong type: '1\.5'"),
        (4, {"value": 10**400}, r"line 4: The return of a simulation must be finite"),
        (4, {"seconds": 10**400}, r"line 4: The field 'seconds' must be a number of ordinary size"),
        (2, {"policy": {"kp": 10**400, "kd": 0.5, "gait": 1, "mode": "trot"}}, r"line 2: .*kp"),
        (5, {"id": 0}, r"line 5: A trial can be told or failed once, but trial 0 was already told 1\.5"),
        (5, {"reason": 3}, r"line 5: The field 'reason' has the wrong type: 3"),
    ],
)
def test_an_edited_journal_is_refused_with_the_line(written: Path, line: int, changes: dict[str, Any], message: str) -> None:
    edited(written, line, **changes)
    before = written.read_bytes()
    with pytest.raises(JournalError, match=message):
        Study.resume(written)
    with pytest.raises(JournalError, match=message):
        Study.read(written)
    assert written.read_bytes() == before
    assert alone(written) == ["walk.jsonl"]
    if line == 1:  # without a header, nothing can be kept
        with pytest.raises(JournalError, match=message):
            repair(written)
        assert alone(written) == ["walk.jsonl"]
    else:
        assert line in repair(written).dropped
        Study.resume(written).close()


def test_fields_of_a_later_version_are_passed_over(written: Path) -> None:
    edited(written, 4, mood="good")
    with Study.resume(written) as study:
        assert study.counts == (1, 1, 0)


def test_the_format(written: Path, problem: Problem) -> None:
    """The journal is a public format; a change here needs a new schema."""
    header, *events = [json.loads(line) for line in written.read_text().splitlines()]
    seal = ["line", "crc"] if header["schema"] == 2 else []
    assert list(header) == ["format", "schema", "aloq", "problem", "method", "seed", *seal]
    assert header["problem"] == json.loads(json.dumps(problem.to_json()))
    assert header["method"] == {"type": "Alert", "repeat": 3}
    assert header["seed"] == 7
    assert [list(event) for event in events] == [
        ["event", "id", "policy", "environment", "state", *seal],
        ["event", "id", "policy", "environment", "state", *seal],
        ["event", "id", "value", "seconds", *seal],
        ["event", "id", "reason", "seconds", *seal],
    ]
    if seal:
        assert [line.pop("line") for line in (header, *events)] == [1, 2, 3, 4, 5]
        for line, event in zip(written.read_bytes().splitlines()[1:], events, strict=True):
            assert event.pop("crc") == f"{binascii.crc32(line[:-18]):08x}"  # all but `"crc": "1a2b3c4d"}`
    assert events[2:] == [
        {"event": "tell", "id": 0, "value": 1.5, "seconds": None},
        {"event": "fail", "id": 1, "reason": "no", "seconds": None},
    ]


def reordered() -> Problem:
    problem = study_stub.make_problem()
    policy: Any = problem.policy
    return Problem(policy=dict(reversed(policy.items())), environment=problem.environment)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"problem": study_stub.make_problem(high=12.0)}, r"problem\.policy\.kp\S* is 10\.0 in the journal and 12\.0 here"),
        ({"problem": reordered()}, r"problem\.policy is in the order \['kp', .* in the journal and \['mode', .* here"),
        ({"problem": study_stub.make_problem("minimize")}, r"problem\.direction is 'maximize' in the journal and 'minimize' here"),
        ({"method": Alert(repeat=4)}, r"method\.repeat is 3 in the journal and 4 here"),
        ({"seed": 8}, r"seed is 7 in the journal and 8 here\. To go on with it, use aloq\.Study\.resume"),
    ],
)
def test_another_study_is_told_what_differs(written: Path, problem: Problem, change: dict[str, Any], message: str) -> None:
    before = written.read_bytes()
    arguments: dict[str, Any] = {"problem": problem, "method": Alert(), "journal": written, "seed": 7} | change
    with pytest.raises(JournalError, match=rf"walk\.jsonl belongs to another study: {message}"):
        Study(**arguments)
    assert written.read_bytes() == before


def test_many_differences_are_cut_short(written: Path) -> None:
    other = Problem(policy={f"x{i}": (0.0, 1.0) for i in range(9)}, environment=study_stub.make_problem().environment)
    with pytest.raises(JournalError, match=r"problem\.policy\.kp is \{.*\} in the journal and missing here; .*; and 8 more\. To go on"):
        Study(other, Alert(), journal=written, seed=7)


@pytest.mark.parametrize("state", [{"a": float("nan")}, {"a": {1, 2}}, {"a": b""}])
def test_a_state_must_be_plain(state: dict[str, Any]) -> None:
    with pytest.raises(StudyError, match=r"The state of a method must hold plain JSON values and finite numbers only, but: "):
        as_record("state of a method", state)
