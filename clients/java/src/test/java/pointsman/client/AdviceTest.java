package pointsman.client;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.grpc.Status;
import java.io.IOException;
import java.nio.file.Path;
import java.util.EnumSet;
import java.util.Set;
import org.junit.jupiter.api.Test;
import pointsman.api.common.v1.Common.ErrorReason;

class AdviceTest {
    private static final Path SCENARIO = Path.of("../scenario.json");

    @Test
    void everyRefusalOfTheScenarioLeadsToItsAdvice() throws IOException {
        for (Scenario.Refusal wanted : Scenario.read(SCENARIO).advice()) {
            Advice advice = Advice.about(Status.Code.valueOf(wanted.code()), wanted.reason());
            assertEquals(wanted.advice(), advice, wanted.code() + " " + wanted.reason());
        }
    }

    @Test
    void everyReasonOfTheContractHasAnAdvice() throws IOException {
        Set<ErrorReason> missing = EnumSet.complementOf(
                EnumSet.of(ErrorReason.ERROR_REASON_UNSPECIFIED, ErrorReason.UNRECOGNIZED));
        for (Scenario.Refusal wanted : Scenario.read(SCENARIO).advice()) {
            missing.removeIf(reason -> reason.name().equals("ERROR_REASON_" + wanted.reason()));
        }
        assertEquals(Set.of(), missing);
    }
}
