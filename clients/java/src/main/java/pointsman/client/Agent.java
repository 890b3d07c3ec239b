package pointsman.client;

import com.google.protobuf.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.BiConsumer;
import pointsman.api.orchestrator.v1.AgentOuterClass.CompleteRequest;
import pointsman.api.orchestrator.v1.AgentOuterClass.Completion;
import pointsman.api.orchestrator.v1.AgentOuterClass.CompletionOutcome;
import pointsman.api.orchestrator.v1.AgentOuterClass.FailRequest;
import pointsman.api.orchestrator.v1.AgentOuterClass.HeartbeatRequest;
import pointsman.api.orchestrator.v1.AgentOuterClass.Lease;
import pointsman.api.orchestrator.v1.AgentOuterClass.LeaseKey;
import pointsman.api.orchestrator.v1.AgentOuterClass.PollRequest;
import pointsman.api.orchestrator.v1.AgentOuterClass.Wanted;
import pointsman.api.orchestrator.v1.AssignmentOuterClass.Capability;

/** Pulls assignments, keeps their leases alive while it works, and hands in. */
public final class Agent implements Runnable {
    private static final long POLL_SECONDS = 10;
    private static final long HEARTBEAT_SECONDS = 10;
    private static final int LONGEST_ERROR = 4096;

    /** Does what a lease asks for; it is interrupted when the lease is lost. */
    @FunctionalInterface
    public interface Work {
        /** What came out. */
        Completion perform(Lease lease) throws Exception;
    }

    private final Client client;
    private final String id;
    private final List<Capability> capabilities;
    private final Work work;
    private final BiConsumer<Agent, Completion> handedIn;
    private final ExecutorService worker;

    /** An agent; {@code handedIn} sees what it has handed in. */
    public Agent(
            Client client,
            String id,
            List<Capability> capabilities,
            Work work,
            BiConsumer<Agent, Completion> handedIn) {
        this.client = client;
        this.id = id;
        this.capabilities = capabilities;
        this.work = work;
        this.handedIn = handedIn;
        this.worker = Executors.newSingleThreadExecutor(task -> {
            Thread thread = new Thread(task, id);
            thread.setDaemon(true);
            return thread;
        });
    }

    /** The key under which everything about a lease is said. */
    public static LeaseKey keyOf(Lease lease) {
        return LeaseKey.newBuilder()
                .setAssignmentId(lease.getAssignment().getId())
                .setEpoch(lease.getEpoch())
                .setSecret(lease.getSecret())
                .build();
    }

    /** Works until it is interrupted, or until trying again can no longer help. */
    @Override
    public void run() {
        try {
            while (!Thread.currentThread().isInterrupted()) {
                for (Lease lease : poll()) {
                    handle(lease);
                }
            }
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
        } finally {
            worker.shutdownNow();
        }
    }

    private List<Lease> poll() {
        var request = PollRequest.newBuilder()
                .setRequestId(Client.newRequestId())
                .setAgentId(id)
                .setWanted(Wanted.newBuilder().addAllCapabilities(capabilities))
                .setWait(Duration.newBuilder().setSeconds(POLL_SECONDS))
                .build();
        return client.agents(stub -> stub.poll(request)).getLeasesList();
    }

    private void handle(Lease lease) throws InterruptedException {
        Future<Completion> working = worker.submit(() -> work.perform(lease));
        try {
            Optional<Completion> done = whileTheLeaseLives(working, lease);
            if (done.isPresent()) {
                complete(done.get());
                handedIn.accept(this, done.get());
            }
        } catch (ExecutionException broken) {
            fail(lease, broken.getCause());
        }
    }

    /** What the work brings; nothing when the lease was lost meanwhile and the work was ended. */
    private Optional<Completion> whileTheLeaseLives(Future<Completion> working, Lease lease)
            throws InterruptedException, ExecutionException {
        try {
            while (true) {
                try {
                    return Optional.of(working.get(HEARTBEAT_SECONDS, TimeUnit.SECONDS));
                } catch (TimeoutException stillWorking) {
                    if (isLost(lease)) {
                        return Optional.empty();
                    }
                }
            }
        } finally {
            working.cancel(true);
        }
    }

    private boolean isLost(Lease lease) {
        var request = HeartbeatRequest.newBuilder()
                .setRequestId(Client.newRequestId())
                .setAgentId(id)
                .addLeases(keyOf(lease))
                .build();
        return client.agents(stub -> stub.heartbeat(request)).getLostAssignmentIdsCount() > 0;
    }

    /** Hands in one result; an outcome that is not accepted says why. */
    public CompletionOutcome complete(Completion completion) {
        var request = CompleteRequest.newBuilder()
                .setRequestId(Client.newRequestId())
                .setAgentId(id)
                .addCompletions(completion)
                .build();
        return client.agents(stub -> stub.complete(request)).getOutcomes(0);
    }

    private void fail(Lease lease, Throwable cause) {
        String error = cause.toString();
        var failure = pointsman.api.orchestrator.v1.AgentOuterClass.Failure.newBuilder()
                .setLease(keyOf(lease))
                .setError(error.substring(0, Math.min(error.length(), LONGEST_ERROR)));
        var request = FailRequest.newBuilder()
                .setRequestId(Client.newRequestId())
                .setAgentId(id)
                .addFailures(failure)
                .build();
        client.agents(stub -> stub.fail(request));
    }
}
