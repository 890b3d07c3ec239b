package pointsman.client;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.grpc.Status;
import io.grpc.inprocess.InProcessChannelBuilder;
import io.grpc.inprocess.InProcessServerBuilder;
import io.grpc.stub.StreamObserver;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import pointsman.api.common.v1.Common.Transition;
import pointsman.api.orchestrator.v1.Orchestrator.WatchRunRequest;
import pointsman.api.orchestrator.v1.Orchestrator.WatchRunResponse;
import pointsman.api.orchestrator.v1.OrchestratorServiceGrpc.OrchestratorServiceImplBase;

class WatchTest {
    /** Breaks every stream after two transitions, until the fifth. */
    private static final class Fragile extends OrchestratorServiceImplBase {
        final List<Long> asked = new CopyOnWriteArrayList<>();

        @Override
        public void watchRun(WatchRunRequest request, StreamObserver<WatchRunResponse> stream) {
            asked.add(request.getAfterSeq());
            for (long seq = request.getAfterSeq() + 1; seq <= 5; seq++) {
                if (seq > request.getAfterSeq() + 2) {
                    stream.onError(Status.UNAVAILABLE.withDescription("the service is stopping").asRuntimeException());
                    return;
                }
                var transition = Transition.newBuilder().setSeq(seq);
                stream.onNext(WatchRunResponse.newBuilder().setTransition(transition).build());
            }
            stream.onCompleted();
        }
    }

    @Test
    @Timeout(60)
    void aBrokenWatchGoesOnWithoutGapOrRepeat() throws IOException {
        Fragile fragile = new Fragile();
        var server = InProcessServerBuilder.forName("fragile").addService(fragile).build().start();
        List<Long> seqs = new ArrayList<>();
        try (Client client = new Client(InProcessChannelBuilder.forName("fragile").build(), "local", "")) {
            client.watch("run", 0, transition -> seqs.add(transition.getSeq()));
        } finally {
            server.shutdownNow();
        }
        assertEquals(List.of(1L, 2L, 3L, 4L, 5L), seqs);
        assertEquals(List.of(0L, 2L, 4L), fragile.asked);
    }
}
