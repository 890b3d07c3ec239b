"""Every RPC of the contract, read from the descriptors: no route is written by hand."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from pointsman.api.orchestrator.v1 import agent_pb2, artifact_pb2, landing_pb2, mock_pb2, orchestrator_pb2, schedule_pb2
from pointsman.api.pipeline.v1 import pipeline_pb2
from pointsman.api.router.v1 import router_pb2
from pointsman.api.workflow.v1 import workflow_pb2
from pointsman.services.chassis.rpc.authentication import MethodAccess, method_access

PREFIX = "/api/v1"
PACKAGE = "pointsman.api."
FILES = (
    router_pb2, orchestrator_pb2, schedule_pb2, agent_pb2, artifact_pb2, landing_pb2, mock_pb2, pipeline_pb2, workflow_pb2,
)  # fmt: skip
RESUME_FIELDS = {"after_seq": "seq", "after_position": "position"}


@dataclass(frozen=True, slots=True)
class Method:
    """One RPC."""

    context: str
    service: str
    name: str
    full_name: str
    request: type[Message]
    response: type[Message]
    streams_in: bool
    streams_out: bool
    is_read: bool
    """Whether it changes nothing: its request has no request_id."""
    access: MethodAccess
    resume_field: str
    """The request field after which a stream resumes; empty without one."""

    @property
    def fields(self) -> Any:
        """The descriptor of its request."""
        return self.request.DESCRIPTOR

    @property
    def path(self) -> str:
        """Its HTTP path."""
        return f"{PREFIX}/{self.service}/{self.name}"


def services() -> Iterator[ServiceDescriptor]:
    """Every service of the contract."""
    for file in FILES:
        yield from file.DESCRIPTOR.services_by_name.values()


def method_of(service: ServiceDescriptor, method: MethodDescriptor) -> Method:
    """One RPC of a service."""
    context = service.full_name.removeprefix(PACKAGE).split(".")[0]
    fields = method.input_type.fields_by_name
    return Method(
        context=context,
        service=f"{context}.{service.name}",
        name=method.name,
        full_name=f"/{service.full_name}/{method.name}",
        request=_class(method.input_type),
        response=_class(method.output_type),
        streams_in=method.client_streaming,
        streams_out=method.server_streaming,
        is_read="request_id" not in fields and not method.client_streaming,
        access=method_access(f"/{service.full_name}/{method.name}", method),
        resume_field=next((name for name in RESUME_FIELDS if method.server_streaming and name in fields), ""),
    )


def _class(descriptor: Any) -> type[Message]:
    message_class: type[Message] = GetMessageClass(descriptor)
    return message_class


METHODS: Mapping[str, Method] = {
    method.path: method for service in services() for method in (method_of(service, one) for one in service.methods)
}
