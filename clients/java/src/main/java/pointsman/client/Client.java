package pointsman.client;

import io.grpc.Channel;
import io.grpc.ChannelCredentials;
import io.grpc.ClientInterceptors;
import io.grpc.Context;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.StatusRuntimeException;
import io.grpc.TlsChannelCredentials;
import io.grpc.stub.AbstractBlockingStub;
import io.grpc.stub.MetadataUtils;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import java.util.function.Predicate;
import pointsman.api.common.v1.Common.Transition;
import pointsman.api.orchestrator.v1.AgentServiceGrpc;
import pointsman.api.orchestrator.v1.AgentServiceGrpc.AgentServiceBlockingStub;
import pointsman.api.orchestrator.v1.Orchestrator.SubmitRequest;
import pointsman.api.orchestrator.v1.Orchestrator.SubmitResponse;
import pointsman.api.orchestrator.v1.Orchestrator.WatchRunRequest;
import pointsman.api.orchestrator.v1.OrchestratorServiceGrpc;
import pointsman.api.orchestrator.v1.OrchestratorServiceGrpc.OrchestratorServiceBlockingStub;

/** Calls the control plane in one project. */
public final class Client implements AutoCloseable {
    private static final long DEADLINE_SECONDS = 20;
    private static final Metadata.Key<String> PROJECT =
            Metadata.Key.of("pointsman-project", Metadata.ASCII_STRING_MARSHALLER);

    private static final Metadata.Key<String> AUTHORIZATION =
            Metadata.Key.of("authorization", Metadata.ASCII_STRING_MARSHALLER);

    private final ManagedChannel connection;
    private final Channel channel;
    private final OrchestratorServiceBlockingStub runs;
    private final AgentServiceBlockingStub agents;

    /** What {@code pointsman token --env} prints: the certificate to trust and the bearer token, as files; or empty. */
    public record Credentials(String authority, String token) {
        /** Reads POINTSMAN_CLIENT_AUTHORITY and POINTSMAN_CLIENT_TOKEN. */
        public static Credentials fromEnvironment() {
            Map<String, String> variables = System.getenv();
            return new Credentials(
                    variables.getOrDefault("POINTSMAN_CLIENT_AUTHORITY", ""),
                    variables.getOrDefault("POINTSMAN_CLIENT_TOKEN", ""));
        }

        /** The same authority with another token. */
        public Credentials withToken(String file) {
            return new Credentials(authority, file);
        }
    }

    /** Acts in the project over a connection that is closed with the client; an empty token is not shown. */
    public Client(ManagedChannel connection, String project, String token) {
        Metadata headers = new Metadata();
        headers.put(PROJECT, project);
        if (!token.isEmpty()) {
            headers.put(AUTHORIZATION, "Bearer " + token);
        }
        this.connection = connection;
        channel = ClientInterceptors.intercept(connection, MetadataUtils.newAttachHeadersInterceptor(headers));
        runs = OrchestratorServiceGrpc.newBlockingStub(channel);
        agents = AgentServiceGrpc.newBlockingStub(channel);
    }

    /** Connects to a server and shows it the credentials; without an authority there is no TLS, as towards an edge. */
    public static Client connect(String address, String project, Credentials shown) throws IOException {
        ChannelCredentials transport = shown.authority().isEmpty()
                ? InsecureChannelCredentials.create()
                : TlsChannelCredentials.newBuilder().trustManager(new File(shown.authority())).build();
        String token = shown.token().isEmpty() ? "" : Files.readString(Path.of(shown.token())).strip();
        var builder = Grpc.newChannelBuilder(address, transport);
        return new Client(builder.defaultLoadBalancingPolicy("round_robin").build(), project, token);
    }

    /** An idempotency key that nobody else has. */
    public static String newRequestId() {
        return UUID.randomUUID().toString();
    }

    /** The way to the server, with the project in every call. */
    public Channel channel() {
        return channel;
    }

    /** Starts a run; the same request_id twice starts it once. */
    public SubmitResponse submit(String requestId, String message) {
        var request = SubmitRequest.newBuilder().setRequestId(requestId).setMessage(message).build();
        return orchestrator(stub -> stub.submit(request));
    }

    /** Asks the orchestrator, patiently. */
    public <A> A orchestrator(Function<OrchestratorServiceBlockingStub, A> call) {
        return patiently(runs, call);
    }

    /** Asks the service for agents, patiently. */
    public <A> A agents(Function<AgentServiceBlockingStub, A> call) {
        return patiently(agents, call);
    }

    /** Calls until there is an answer; safe for mutations because every try carries the same request_id. */
    private static <S extends AbstractBlockingStub<S>, A> A patiently(S stub, Function<S, A> call) {
        Pause pause = new Pause();
        while (true) {
            try {
                return call.apply(stub.withDeadlineAfter(DEADLINE_SECONDS, TimeUnit.SECONDS));
            } catch (StatusRuntimeException refused) {
                pause.after(new Failure(refused));
            }
        }
    }

    /**
     * Hands over every transition of a run, each once and in order, over broken connections, to the run's end or until
     * {@code goesOn} says no.
     */
    public void watch(String runId, long afterSeq, Predicate<Transition> goesOn) {
        Pause pause = new Pause();
        long[] last = {afterSeq};
        while (true) {
            try {
                watchOnce(runId, last[0], transition -> {
                    last[0] = transition.getSeq();
                    pause.reset();
                    return goesOn.test(transition);
                });
                return;
            } catch (StatusRuntimeException broken) {
                pause.after(new Failure(broken));
            }
        }
    }

    private void watchOnce(String runId, long afterSeq, Predicate<Transition> goesOn) {
        var request = WatchRunRequest.newBuilder().setRunId(runId).setAfterSeq(afterSeq).build();
        try (Context.CancellableContext watching = Context.current().withCancellation()) {
            watching.run(() -> {
                var items = runs.watchRun(request);
                while (items.hasNext() && goesOn.test(items.next().getTransition())) {
                    // each transition is seen by the predicate
                }
            });
        }
    }

    @Override
    public void close() {
        connection.shutdownNow();
    }
}
