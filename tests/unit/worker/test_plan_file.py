"""plan.json is read by its schema, and comes back with every problem at once."""

import json
from pathlib import Path
from typing import Any

import protovalidate
import pytest
from google.protobuf.descriptor import Descriptor

from pointsman.api.handoff.v1 import work_pb2 as work
from pointsman.worker import output_reader, plan_file
from pointsman.worker.json_files import InvalidFile

GOOD = {
    "tasks": [
        {"id": "T1", "name": "do it", "files": ["src/**"], "acceptance_criteria": [{"id": "K1", "statement": "ok"}]}
    ],
    "confidence": 0.9,
}


def refused(folder: Path, plan: Any) -> str:
    (folder / "plan.json").write_text(json.dumps(plan))
    with pytest.raises(InvalidFile) as caught:
        output_reader.plan(folder)
    return str(caught.value)


def test_a_plan_with_many_problems_comes_back_with_all_of_them(tmp_path: Path) -> None:
    bad = {
        "tasks": [
            {
                "id": "T 1",
                "name": "",
                "file": ["a"],
                "depends": "T0",
                "size": "XL",
                "acceptance_criteria": [{"id": "K1"}],
            },
            {"id": "T2", "name": "x", "files": [1], "quality_gate": "no", "acceptance_criteria": []},
        ],
        "confidence": 2,
        "researchSlots": [],
    }
    said = refused(tmp_path, bad)
    for problem in (
        "plan.researchSlots: there is no such field; did you mean research_slots?",
        "plan.tasks[0].file: there is no such field; did you mean files?",
        "plan.tasks[0].files: is missing",
        "plan.tasks[0].id: has to match ^[A-Za-z0-9_.-]{1,64}$",
        "plan.tasks[0].name: is empty",
        "plan.tasks[0].depends: takes an array",
        "plan.tasks[0].size: takes one of S, M, L",
        "plan.tasks[0].acceptance_criteria[0].statement: is missing",
        "plan.tasks[1].files[0]: takes a string",
        "plan.tasks[1].quality_gate: takes a boolean",
        "plan.confidence: is above 1",
    ):
        assert problem in said


@pytest.mark.parametrize("plan", [[], "plan", None, {"tasks": []}, {"tasks": [None], "confidence": True}])
def test_what_is_no_plan_at_all_is_refused_too(plan: Any, tmp_path: Path) -> None:
    assert "does not fit plan.schema.json: plan" in refused(tmp_path, plan)


def test_a_good_plan_is_read(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text(json.dumps(GOOD))
    assert [task.id for task in output_reader.plan(tmp_path).tasks] == ["T1"]


NOT_FOR_PLANNERS = frozenset({"untrusted"})
"""Set where a plan is read from a tracker; a planner has no say in it."""


def test_the_schema_has_every_field_of_the_contract_that_is_a_planners_and_no_other() -> None:
    assert_same(json.loads(plan_file.schema_text()), work.Plan.DESCRIPTOR)


def assert_same(schema: dict[str, Any], message: Descriptor) -> None:
    assert set(schema["properties"]) == set(message.fields_by_name.keys()) - NOT_FOR_PLANNERS, message.name
    for name, part in schema["properties"].items():
        inner = message.fields_by_name[name].message_type
        if inner is not None:
            assert_same(part["items"], inner)


def test_a_plan_that_fits_the_schema_is_never_refused_by_the_contract(tmp_path: Path) -> None:
    longest = {
        "id": "T" * 64, "name": "n" * 500, "actions": ["a" * 2000] * 64, "files": ["f" * 1000] * 100, "phase": "p" * 100,
        "requirement": "r" * 4000, "size": "l", "acceptance_criteria": [{"id": "K", "statement": "s" * 4096}],
    }  # fmt: skip
    (tmp_path / "plan.json").write_text(json.dumps({"tasks": [longest], "confidence": 1}))
    assert protovalidate.collect_violations(output_reader.plan(tmp_path)) == []
