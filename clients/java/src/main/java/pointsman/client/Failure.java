package pointsman.client;

import com.google.protobuf.Any;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.rpc.BadRequest;
import com.google.rpc.ErrorInfo;
import com.google.rpc.RetryInfo;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.protobuf.StatusProto;
import java.time.Duration;
import java.util.List;
import java.util.Map;

/** A refused call, as common.proto describes it. */
public final class Failure extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final Status.Code code;
    private final transient ErrorInfo info;
    private final transient BadRequest badRequest;
    private final transient RetryInfo retryInfo;

    /** Reads the typed details of a failed call. */
    public Failure(StatusRuntimeException cause) {
        super(cause.getMessage(), cause);
        code = cause.getStatus().getCode();
        com.google.rpc.Status status = StatusProto.fromThrowable(cause);
        List<Any> details = status == null ? List.of() : status.getDetailsList();
        info = detail(details, ErrorInfo.getDefaultInstance());
        badRequest = detail(details, BadRequest.getDefaultInstance());
        retryInfo = detail(details, RetryInfo.getDefaultInstance());
    }

    private static <D extends com.google.protobuf.Message> D detail(List<Any> details, D absent) {
        @SuppressWarnings("unchecked")
        Class<D> kind = (Class<D>) absent.getClass();
        try {
            for (Any detail : details) {
                if (detail.is(kind)) {
                    return detail.unpack(kind);
                }
            }
        } catch (InvalidProtocolBufferException unreadable) {
            return absent;
        }
        return absent;
    }

    /** The code of gRPC. */
    public Status.Code code() {
        return code;
    }

    /** The name of an ErrorReason without its prefix; empty when the call did not arrive. */
    public String reason() {
        return info.getReason();
    }

    /** What common.proto documents for the reason. */
    public Map<String, String> metadata() {
        return info.getMetadataMap();
    }

    /** The fields at fault, in proto names. */
    public List<String> fields() {
        return badRequest.getFieldViolationsList().stream().map(BadRequest.FieldViolation::getField).toList();
    }

    /** How long to wait at the least before trying again. */
    public Duration retryAfter() {
        var delay = retryInfo.getRetryDelay();
        return Duration.ofSeconds(delay.getSeconds(), delay.getNanos());
    }

    /** What to do about it. */
    public Advice advice() {
        return Advice.about(code, reason());
    }
}
