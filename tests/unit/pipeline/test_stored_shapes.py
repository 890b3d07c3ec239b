"""A shape that was stored and read again is the same shape: a process that starts finds the pipelines of the one before."""

import pytest

from pointsman.services.chassis.codec import from_text, to_text
from pointsman.services.pipeline.domain.dag import Graph, Node
from pointsman.services.pipeline.domain.templates import TEMPLATES, template_graph


@pytest.mark.parametrize("template", TEMPLATES)
def test_the_shape_of_a_template_has_the_same_digest_after_it_was_stored(template: str) -> None:
    graph = template_graph(template)
    read = Graph(from_text(to_text(graph.nodes), tuple[Node, ...]))
    assert read.digest == graph.digest
