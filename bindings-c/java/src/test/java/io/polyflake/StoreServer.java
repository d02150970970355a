package io.polyflake;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.io.Writer;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Objects;
import java.util.stream.Stream;
import org.junit.jupiter.api.Assumptions;

/** A real server, started by {@code coordination/examples/store_server.rs}. It exits when this process does. */
final class StoreServer implements AutoCloseable {
    static final String SECRET = "secret-of-polyflake";

    private final Process process;
    private final BufferedReader said;
    private final Writer told;
    private final String url;

    private StoreServer(Path program, String kind) throws IOException {
        process = new ProcessBuilder(program.toString(), kind).redirectError(ProcessBuilder.Redirect.INHERIT).start();
        said = process.inputReader();
        told = process.outputWriter();
        url = Objects.requireNonNull(said.readLine(), "it says why on stderr");
    }

    /** Starts a server. Skips the test if the server, or the program that starts it, is not installed. */
    static StoreServer start(String kind) throws IOException {
        Path target = Path.of(Objects.requireNonNullElse(System.getenv("CARGO_TARGET_DIR"), "../../target"));
        Path program = target.resolve("debug/examples/store_server");
        Assumptions.assumeTrue(Files.isExecutable(program), "no " + program);
        Assumptions.assumeTrue(isInstalled(kind), "no server: " + kind);
        return new StoreServer(program, kind);
    }

    private static boolean isInstalled(String kind) throws IOException {
        if (kind.equals("postgres")) {
            // Debian has a folder for each version.
            Path versions = Path.of("/usr/lib/postgresql");
            if (!Files.isDirectory(versions)) {
                return false;
            }
            try (DirectoryStream<Path> found = Files.newDirectoryStream(versions)) {
                return found.iterator().hasNext();
            }
        }
        List<String> commands = switch (kind) {
            case "redis" -> List.of("redis-server", "redis-cli");
            case "mariadb" -> List.of("mariadbd", "openssl");
            case "etcd" -> List.of("etcd", "etcdctl", "curl");
            default -> throw new IllegalArgumentException(kind);
        };
        List<Path> folders = Stream.concat(Stream.of(System.getenv("PATH").split(":")), Stream.of("/usr/sbin"))
                .map(Path::of).toList();
        return commands.stream()
                .allMatch(name -> folders.stream().anyMatch(folder -> Files.isExecutable(folder.resolve(name))));
    }

    /** Returns an address for a new store, so that no process waits for earlier processes. */
    String address(String parameters) {
        return url + "?init=always&" + parameters;
    }

    void kill() {
        tell("kill");
    }

    void startAgain() {
        tell("start");
    }

    private void tell(String word) {
        try {
            told.write(word + "\n");
            told.flush();
            if (!word.equals(said.readLine())) {
                throw new AssertionError(word);
            }
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        }
    }

    @Override
    public void close() throws IOException {
        told.close();
        try {
            process.waitFor();
        } catch (InterruptedException interrupt) {
            Thread.currentThread().interrupt();
        }
    }
}
