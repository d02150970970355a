package io.polyflake;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.spi.ToolProvider;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.api.io.TempDir;

/**
 * Runs the Java code in the README and in the guide, and compares its output with the comments after the print
 * statements. Code without a class is the body of a main method.
 */
class ReadmeTest {
    private static final String IMPORTS = """
            import io.polyflake.*;
            import java.nio.file.Path;
            import java.time.*;
            import java.util.*;
            """;
    private static final List<String> PAGES = List.of("README.md", "../../README.md", "../../docs/README.md",
            "../../docs/getting-started/java.md", "../../docs/counters.md", "../../docs/sequences.md",
            "../../docs/public-ids.md", "../../docs/text-formats.md");
    private static final Pattern BLOCK = Pattern.compile("(?ms)^```java\\n(.*?)^```$");
    private static final Pattern PRINTS = Pattern.compile("(?m)^\\s*System\\.out\\.println\\(.*\\); // (.*)$");

    @TempDir
    private Path folder;

    @TestFactory
    List<DynamicTest> samples() throws Exception {
        List<DynamicTest> tests = new ArrayList<>();
        for (String page : PAGES) {
            String text = Files.readString(Path.of(page));
            List<String> blocks = BLOCK.matcher(text).results().map(found -> found.group(1)).toList();
            assertFalse(blocks.isEmpty(), page);
            for (String block : blocks) {
                int number = tests.size();
                tests.add(DynamicTest.dynamicTest(page + " " + number, () -> run(block, "Sample" + number)));
            }
        }
        return tests;
    }

    private void run(String block, String sample) throws Exception {
        Path here = Files.createDirectories(folder.resolve(sample));
        MatchResult named = Pattern.compile("public class (\\w+)").matcher(block).results().findFirst().orElse(null);
        String name = named == null ? sample : named.group(1);
        String code = named != null ? block : IMPORTS + "class " + name
                + " { public static void main(String[] arguments) throws Exception {\n" + block + "}}\n";
        // Each piece of code gets its own store.
        code = code.replace("redis://redis.internal/0", "sqlite://" + here.resolve("store.db"));
        code = code.replace("/var/lib/app", here.toString());
        Path source = Files.writeString(here.resolve(name + ".java"), code);
        var location = Snowflake.class.getProtectionDomain().getCodeSource().getLocation();
        String classes = Path.of(location.toURI()).toString();
        StringWriter said = new StringWriter();
        PrintWriter errors = new PrintWriter(said);
        int status = ToolProvider.findFirst("javac").orElseThrow().run(
                errors, errors, "--release", "22", "-cp", classes, "-d", here.toString(), source.toString());
        assertEquals(0, status, said + code);
        Path output = here.resolve("output");
        Process process = new ProcessBuilder(Path.of(System.getProperty("java.home"), "bin/java").toString(),
                "--enable-native-access=ALL-UNNAMED", "-cp", classes + ":" + here, name)
                .redirectErrorStream(true).redirectOutput(output.toFile()).start();
        assertEquals(0, process.waitFor(), Files.readString(output));
        Iterator<String> printed = Stream.of(Files.readString(output).split("\n")).iterator();
        for (MatchResult print : PRINTS.matcher(block).results().toList()) {
            boolean isThere = false;
            while (!isThere && printed.hasNext()) {
                isThere = printed.next().equals(print.group(1));
            }
            assertTrue(isThere, print.group() + " printed\n" + Files.readString(output));
        }
    }
}
