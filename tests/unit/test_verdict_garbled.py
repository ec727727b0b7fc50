"""A document that is no verdict is refused in one way, whatever its parts are."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from harness.verdict import Verdict


@pytest.mark.parametrize("benchmarks", ['["a"]', "3", '[{"baselines": [1]}]', '[{"rounds": 1}]'])
def test_an_earlier_document_whose_parts_are_no_objects_is_not_valid(benchmarks: str) -> None:
    with pytest.raises(ValidationError):
        Verdict.from_json(f'{{"schema_version": 1, "benchmarks": {benchmarks}}}')
