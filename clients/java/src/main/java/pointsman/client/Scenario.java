package pointsman.client;

import com.google.gson.FieldNamingPolicy;
import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonObject;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/** clients/scenario.json, the same for clients in every language. */
public record Scenario(
        String message,
        List<Part> agents,
        int breakTheWatchAfter,
        String end,
        String secondCompletion,
        List<Refusal> refusals,
        List<Refusal> advice) {

    static final Gson JSON =
            new GsonBuilder().setFieldNamingPolicy(FieldNamingPolicy.LOWER_CASE_WITH_UNDERSCORES).create();

    /** An agent that takes part. */
    public record Part(String name, String role, List<String> capabilities) {}

    /** A call that has to fail, and how. */
    public record Refusal(
            String name, String method, JsonObject request, String code, String reason, Advice advice, String field) {}

    /** Reads the file. */
    public static Scenario read(Path file) throws IOException {
        return JSON.fromJson(Files.readString(file), Scenario.class);
    }
}
