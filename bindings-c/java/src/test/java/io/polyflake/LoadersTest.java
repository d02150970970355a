package io.polyflake;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.File;
import java.lang.ref.Reference;
import java.lang.ref.WeakReference;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.List;
import java.util.ResourceBundle;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests, in a separate process, that an application that has closed its objects leaves no class loader behind. */
@Timeout(120)
class LoadersTest {
    private static final int APPLICATIONS = 3;
    private static final int COLLECTIONS = 300;

    @TempDir
    private Path folder;

    /** An application that keeps its objects in static fields, as many do. */
    static final class Application implements Consumer<String> {
        private static final List<Object> KEPT = new ArrayList<>();

        Application() {}

        @Override
        public void accept(String store) {
            KEPT.add(this);
            KEPT.add(Layout.of("discord"));
            KEPT.add(PublicIds.of(PublicIds.generateKey(0), "order"));
            try (var plain = Snowflake.builder().node(7).build();
                    var leased = Snowflake.builder().lease(store + "?nodes=700-709&wait=0s").build();
                    var counter = Counter.open("orders", store);
                    var sequences = Sequences.open("inbox", String.class, store)) {
                KEPT.addAll(List.of(plain, leased, counter, sequences));
                System.out.println("node " + plain.decode(plain.nextId()).node() + ", " + counter.nextId() + ", "
                        + sequences.nextId("alice"));
                leased.nextId();
            }
            try (var timed = Snowflake.builder().node(8).clock(InstantSource.system()).build()) {
                timed.nextId();
            }
        }
    }

    /** An application with a listener: the first call opens a lease, the second closes it and waits for the event. */
    static final class Listening implements Consumer<String> {
        private static final CountDownLatch RELEASED = new CountDownLatch(1);
        private static Snowflake leased;

        Listening() {}

        @Override
        public void accept(String store) {
            if (leased == null) {
                LeaseEvents.onEvent(event -> {
                    if (event.kind().equals("released")) {
                        RELEASED.countDown();
                    }
                });
                leased = Snowflake.builder().lease(store + "?nodes=700-709&wait=0s&label=" + hashCode()).build();
                return;
            }
            leased.close();
            try {
                RELEASED.await();
            } catch (InterruptedException impossible) {
                throw new AssertionError(impossible);
            }
            LeaseEvents.logEvents();
            System.out.println("heard");
        }
    }

    /** Runs applications one after another, and prints how many of their class loaders remain. */
    static final class Container {
        private Container() {}

        public static void main(String[] arguments) throws Exception {
            ClassLoader above = ClassLoader.getPlatformClassLoader();
            if (arguments[1].equals("shared")) {
                above = new URLClassLoader(new URL[] {urls()[0]}, above);
            }
            List<WeakReference<ClassLoader>> dropped = new ArrayList<>();
            for (int n = 0; n < APPLICATIONS; n++) {
                dropped.add(run(arguments[0], above, arguments[2]));
            }
            for (int n = 0; n < COLLECTIONS && left(dropped) > 0; n++) {
                System.gc();
                Thread.sleep(10); // gives the cleaners' threads time to run
            }
            System.out.println(left(dropped) + " left");
            Reference.reachabilityFence(above);
        }

        private static long left(List<WeakReference<ClassLoader>> loaders) {
            return loaders.stream().filter(each -> each.get() != null).count();
        }

        private static WeakReference<ClassLoader> run(String name, ClassLoader above, String store) throws Exception {
            try (var loader = new URLClassLoader(urls(), above)) {
                Consumer<String> application = made(name, loader);
                application.accept(store);
                if (name.equals(Listening.class.getName())) {
                    application.accept(store);
                }
                return new WeakReference<>(loader);
            }
        }
    }

    /** Runs two applications that listen. The first must still receive its events after the second has stopped. */
    static final class Neighbours {
        private Neighbours() {}

        public static void main(String[] arguments) throws Exception {
            List<Consumer<String>> both = new ArrayList<>();
            for (int n = 0; n < 2; n++) {
                both.add(made(Listening.class.getName(),
                        new URLClassLoader(urls(), ClassLoader.getPlatformClassLoader())));
                both.getLast().accept(arguments[0]);
            }
            both.getLast().accept(arguments[0]);
            both.getFirst().accept(arguments[0]);
        }
    }

    /** Fails to log the first events, and then prints whether a listener is still told about later ones. */
    static final class FullLog {
        private FullLog() {}

        public static void main(String[] arguments) throws Exception {
            Snowflake.builder().lease(arguments[0]).build().close();
            FullDisk.WAS_TRIED.await();
            CountDownLatch heard = new CountDownLatch(1);
            LeaseEvents.onEvent(event -> heard.countDown());
            Snowflake.builder().lease(arguments[0]).build().close();
            System.out.println(heard.await(1, TimeUnit.MINUTES) ? "heard" : "not heard");
        }
    }

    /** Loggers that cannot write. */
    public static final class FullDisk extends System.LoggerFinder {
        private static final CountDownLatch WAS_TRIED = new CountDownLatch(1);

        /** Called by the service loader. */
        public FullDisk() {}

        @Override
        public System.Logger getLogger(String name, Module module) {
            return new System.Logger() {
                @Override
                public String getName() {
                    return name;
                }

                @Override
                public boolean isLoggable(Level level) {
                    return name.equals("io.polyflake");
                }

                @Override
                public void log(Level level, ResourceBundle bundle, String text, Throwable thrown) {
                    WAS_TRIED.countDown();
                    throw new IllegalStateException("the disk is full");
                }

                @Override
                public void log(Level level, ResourceBundle bundle, String format, Object... values) {
                    log(level, bundle, format, (Throwable) null);
                }
            };
        }
    }

    private static URL[] urls() throws Exception {
        List<URL> urls = new ArrayList<>();
        for (String each : System.getProperty("java.class.path").split(File.pathSeparator)) {
            urls.add(Path.of(each).toUri().toURL());
        }
        return urls.toArray(URL[]::new);
    }

    @SuppressWarnings("unchecked")
    private static Consumer<String> made(String name, ClassLoader loader) throws Exception {
        var made = Class.forName(name, true, loader).getDeclaredConstructor();
        made.setAccessible(true); // to Java, it is in another package
        return (Consumer<String>) made.newInstance();
    }

    private String run(Class<?> main, String... arguments) throws Exception {
        List<String> command = new ArrayList<>(List.of(
                Path.of(System.getProperty("java.home"), "bin/java").toString(),
                // Otherwise, the JVM's own caches keep their objects alive as long as memory lasts.
                "-XX:SoftRefLRUPolicyMSPerMB=0", "-Xmx128m", "-XX:+UseSerialGC", "--enable-native-access=ALL-UNNAMED",
                "-cp", Stream.of(classes(Snowflake.class), classes(LoadersTest.class), folder).map(Path::toString)
                        .collect(Collectors.joining(File.pathSeparator)),
                main.getName()));
        command.addAll(List.of(arguments));
        command.add("sqlite://" + folder.resolve("store.db"));
        Process process = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.DISCARD).start();
        String said = new String(process.getInputStream().readAllBytes());
        assertEquals(0, process.waitFor(), said);
        return said;
    }

    /** Returns the location of a class, for the class path. */
    private static Path classes(Class<?> of) throws Exception {
        return Path.of(of.getProtectionDomain().getCodeSource().getLocation().toURI());
    }

    @ParameterizedTest
    @ValueSource(strings = {"own", "shared"})
    void closedObjectsKeepNoLoader(String whose) throws Exception {
        String said = run(Container.class, Application.class.getName(), whose);
        assertEquals("node 7, 1, 1\nnode 7, 2, 2\nnode 7, 3, 3\n0 left\n", said);
    }

    @ParameterizedTest
    @ValueSource(strings = {"own", "shared"})
    void aListenerThatWasReplacedKeepsNoLoader(String whose) throws Exception {
        assertEquals("heard\nheard\nheard\n0 left\n", run(Container.class, Listening.class.getName(), whose));
    }

    @Test
    void anApplicationThatEndsLeavesTheListenersOfOthers() throws Exception {
        assertEquals("heard\nheard\n", run(Neighbours.class));
    }

    @Test
    void aLogThatFailsLosesNoLaterEvents() throws Exception {
        Path services = Files.createDirectories(folder.resolve("META-INF/services"));
        Files.writeString(services.resolve("java.lang.System$LoggerFinder"), FullDisk.class.getName());
        assertEquals("heard\n", run(FullLog.class));
    }
}
