package io.polyflake;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.io.IOException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Tests where the native library is found. Each test starts a separate process. */
class LibraryTest {
    @TempDir
    private Path folder;

    /** Prints an ID. If that fails, prints the errors of two attempts. */
    static final class Child {
        private Child() {}

        public static void main(String[] arguments) {
            for (int n = 0; n < 2; n++) {
                try (var ids = Snowflake.builder().node(7).build()) {
                    System.out.println("node " + ids.decode(ids.nextId()).node());
                } catch (LibraryException failure) {
                    System.out.println(failure.getMessage());
                }
            }
        }
    }

    /** Uses up the stack with calls that read a clock in Java, and then prints a node. */
    static final class Deep {
        private static final Snowflake IDS = Snowflake.builder().node(7).clock(InstantSource.system()).build();
        private static long sum;

        private Deep() {}

        private static long descend() {
            sum += IDS.nextId() + IDS.nextIds(2)[0] + IDS.tryNextId().orElse(0) + IDS.stats().waits();
            return descend() + 1;
        }

        public static void main(String[] arguments) {
            for (int n = 0; n < 10; n++) {
                try {
                    descend();
                } catch (StackOverflowError expected) {
                    sum++;
                } catch (SequenceExhaustedException tooFast) {
                    n--;
                }
            }
            System.out.println("node " + IDS.node());
        }
    }

    /**
     * Builds a Snowflake in one thread and, a while later, the first leased one in another, and prints both nodes.
     */
    static final class FirstUses {
        private FirstUses() {}

        public static void main(String[] arguments) throws Exception {
            Thread plain = started(() -> System.out.println("node " + Snowflake.builder().node(7).build().node()));
            Thread.sleep(Integer.getInteger("after"));
            Thread leased = started(() -> {
                try (var ids = Snowflake.builder().node(8).lease(System.getProperty("store")).build()) {
                    System.out.println("node " + ids.node());
                }
            });
            boolean haveEnded = plain.join(Duration.ofMinutes(1)) && leased.join(Duration.ofMinutes(1));
            Runtime.getRuntime().halt(haveEnded ? 0 : 1);
        }

        private static Thread started(Runnable run) {
            return Thread.ofPlatform().daemon().start(run);
        }
    }

    /** Loads the package twice, as two web applications would, and prints what each copy finds. */
    static final class TwoLoaders {
        private TwoLoaders() {}

        public static void main(String[] arguments) throws Exception {
            List<URL> urls = new ArrayList<>();
            for (String each : System.getProperty("java.class.path").split(File.pathSeparator)) {
                urls.add(Path.of(each).toUri().toURL());
            }
            for (int n = 0; n < 2; n++) {
                var loader = new URLClassLoader(urls.toArray(URL[]::new), ClassLoader.getPlatformClassLoader());
                var loaded = Class.forName(Loaded.class.getName(), true, loader).getDeclaredConstructor();
                loaded.setAccessible(true); // to Java, it is in another package
                loaded.newInstance();
            }
        }
    }

    /** Prints a node and whether there is another copy of the library. */
    static final class Loaded {
        Loaded() {
            System.out.println("node " + Snowflake.builder().node(7).build().node() + " " + Native.copiesWarning());
        }
    }

    /** Returns the location of a class, for the class path. */
    private static Path classes(Class<?> of) throws Exception {
        return Path.of(of.getProtectionDomain().getCodeSource().getLocation().toURI());
    }

    private String run(Path resources, boolean isInstalled, String... options) throws Exception {
        return run(Child.class, resources, isInstalled, options);
    }

    private String run(Class<?> main, Path resources, boolean isInstalled, String... options) throws Exception {
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin/java").toString());
        command.add("-Djava.io.tmpdir=" + folder);
        command.addAll(List.of(options));
        // If no module is named, the classes are on the class path.
        String path = Stream.of(resources, classes(Snowflake.class), classes(LibraryTest.class))
                .filter(Objects::nonNull).distinct().map(Path::toString)
                .reduce((a, b) -> a + File.pathSeparator + b).orElseThrow();
        command.addAll(List.of("-cp", path, main.getName()));
        ProcessBuilder builder = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.DISCARD);
        if (!isInstalled) {
            builder.environment().remove("LD_LIBRARY_PATH");
        }
        Process process = builder.start();
        String said = new String(process.getInputStream().readAllBytes());
        assertEquals(0, process.waitFor(), said);
        return said;
    }

    private static Path installed() {
        for (String each : Objects.requireNonNullElse(System.getenv("LD_LIBRARY_PATH"), "").split(":")) {
            Path library = Path.of(each, "libpolyflake.so.0");
            if (Files.exists(library)) {
                return library;
            }
        }
        return Assumptions.abort("the library is not in LD_LIBRARY_PATH");
    }

    private static void assertSaid(String said, String... parts) {
        for (String part : parts) {
            int first = said.indexOf(part);
            assertTrue(first >= 0, said);
            assertTrue(said.indexOf(part, first + 1) > 0, "only the first call says " + part + ": " + said);
        }
    }

    @Test
    void amongTheSystemsLibraries() throws Exception {
        installed();
        assertEquals("node 7\nnode 7\n", run(null, true, "--enable-native-access=ALL-UNNAMED"));
    }

    @Test
    void byTheProperty() throws Exception {
        assertEquals("node 7\nnode 7\n", run(null, false, "-Dpolyflake.library=" + installed()));
        assertSaid(run(null, true, "-Dpolyflake.library=/no/lib.so"), "no such file: /no/lib.so",
                "the system property polyflake.library");
    }

    @Test
    void inTheJar() throws Exception {
        Path natives = Files.createDirectories(folder.resolve("jar/io/polyflake/native/" + platform()));
        Path packed = natives.resolve("libpolyflake.so");
        Files.copy(installed(), packed);
        assertEquals("node 7\nnode 7\n", run(folder.resolve("jar"), false));
        assertEquals(List.of("jar"), left(), "what was extracted is deleted");
        assertEquals("node 7 null\n".repeat(2), run(TwoLoaders.class, folder.resolve("jar"), false));
        assertEquals(List.of("jar"), left());
        for (int after : new int[] {0, 20, 40, 60}) {
            String store = "-Dstore=sqlite://" + folder.resolve(after + ".db") + "?init=always";
            String said = run(FirstUses.class, folder.resolve("jar"), false, "-Dafter=" + after, store);
            assertEquals(List.of("node 7", "node 8"), said.lines().sorted().toList());
        }
        // A truncated library.
        Files.write(packed, new byte[100]);
        assertSaid(run(folder.resolve("jar"), false), "native/" + platform(), "the system's libraries");
        assertEquals(List.of("jar"), left());
    }

    private static String platform() {
        String machine = System.getProperty("os.arch").equals("aarch64") ? "arm64" : "x64";
        Assumptions.assumeTrue(System.getProperty("os.name").equals("Linux"), "the paths are those of Linux");
        boolean isMusl = new File("/lib").list((folder, name) -> name.startsWith("ld-musl-")).length > 0;
        return "linux-" + machine + (isMusl ? "-musl" : "-gnu");
    }

    private List<String> left() throws IOException {
        try (Stream<Path> files = Files.list(folder)) {
            return files.map(file -> file.getFileName().toString()).filter(name -> !name.startsWith("hsperf"))
                    .filter(name -> !name.contains(".db")).toList();
        }
    }

    @Test
    void missing() throws Exception {
        assertSaid(run(null, false), "polyflake cannot load libpolyflake; it looked at\n",
                "- the jar: it has no library for linux-", "- the system's libraries: ", "-Dpolyflake.library=");
    }

    @Test
    void anotherLibrary() throws Exception {
        Path other = Path.of(System.getProperty("java.home"), "lib/libjava.so");
        Assumptions.assumeTrue(Files.exists(other));
        assertSaid(run(null, true, "-Dpolyflake.library=" + other), "it is another library");
    }

    @Test
    void anotherAbi() throws Exception {
        Path source = Files.writeString(folder.resolve("abi.c"), "unsigned polyflake_abi_version(void) { return 99; }");
        Path library = folder.resolve("libabi.so");
        Stream<String> folders = Stream.of(System.getenv("PATH").split(":"));
        Assumptions.assumeTrue(folders.anyMatch(at -> Files.exists(Path.of(at, "cc"))), "no cc");
        assertEquals(0, new ProcessBuilder("cc", "-shared", "-o", library.toString(), source.toString()).inheritIO()
                .start().waitFor());
        assertSaid(run(null, true, "-Dpolyflake.library=" + library),
                "its ABI version is 99, and this package needs " + Native.ABI_VERSION);
    }

    /** Tests that the values Java copies from the header match the header. */
    @Test
    void theHeader() throws Exception {
        String header = Files.readString(Path.of("../include/polyflake.h"));
        String functions = Files.readString(Path.of("src/main/java/io/polyflake/Native.java"));
        Map.of("ABI_VERSION", Native.ABI_VERSION, "ID_TEXT_SIZE", Native.ID_TEXT_SIZE, "LAYOUT_TEXT_SIZE",
                Native.LAYOUT_TEXT_SIZE, "PUBLIC_ID_SIZE", Native.PUBLIC_ID_SIZE, "PUBLIC_KEY_SIZE",
                Native.PUBLIC_KEY_SIZE, "MAX_BATCH", Snowflake.MAX_BATCH)
                .forEach((name, value) -> assertTrue(
                        header.contains("#define POLYFLAKE_" + name + " " + value + "\n"), name));
        List<String> names = Pattern.compile("\"(polyflake_\\w+)\"").matcher(functions).results()
                .map(found -> found.group(1)).toList();
        assertTrue(names.size() > 50);
        names.forEach(name -> assertTrue(Pattern.compile("\\b" + name + "\\(").matcher(header).find(), name));
    }

    /** Tests that the JVM survives a StackOverflowError, which would terminate it in a call from C. */
    @Test
    void aUsedUpStackIsAnError() throws Exception {
        installed();
        assertEquals("node 7\n", run(Deep.class, null, true));
        assertEquals("node 7\n", run(Deep.class, null, true, "-Xss512k"));
    }

    @Test
    void deniedAccessNamesTheFlag() throws Exception {
        Assumptions.assumeTrue(Runtime.version().feature() >= 24, "only Java 24 and later can deny it");
        assertSaid(run(null, true, "--illegal-native-access=deny"), "--enable-native-access=ALL-UNNAMED");
    }
}
