"""What a refused call says in its details."""

import grpc
from google.rpc import status_pb2

from pointsman.services.chassis.rpc.status import DETAILS_KEY


def status_of_call(error: grpc.aio.AioRpcError) -> status_pb2.Status:
    """The google.rpc.Status of an error, with its details."""
    status = status_pb2.Status()
    for key, value in error.trailing_metadata() or ():
        if key == DETAILS_KEY and isinstance(value, bytes):
            status.ParseFromString(value)
    return status
