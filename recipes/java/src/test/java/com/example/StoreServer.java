package com.example;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.Writer;
import java.nio.file.Path;
import java.util.Objects;

/** A test's own server, started by coordination/examples/store_server.rs. It stops when this process exits. */
public final class StoreServer implements AutoCloseable {
    public final String url;
    private final Process process;
    private final BufferedReader said;
    private final Writer told;

    public StoreServer(String kind) throws IOException {
        Path program = Path.of(System.getenv("CARGO_TARGET_DIR"), "debug/examples/store_server");
        process = new ProcessBuilder(program.toString(), kind).redirectError(ProcessBuilder.Redirect.INHERIT).start();
        said = process.inputReader();
        told = process.outputWriter();
        url = Objects.requireNonNull(said.readLine(), "it says why on stderr");
    }

    /** Sends {@code kill} or {@code start} to the program. */
    public void tell(String word) throws IOException {
        told.write(word + "\n");
        told.flush();
        if (!word.equals(said.readLine())) {
            throw new IOException(word);
        }
    }

    @Override
    public void close() throws Exception {
        told.close();
        process.waitFor();
    }
}
