package io.polyflake;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/** The options of a counter or of sequences, with the code that opens them. */
final class StoreOptions {
    private static final Duration DEFAULT_MAX_WAIT = Duration.ofSeconds(10);

    private final List<Settings.Setting> settings = new ArrayList<>();
    private Duration maxWait = DEFAULT_MAX_WAIT;

    StoreOptions(String name) {
        settings.add(Settings.text("name", name));
    }

    void set(String name, String value) {
        settings.add(Settings.text(name, value));
        if (name.equals("max_wait_ms")) {
            // If the value is not a number, opening fails.
            maxWait = value.matches("\\d{1,10}") ? Duration.ofMillis(Long.parseLong(value)) : DEFAULT_MAX_WAIT;
        }
    }

    void maxWait(Duration longest) {
        settings.add(Settings.duration("max_wait_ms", longest));
        maxWait = longest;
    }

    /** Makes a Counter or Sequences from the native object. */
    interface Made<T> {
        T make(long address, Duration maxWait, LeaseEvents.Use use);
    }

    <T extends AutoCloseable> T open(Settings.Making making, Made<T> made) {
        List<Settings.Setting> now = List.copyOf(settings);
        Duration wait = maxWait;
        T opened = StoreThreads.open(() -> LeaseEvents.open(use -> {
            try (Settings options = new Settings(now)) {
                return made.make(options.make(making, status -> null), wait, use);
            }
        }));
        LeaseEvents.warnOfCopies();
        return opened;
    }
}
