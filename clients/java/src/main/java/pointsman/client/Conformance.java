package pointsman.client;

import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.Message;
import com.google.protobuf.util.JsonFormat;
import io.grpc.CallOptions;
import io.grpc.MethodDescriptor;
import io.grpc.MethodDescriptor.PrototypeMarshaller;
import io.grpc.ServiceDescriptor;
import io.grpc.StatusRuntimeException;
import io.grpc.stub.ClientCalls;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.function.Function;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import pointsman.api.handoff.v1.DeliveryOuterClass.Deliverable;
import pointsman.api.orchestrator.v1.AgentOuterClass.Completion;
import pointsman.api.orchestrator.v1.AssignmentOuterClass.Capability;
import pointsman.api.orchestrator.v1.MockServiceGrpc;
import pointsman.api.orchestrator.v1.Orchestrator.GetDeliveryRequest;
import pointsman.api.orchestrator.v1.Orchestrator.GetRunRequest;
import pointsman.api.orchestrator.v1.OrchestratorServiceGrpc;

/** Plays the scenario against a real server; an {@link IllegalStateException} says what was not as it has to be. */
public final class Conformance {
    /** What a client shows after the scenario. */
    public record Shown(String runId, String end, List<Long> seqs, int claims) {}

    private final Function<String, Client> connectAs;
    private final Client client;
    private final Scenario scenario;
    private final CompletableFuture<String> second = new CompletableFuture<>();

    /** Nothing is called yet; {@code connectAs} connects with the token of a role. */
    public Conformance(Function<String, Client> connectAs, Scenario scenario) {
        this.connectAs = connectAs;
        this.client = connectAs.apply("operator");
        this.scenario = scenario;
    }

    /** From the submission to the last refusal. */
    public Shown play() throws InvalidProtocolBufferException {
        String requestId = Client.newRequestId();
        String runId = client.submit(requestId, scenario.message()).getRun().getId();
        same("the run of the same submission", client.submit(requestId, scenario.message()).getRun().getId(), runId);
        scenario.agents().forEach(this::startAgent);
        List<Long> seqs = watchBroken(runId);
        same("the second completion of a lease", second.join(), scenario.secondCompletion());
        var run = client.orchestrator(stub -> stub.getRun(GetRunRequest.newBuilder().setRunId(runId).build())).getRun();
        same("the end of the run", run.getState().name(), scenario.end());
        int claims = deliveredClaims(runId);
        for (Scenario.Refusal wanted : scenario.refusals()) {
            String request = wanted.request().toString().replace("${run_id}-submit", requestId);
            refused(wanted, request.replace("${run_id}", runId));
        }
        return new Shown(runId, run.getState().name(), seqs, claims);
    }

    /** Lets an agent work beside the scenario; what it hands in first is handed in a second time. */
    private void startAgent(Scenario.Part part) {
        List<Capability> capabilities = part.capabilities().stream().map(Capability::valueOf).toList();
        String id = part.name() + "-" + Client.newRequestId();
        Agent agent = new Agent(connectAs.apply(part.role()), id, capabilities, new ExampleWork(), this::handInAgain);
        Thread thread = new Thread(agent, id);
        thread.setDaemon(true);
        thread.start();
    }

    private void handInAgain(Agent agent, Completion completion) {
        if (!second.isDone()) {
            second.complete(agent.complete(completion).getReason().name());
        }
    }

    /** Watches to the end, leaving its own stream once and coming back after the last seq. */
    private List<Long> watchBroken(String runId) {
        List<Long> seqs = new ArrayList<>();
        client.watch(runId, 0, transition -> {
            seqs.add(transition.getSeq());
            return seqs.size() < scenario.breakTheWatchAfter();
        });
        client.watch(runId, seqs.get(seqs.size() - 1), transition -> seqs.add(transition.getSeq()));
        same("the watched transitions", seqs, LongStream.rangeClosed(1, seqs.size()).boxed().toList());
        return seqs;
    }

    private int deliveredClaims(String runId) {
        var request = GetDeliveryRequest.newBuilder().setRunId(runId).build();
        var delivery = client.orchestrator(stub -> stub.getDelivery(request)).getDelivery();
        int claims = delivery.getDeliverablesList().stream().mapToInt(Deliverable::getClaimsCount).sum();
        same("whether what was claimed is delivered", claims > 0, true);
        return claims;
    }

    /** Makes a call by its name and compares how it fails. */
    private void refused(Scenario.Refusal wanted, String json) throws InvalidProtocolBufferException {
        MethodDescriptor<Message, Message> method = methodNamed(wanted.method());
        var prototype = ((PrototypeMarshaller<Message>) method.getRequestMarshaller()).getMessagePrototype();
        Message.Builder request = prototype.newBuilderForType();
        JsonFormat.parser().merge(json, request);
        try {
            ClientCalls.blockingUnaryCall(client.channel(), method, CallOptions.DEFAULT, request.build());
        } catch (StatusRuntimeException thrown) {
            Failure failure = new Failure(thrown);
            same(wanted.name() + ": the code", failure.code().name(), wanted.code());
            same(wanted.name() + ": the reason", failure.reason(), wanted.reason());
            same(wanted.name() + ": the advice", failure.advice(), wanted.advice());
            if (wanted.field() != null) {
                same(wanted.name() + ": the fields", failure.fields(), List.of(wanted.field()));
            }
            return;
        }
        throw new IllegalStateException(wanted.name() + ": was not refused");
    }

    @SuppressWarnings("unchecked")
    private static MethodDescriptor<Message, Message> methodNamed(String name) {
        return Stream.of(OrchestratorServiceGrpc.getServiceDescriptor(), MockServiceGrpc.getServiceDescriptor())
                .map(ServiceDescriptor::getMethods)
                .flatMap(methods -> methods.stream())
                .filter(method -> method.getFullMethodName().equals(name))
                .map(method -> (MethodDescriptor<Message, Message>) method)
                .findFirst()
                .orElseThrow(() -> new IllegalStateException("no such method: " + name));
    }

    private static void same(String what, Object found, Object wanted) {
        if (!Objects.equals(found, wanted)) {
            throw new IllegalStateException(what + " is " + found + ", not " + wanted);
        }
    }
}
