package pointsman.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import io.grpc.Status;
import java.io.IOException;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;

class AdviceTest {
    @Test
    void everyRefusalOfTheScenarioLeadsToItsAdvice() throws IOException {
        Scenario scenario = Scenario.read(Path.of("../scenario.json"));
        assertFalse(scenario.advice().isEmpty());
        for (Scenario.Refusal wanted : scenario.advice()) {
            Advice advice = Advice.about(Status.Code.valueOf(wanted.code()), wanted.reason());
            assertEquals(wanted.advice(), advice, wanted.code() + " " + wanted.reason());
        }
    }
}
