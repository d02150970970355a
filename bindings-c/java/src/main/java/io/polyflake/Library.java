package io.polyflake;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;

/** Finds and loads {@code libpolyflake}, from a system property, the jar, or the system's libraries, in that order. */
@SuppressWarnings("restricted")
final class Library {
    static final String PROPERTY = "polyflake.library";

    /** Null if the library was not found. */
    private final SymbolLookup symbols;
    private final LibraryException missing;

    private Library(SymbolLookup symbols, LibraryException missing) {
        this.symbols = symbols;
        this.missing = missing;
    }

    static Library find() {
        StringBuilder looked = new StringBuilder();
        // If a path is set, look nowhere else: the user would not expect another library.
        String path = System.getProperty(PROPERTY);
        if (path != null) {
            return found("the system property " + PROPERTY + ", which rules out other places", looked,
                    () -> load(Path.of(path).toAbsolutePath()));
        }
        for (String platform : platforms()) {
            String resource = "native/" + platform + "/" + file(false);
            if (Library.class.getResource(resource) != null) {
                Library library = found("io/polyflake/" + resource + " in the jar", looked, () -> packed(resource));
                if (library.symbols != null) {
                    return library;
                }
            }
        }
        if (looked.isEmpty()) {
            looked.append("\n- the jar: it has no library for ").append(String.join(" or ", platforms()));
        }
        return found("the system's libraries", looked, () -> load(file(true)));
    }

    MemorySegment function(String name) {
        if (missing != null) {
            throw missing;
        }
        return symbols.find(name).orElseThrow(() -> new LibraryException(
                "libpolyflake has no function " + name + ": it is of another version than this package", null));
    }

    /**
     * Returns the platform names under which the jar may have a library for this machine, the most likely first. On
     * Linux, there is a build for each of two C libraries, and only one of the builds loads.
     */
    private static List<String> platforms() {
        String system = System.getProperty("os.name").toLowerCase(Locale.ROOT);
        String machine = switch (System.getProperty("os.arch")) {
            case "amd64", "x86_64" -> "x64";
            case "aarch64" -> "arm64";
            case String other -> other;
        };
        if (system.startsWith("mac")) {
            return List.of("darwin-" + machine);
        } else if (system.startsWith("windows")) {
            return List.of("win32-" + machine + "-gnu");
        }
        String glibc = "linux-" + machine + "-gnu";
        String musl = "linux-" + machine + "-musl";
        String[] loaders = new File("/lib").list((folder, name) -> name.startsWith("ld-musl-"));
        return loaders == null || loaders.length == 0 ? List.of(glibc, musl) : List.of(musl, glibc);
    }

    private static String file(boolean isInstalled) {
        String system = System.getProperty("os.name").toLowerCase(Locale.ROOT);
        if (system.startsWith("mac")) {
            return isInstalled ? "libpolyflake.0.dylib" : "libpolyflake.dylib";
        }
        return system.startsWith("windows") ? "polyflake.dll" : isInstalled ? "libpolyflake.so.0" : "libpolyflake.so";
    }

    private interface Loading {
        SymbolLookup load() throws IOException;
    }

    private static Library found(String place, StringBuilder looked, Loading loading) {
        try {
            SymbolLookup symbols = loading.load();
            requireAbi(symbols);
            return new Library(symbols, null);
        } catch (IllegalCallerException denied) {
            return new Library(null, new LibraryException("polyflake may not load its native library: start Java with "
                    + "--enable-native-access=" + module() + " (for an executable jar, put \"Enable-Native-Access: "
                    + "ALL-UNNAMED\" in its manifest)", denied));
        } catch (IOException | RuntimeException failure) {
            looked.append("\n- ").append(place).append(": ").append(failure.getMessage());
            return new Library(null, new LibraryException("polyflake cannot load libpolyflake; it looked at" + looked
                    + "\nTake a polyflake jar for this platform, or set -D" + PROPERTY
                    + "=/path/to/libpolyflake.so", failure));
        }
    }

    private static String module() {
        Module module = Library.class.getModule();
        return module.isNamed() ? module.getName() : "ALL-UNNAMED";
    }

    private static SymbolLookup load(Path path) throws IOException {
        if (!Files.isRegularFile(path)) {
            throw new IOException("no such file: " + path);
        }
        return SymbolLookup.libraryLookup(path, Arena.global());
    }

    private static SymbolLookup load(String name) {
        return SymbolLookup.libraryLookup(name, Arena.global());
    }

    private static void requireAbi(SymbolLookup symbols) throws IOException {
        MemorySegment function = symbols.find("polyflake_abi_version")
                .orElseThrow(() -> new IOException("it is another library: it has no polyflake_abi_version"));
        int version;
        try {
            version = (int) Linker.nativeLinker().downcallHandle(function, FunctionDescriptor.of(ValueLayout.JAVA_INT))
                    .invokeExact();
        } catch (Throwable thrown) {
            throw new AssertionError(thrown); // the function has no arguments and cannot fail
        }
        if (version != Native.ABI_VERSION) {
            throw new IOException("its ABI version is " + version + ", and this package needs " + Native.ABI_VERSION);
        }
    }

    /**
     * Loads the library from the jar, once per JVM: except on musl, class loaders that each have the jar share one
     * copy, and so its cursors.
     */
    private static SymbolLookup packed(String resource) throws IOException {
        byte[] content;
        try (InputStream packed = Library.class.getResourceAsStream(resource)) {
            content = packed.readAllBytes();
        }
        String key = "io.polyflake.loaded." + digest(content);
        synchronized (System.getProperties()) {
            String path = System.getProperty(key);
            if (path != null) {
                try {
                    return load(path); // a loaded library is found by its name
                } catch (IllegalArgumentException gone) {
                    // This loader needs the file itself, which has been deleted.
                }
            }
            return extracted(content, resource.substring(resource.lastIndexOf('/') + 1), key);
        }
    }

    private static String digest(byte[] content) {
        try {
            return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(content));
        } catch (NoSuchAlgorithmException impossible) {
            throw new AssertionError(impossible);
        }
    }

    /** Extracts a library to a file that only this user can read, loads it, and sets the property to its path. */
    private static SymbolLookup extracted(byte[] content, String name, String key) throws IOException {
        boolean isPosix = Path.of("").getFileSystem().supportedFileAttributeViews().contains("posix");
        Path folder = isPosix
                ? Files.createTempDirectory("polyflake-",
                        PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")))
                : Files.createTempDirectory("polyflake-");
        Path file = folder.resolve(name);
        try {
            Files.write(file, content);
            // A full disk, or a change by another process, should cause an error here rather than a crash.
            if (!Arrays.equals(content, Files.readAllBytes(file))) {
                throw new IOException(file + " is not as it was written");
            }
            String path = file.toRealPath().toString();
            SymbolLookup symbols = load(path);
            System.setProperty(key, path);
            return symbols;
        } finally {
            // A loaded library no longer needs its file. Windows cannot delete the file yet.
            file.toFile().delete();
            if (!folder.toFile().delete()) {
                folder.toFile().deleteOnExit(); // deleted after the file: Java deletes in reverse order
                file.toFile().deleteOnExit();
            }
        }
    }
}
