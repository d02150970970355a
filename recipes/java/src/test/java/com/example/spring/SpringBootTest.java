package com.example.spring;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.example.Generators;
import com.example.StoreServer;
import io.polyflake.ClosedException;
import io.polyflake.Layout;
import io.polyflake.Lease;
import io.polyflake.Snowflake;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.springframework.boot.SpringApplication;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

class SpringBootTest {
    @TempDir
    private Path folder;

    private static ConfigurableApplicationContext start(String... options) {
        return start(new SpringApplication(Shop.class), options);
    }

    private static ConfigurableApplicationContext start(SpringApplication application, String... options) {
        application.setRegisterShutdownHook(false);
        List<String> arguments = new ArrayList<>(List.of(
                "--server.port=0", "--server.address=127.0.0.1", "--spring.main.banner-mode=off",
                "--logging.level.root=warn", "--spring.jpa.hibernate.ddl-auto=create-drop",
                "--spring.jpa.open-in-view=false",
                "--management.endpoint.health.show-components=always",
                "--management.endpoint.health.show-details=always",
                "--spring.data.jdbc.repositories.enabled=false"));
        arguments.addAll(List.of(options));
        return application.run(arguments.toArray(String[]::new));
    }

    private static HttpResponse<String> send(ConfigurableApplicationContext program, String path, String body)
            throws Exception {
        URI uri = URI.create("http://127.0.0.1:" + program.getEnvironment().getProperty("local.server.port") + path);
        HttpRequest.Builder request = HttpRequest.newBuilder(uri).header("Accept", "application/json");
        if (body != null) {
            request.header("Content-Type", "application/json").POST(HttpRequest.BodyPublishers.ofString(body));
        }
        try (HttpClient client = HttpClient.newHttpClient()) {
            return client.send(request.build(), HttpResponse.BodyHandlers.ofString());
        }
    }

    private static JsonNode health(ConfigurableApplicationContext program) throws Exception {
        return JsonMapper.shared().readTree(send(program, "/actuator/health", null).body()).at("/components/polyflake");
    }

    private String lease() {
        return "sqlite://" + folder + "/store.db";
    }

    @Test
    void aProgramLeasesANodeAndGivesItBack() throws Exception {
        String only = "?nodes=5-5";
        ConfigurableApplicationContext program =
                start("--polyflake.lease=" + lease() + only, "--polyflake.layout=leaf");
        Snowflake ids = program.getBean(Snowflake.class);
        assertEquals(5, ids.node());
        assertEquals(Layout.of("leaf"), ids.layout());

        String parent = "1541815603606036481";
        HttpResponse<String> answer = send(program, "/orders", "{\"parent\":\"" + parent + "\"}");
        assertEquals(200, answer.statusCode(), answer.body());
        JsonNode order = JsonMapper.shared().readTree(answer.body());
        assertEquals(parent, order.get("parent").asString());
        assertEquals(5, ids.decode(Long.parseLong(order.get("id").asString())).node());
        assertEquals(400, send(program, "/orders", "{\"parent\":" + parent + "}").statusCode());

        JsonNode health = health(program);
        assertEquals("UP", health.get("status").asString());
        assertEquals(5, health.at("/details/node").asInt());
        assertEquals("HELD", health.at("/details/lease").asString());

        program.close();
        assertThrows(ClosedException.class, ids::nextId);
        assertEquals(Lease.State.CLOSED, ids.lease().orElseThrow().state());
        // The node is free, so another program can take it at once.
        try (Snowflake next = Snowflake.builder().lease(lease() + only + "&wait=0s").layout("leaf").build()) {
            assertEquals(5, next.node());
        }
    }

    @Test
    void aRequestThatHasBegunGetsItsId() throws Exception {
        Shop.began = new CountDownLatch(1);
        Shop.mayEnd = new CountDownLatch(1);
        ConfigurableApplicationContext program = start("--polyflake.lease=" + lease() + Generators.LEASED);
        try (var threads = Executors.newVirtualThreadPerTaskExecutor()) {
            Future<HttpResponse<String>> answer = threads.submit(() -> send(program, "/slow", ""));
            Shop.began.await();
            Future<?> end = threads.submit(program::close);
            assertThrows(TimeoutException.class, () -> end.get(1, TimeUnit.SECONDS));
            Shop.mayEnd.countDown();
            assertEquals(200, answer.get().statusCode(), answer.get().body());
            end.get();
        }
    }

    @Test
    void itIsUpWithoutItsStoreUntilTheLeaseIsLost() throws Exception {
        try (StoreServer redis = new StoreServer("redis");
                var program = start("--polyflake.lease=" + redis.url + Generators.LEASED + "&init=always&ttl=6s")) {
            redis.tell("kill");
            JsonNode health = waitFor(program, "UNREACHABLE");
            assertEquals("UP", health.get("status").asString());
            program.getBean(Snowflake.class).nextId();
            assertEquals("DOWN", waitFor(program, "LOST").get("status").asString());
            assertEquals(503, send(program, "/actuator/health", null).statusCode());
            redis.tell("start");
            health = waitFor(program, "HELD");
            assertEquals("UP", health.get("status").asString());
            String store = health.at("/details/store").asString();
            assertTrue(store.startsWith("redis://") && !store.contains("secret"), store);
        }
    }

    private static JsonNode waitFor(ConfigurableApplicationContext program, String state) throws Exception {
        while (true) {
            JsonNode health = health(program);
            if (health.at("/details/lease").asString().equals(state)) {
                return health;
            }
            Thread.sleep(50);
        }
    }

    @Test
    void aNodeIsEnough() throws Exception {
        try (var program = start("--polyflake.node=datacenter=1,worker=7", "--polyflake.max-wait=0s")) {
            assertEquals(39, program.getBean(Snowflake.class).node());
            JsonNode health = health(program);
            assertEquals("UP", health.get("status").asString());
            assertEquals("{\"node\":39}", health.get("details").toString());
        }
    }

    static class OwnSnowflake {
        @Bean
        Snowflake own() {
            return Snowflake.builder().node(9).build();
        }
    }

    @Test
    void aSnowflakeOfTheProgramComesFirst() throws Exception {
        try (var program = start(new SpringApplication(Shop.class, OwnSnowflake.class), "--polyflake.node=7")) {
            assertEquals(9, program.getBean(Snowflake.class).node());
        }
    }

    @Test
    void aProgramWithoutANodeDoesNotStart() {
        Throwable error = assertThrows(RuntimeException.class, SpringBootTest::start);
        while (error.getCause() != null) {
            error = error.getCause();
        }
        assertEquals("InvalidNodeException", error.getClass().getSimpleName());
    }
}
