package pointsman.client;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import pointsman.api.orchestrator.v1.AssignmentOuterClass.Capability;

/**
 * Works as an agent, or plays the scenario that every client has to show. It shows what {@code pointsman token --env}
 * prints; --tokens has a file ROLE.token for every role of the scenario.
 */
public final class Main {
    private static final String USAGE =
            "usage: pointsman-agent agent|conform [--server ADDRESS] [--project NAME] [--name NAME] [--scenario FILE]"
                    + " [--tokens DIRECTORY]";

    private Main() {}

    /** An agent that is stopped leaves its assignment to the next one: the lease runs out. */
    public static void main(String[] arguments) throws IOException {
        if (arguments.length % 2 == 0 || !Set.of("agent", "conform").contains(arguments[0])) {
            System.err.println(USAGE);
            System.exit(2);
        }
        Map<String, String> options = new HashMap<>(Map.of(
                "--server", System.getenv().getOrDefault("POINTSMAN_SERVER", "127.0.0.1:7460"),
                "--project", "local",
                "--name", "java-coder",
                "--scenario", "../scenario.json",
                "--tokens", ""));
        for (int place = 1; place < arguments.length; place += 2) {
            if (options.replace(arguments[place], arguments[place + 1]) == null) {
                System.err.println(USAGE);
                System.exit(2);
            }
        }
        if (arguments[0].equals("conform")) {
            Scenario scenario = Scenario.read(Path.of(options.get("--scenario")));
            Conformance conformance = new Conformance(role -> connectAs(role, options), scenario);
            System.out.println(Scenario.JSON.toJson(conformance.play()));
            System.exit(0); // polls that wait for work need not end first
        }
        try (Client client = connectAs("coder", options)) {
            List<Capability> code = List.of(Capability.CAPABILITY_CODE);
            new Agent(client, options.get("--name"), code, new ExampleWork(), (agent, done) -> {}).run();
        }
    }

    private static Client connectAs(String role, Map<String, String> options) {
        Client.Credentials shown = Client.Credentials.fromEnvironment();
        String tokens = options.get("--tokens");
        try {
            return Client.connect(
                    options.get("--server"),
                    options.get("--project"),
                    tokens.isEmpty() ? shown : shown.withToken(Path.of(tokens, role + ".token").toString()));
        } catch (IOException unreadable) {
            throw new UncheckedIOException(unreadable);
        }
    }
}
