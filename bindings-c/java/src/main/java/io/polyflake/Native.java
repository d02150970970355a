package io.polyflake;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandleProxies;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.ref.Cleaner;
import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;

/**
 * The functions of {@code polyflake.h}, and conversions for their arguments. A native object is represented by its
 * address, a {@code long}, so that calls need not check a segment. The caller must keep the object's owner reachable
 * during the call.
 *
 * <p>Functions that neither wait nor call back are critical: the thread stays in the Java state, which saves most of
 * the cost of a call.
 */
@SuppressWarnings("restricted")
final class Native {
    /** POLYFLAKE_ABI_VERSION of the header that this file matches. */
    static final int ABI_VERSION = 0;

    static final int OK = 0;
    static final int TIME_OUT_OF_RANGE = 6;
    static final int CLOCK_FAILED = 10;
    static final int COUNTER_UNAVAILABLE = 15;
    static final int INTERNAL = 99;
    static final int ID_TEXT_SIZE = 37;
    static final int LAYOUT_TEXT_SIZE = 352;
    static final int PUBLIC_ID_SIZE = 49;
    static final int PUBLIC_KEY_SIZE = 28;

    private static final Cleaner CLEANER = Cleaner.create();

    private static final Library LIBRARY = Library.find();

    private static final FunctionDescriptor STATUS_OF_BUFFER =
            FunctionDescriptor.of(JAVA_INT, JAVA_LONG, ADDRESS, ADDRESS);
    private static final FunctionDescriptor MAKE = FunctionDescriptor.of(JAVA_INT, JAVA_LONG, ADDRESS, ADDRESS);
    private static final FunctionDescriptor FREE = FunctionDescriptor.ofVoid(JAVA_LONG);
    private static final FunctionDescriptor ZERO = FunctionDescriptor.of(JAVA_LONG, JAVA_LONG);
    private static final FunctionDescriptor FILL =
            FunctionDescriptor.of(JAVA_INT, JAVA_LONG, JAVA_LONG, ADDRESS, ADDRESS, ADDRESS);
    private static final FunctionDescriptor TEXT = FunctionDescriptor.of(ADDRESS, JAVA_INT);
    private static final FunctionDescriptor NO_ARGUMENT_TEXT = FunctionDescriptor.of(ADDRESS);
    private static final FunctionDescriptor READ =
            FunctionDescriptor.of(JAVA_INT, ADDRESS, ADDRESS, ADDRESS, ADDRESS);
    private static final FunctionDescriptor NUMBERED =
            FunctionDescriptor.of(JAVA_INT, JAVA_LONG, JAVA_LONG, ADDRESS, ADDRESS);
    private static final FunctionDescriptor BOUND =
            FunctionDescriptor.of(JAVA_INT, JAVA_LONG, JAVA_LONG, JAVA_INT, ADDRESS, ADDRESS);
    private static final FunctionDescriptor CODE_TEXT =
            FunctionDescriptor.of(JAVA_INT, JAVA_LONG, ADDRESS, JAVA_LONG, ADDRESS);

    private static final MethodHandle STATUS_NAME = critical("polyflake_status_name", TEXT);
    private static final MethodHandle STATUS_MESSAGE = critical("polyflake_status_message", TEXT);
    private static final MethodHandle VERSION = critical("polyflake_version", NO_ARGUMENT_TEXT);
    private static final MethodHandle COPIES_WARNING = ordinary("polyflake_copies_warning", NO_ARGUMENT_TEXT);
    private static final MethodHandle PRESET_COUNT =
            critical("polyflake_preset_count", FunctionDescriptor.of(JAVA_LONG));
    private static final MethodHandle PRESET_NAME =
            critical("polyflake_preset_name", FunctionDescriptor.of(ADDRESS, JAVA_LONG));

    private static final MethodHandle OPTIONS_NEW =
            ordinary("polyflake_options_new", FunctionDescriptor.of(JAVA_LONG));
    private static final MethodHandle OPTIONS_FREE = ordinary("polyflake_options_free", FREE);
    private static final MethodHandle OPTIONS_SET_BYTES = ordinary("polyflake_options_set_bytes",
            FunctionDescriptor.of(JAVA_INT, JAVA_LONG, ADDRESS, ADDRESS, JAVA_LONG, ADDRESS));
    private static final MethodHandle OPTIONS_SET_NODE_FIELD = ordinary("polyflake_options_set_node_field",
            FunctionDescriptor.of(JAVA_INT, JAVA_LONG, ADDRESS, ADDRESS, ADDRESS));
    private static final MethodHandle OPTIONS_SET_LAYOUT = ordinary("polyflake_options_set_layout",
            FunctionDescriptor.of(JAVA_INT, JAVA_LONG, JAVA_LONG, ADDRESS));
    private static final MethodHandle OPTIONS_SET_CLOCK = ordinary("polyflake_options_set_clock",
            FunctionDescriptor.of(JAVA_INT, JAVA_LONG, ADDRESS, ADDRESS, ADDRESS));
    private static final MethodHandle OPTIONS_COMPOSE = ordinary("polyflake_options_compose",
            FunctionDescriptor.of(JAVA_INT, JAVA_LONG, JAVA_LONG, JAVA_LONG, ADDRESS, ADDRESS));
    private static final MethodHandle RESET_STATE = ordinary("polyflake_reset_state",
            FunctionDescriptor.of(JAVA_INT, ADDRESS, JAVA_LONG, ADDRESS));

    private static final MethodHandle LAYOUT_PARSE =
            ordinary("polyflake_layout_parse", FunctionDescriptor.of(JAVA_INT, ADDRESS, ADDRESS, ADDRESS));
    private static final MethodHandle LAYOUT_FREE = ordinary("polyflake_layout_free", FREE);
    private static final MethodHandle LAYOUT_TEXT = ordinary("polyflake_layout_text", CODE_TEXT);
    private static final MethodHandle LAYOUT_PROPERTIES = ordinary("polyflake_layout_properties", STATUS_OF_BUFFER);
    private static final MethodHandle LAYOUT_FIELD = ordinary("polyflake_layout_field", NUMBERED);
    private static final MethodHandle LAYOUT_DECODE = ordinary("polyflake_layout_decode", NUMBERED);
    private static final MethodHandle LAYOUT_MIN_ID = ordinary("polyflake_layout_min_id", BOUND);
    private static final MethodHandle LAYOUT_MAX_ID = ordinary("polyflake_layout_max_id", BOUND);

    private static final MethodHandle SNOWFLAKE_NEW = ordinary("polyflake_snowflake_new", MAKE);
    private static final MethodHandle SNOWFLAKE_CLOSE = ordinary("polyflake_snowflake_close", FREE);
    private static final MethodHandle SNOWFLAKE_FREE = ordinary("polyflake_snowflake_free", FREE);
    private static final MethodHandle SNOWFLAKE_LAYOUT =
            ordinary("polyflake_snowflake_layout", FunctionDescriptor.of(JAVA_LONG, JAVA_LONG));
    private static final MethodHandle SNOWFLAKE_NODE = ordinary("polyflake_snowflake_node", STATUS_OF_BUFFER);
    private static final MethodHandle SNOWFLAKE_STATS = ordinary("polyflake_snowflake_stats", STATUS_OF_BUFFER);
    private static final MethodHandle SNOWFLAKE_LEASE = ordinary("polyflake_snowflake_lease", STATUS_OF_BUFFER);
    private static final MethodHandle NEXT_ID_NOW_OR_ZERO = critical("polyflake_next_id_now_or_zero", ZERO);
    private static final MethodHandle NEXT_ID_NOW = ordinary("polyflake_next_id_now", STATUS_OF_BUFFER);
    private static final MethodHandle TRY_NEXT_ID = ordinary("polyflake_try_next_id", STATUS_OF_BUFFER);
    private static final MethodHandle FILL_NOW = ordinary("polyflake_fill_now", FILL);
    private static final MethodHandle FILL_NOW_ON_HEAP =
            bind("polyflake_fill_now", FILL, Linker.Option.critical(true));
    private static final MethodHandle CHECK_BATCH =
            critical("polyflake_check_batch", FunctionDescriptor.of(JAVA_INT, JAVA_LONG, ADDRESS));
    private static final MethodHandle WAITING_NEW = ordinary("polyflake_waiting_new", MAKE);
    private static final MethodHandle WAITING_POLL = ordinary("polyflake_waiting_poll", FunctionDescriptor.of(
            JAVA_INT, JAVA_LONG, JAVA_LONG, JAVA_LONG, ADDRESS, ADDRESS, ADDRESS, ADDRESS));
    private static final MethodHandle WAITING_FREE = ordinary("polyflake_waiting_free", FREE);

    private static final MethodHandle SET_LEASE_LISTENER = ordinary("polyflake_set_lease_listener",
            FunctionDescriptor.of(JAVA_INT, ADDRESS, ADDRESS, ADDRESS));

    // A function that waits for a store or for a lock is not critical.
    private static final MethodHandle COUNTER_OPEN = ordinary("polyflake_counter_open", MAKE);
    private static final MethodHandle COUNTER_CLOSE = ordinary("polyflake_counter_close", FREE);
    private static final MethodHandle COUNTER_FREE = ordinary("polyflake_counter_free", FREE);
    private static final MethodHandle COUNTER_TRY_NEXT_ID_OR_ZERO =
            ordinary("polyflake_counter_try_next_id_or_zero", ZERO);
    private static final MethodHandle COUNTER_TRY_NEXT_ID = ordinary("polyflake_counter_try_next_id", STATUS_OF_BUFFER);
    private static final MethodHandle COUNTER_FILL = ordinary("polyflake_counter_fill", NUMBERED);
    private static final MethodHandle COUNTER_NEXT_BLOCK = ordinary("polyflake_counter_next_block", NUMBERED);
    private static final MethodHandle COUNTER_PEEK = ordinary("polyflake_counter_peek", STATUS_OF_BUFFER);
    private static final MethodHandle COUNTER_RAISE = ordinary("polyflake_counter_raise",
            FunctionDescriptor.of(JAVA_INT, JAVA_LONG, JAVA_LONG, ADDRESS));
    private static final MethodHandle COUNTER_REMOVE = ordinary("polyflake_counter_remove", STATUS_OF_BUFFER);
    private static final MethodHandle COUNTER_STATS = ordinary("polyflake_counter_stats", STATUS_OF_BUFFER);

    private static final MethodHandle SEQUENCES_OPEN = ordinary("polyflake_sequences_open", MAKE);
    private static final MethodHandle SEQUENCES_CLOSE = ordinary("polyflake_sequences_close", FREE);
    private static final MethodHandle SEQUENCES_FREE = ordinary("polyflake_sequences_free", FREE);
    private static final MethodHandle SEQUENCES_TRY_NEXT_ID = ordinary("polyflake_sequences_try_next_id",
            FunctionDescriptor.of(JAVA_INT, JAVA_LONG, ADDRESS, ADDRESS, ADDRESS));
    private static final MethodHandle SEQUENCES_NEXT_IDS = ordinary("polyflake_sequences_next_ids",
            FunctionDescriptor.of(JAVA_INT, JAVA_LONG, ADDRESS, JAVA_LONG, ADDRESS, ADDRESS));
    private static final MethodHandle SEQUENCES_STATS = ordinary("polyflake_sequences_stats", STATUS_OF_BUFFER);

    private static final MethodHandle ID_WRITE = ordinary("polyflake_id_write",
            FunctionDescriptor.of(JAVA_INT, JAVA_LONG, ADDRESS, ADDRESS, JAVA_LONG, ADDRESS));
    private static final MethodHandle ID_READ = ordinary("polyflake_id_read", READ);

    private static final MethodHandle PUBLIC_IDS_NEW = ordinary("polyflake_public_ids_new", READ);
    private static final MethodHandle PUBLIC_IDS_FREE = ordinary("polyflake_public_ids_free", FREE);
    private static final MethodHandle PUBLIC_IDS_ENCODE = ordinary("polyflake_public_ids_encode",
            FunctionDescriptor.of(JAVA_INT, JAVA_LONG, JAVA_LONG, ADDRESS, JAVA_LONG, ADDRESS));
    private static final MethodHandle PUBLIC_IDS_DECODE = ordinary("polyflake_public_ids_decode",
            FunctionDescriptor.of(JAVA_INT, JAVA_LONG, ADDRESS, ADDRESS, ADDRESS));
    private static final MethodHandle PUBLIC_KEY_GENERATE = ordinary("polyflake_public_key_generate",
            FunctionDescriptor.of(JAVA_INT, JAVA_INT, ADDRESS, JAVA_LONG, ADDRESS));

    private Native() {}

    /** Returns the name of an error code. */
    static String statusName(int status) {
        try {
            return text((MemorySegment) STATUS_NAME.invokeExact(status));
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    static String statusMessage(int status) {
        try {
            return text((MemorySegment) STATUS_MESSAGE.invokeExact(status));
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    static String version() {
        try {
            return text((MemorySegment) VERSION.invokeExact());
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    /** Returns a warning, or null if this is the only copy of the library in the process. */
    static String copiesWarning() {
        try {
            MemorySegment warning = (MemorySegment) COPIES_WARNING.invokeExact();
            return warning.equals(MemorySegment.NULL) ? null : text(warning);
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    static long presetCount() {
        try {
            return (long) PRESET_COUNT.invokeExact();
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    static String presetName(long index) {
        try {
            return text((MemorySegment) PRESET_NAME.invokeExact(index));
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    static long optionsNew() {
        try {
            return (long) OPTIONS_NEW.invokeExact();
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    static void optionsFree(long options) {
        free(OPTIONS_FREE, options);
    }

    static int optionsSetBytes(
            long options, MemorySegment name, MemorySegment value, long length, MemorySegment detail) {
        try {
            return (int) OPTIONS_SET_BYTES.invokeExact(options, name, value, length, detail);
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    static int optionsSetNodeField(long options, MemorySegment field, MemorySegment value, MemorySegment detail) {
        try {
            return (int) OPTIONS_SET_NODE_FIELD.invokeExact(options, field, value, detail);
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    static int optionsSetLayout(long options, long layout, MemorySegment detail) {
        try {
            return (int) OPTIONS_SET_LAYOUT.invokeExact(options, layout, detail);
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    static int optionsSetClock(long options, MemorySegment clock, MemorySegment detail) {
        try {
            return (int) OPTIONS_SET_CLOCK.invokeExact(options, clock, MemorySegment.NULL, detail);
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    static int optionsCompose(long options, long unixMs, long sequence, MemorySegment id, MemorySegment detail) {
        try {
            return (int) OPTIONS_COMPOSE.invokeExact(options, unixMs, sequence, id, detail);
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    static int resetState(MemorySegment path, long length, MemorySegment detail) {
        try {
            return (int) RESET_STATE.invokeExact(path, length, detail);
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    static int layoutParse(MemorySegment text, MemorySegment layout, MemorySegment detail) {
        try {
            return (int) LAYOUT_PARSE.invokeExact(text, layout, detail);
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    static void layoutFreeAfter(Object owner, long layout) {
        freeAfter(owner, LAYOUT_FREE, layout);
    }

    static int layoutText(long layout, MemorySegment text, MemorySegment detail) {
        try {
            return (int) LAYOUT_TEXT.invokeExact(layout, text, text.byteSize(), detail);
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    static int layoutProperties(long layout, MemorySegment info, MemorySegment detail) {
        return intoBuffer(LAYOUT_PROPERTIES, layout, info, detail);
    }

    static int layoutField(long layout, long index, MemorySegment field, MemorySegment detail) {
        return numbered(LAYOUT_FIELD, layout, index, field, detail);
    }

    static int layoutDecode(long layout, long id, MemorySegment decoded, MemorySegment detail) {
        return numbered(LAYOUT_DECODE, layout, id, decoded, detail);
    }

    static int layoutMinId(long layout, long unixMs, int nanoseconds, MemorySegment id, MemorySegment detail) {
        try {
            return (int) LAYOUT_MIN_ID.invokeExact(layout, unixMs, nanoseconds, id, detail);
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    static int layoutMaxId(long layout, long unixMs, int nanoseconds, MemorySegment id, MemorySegment detail) {
        try {
            return (int) LAYOUT_MAX_ID.invokeExact(layout, unixMs, nanoseconds, id, detail);
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    static int snowflakeNew(long options, MemorySegment snowflake, MemorySegment detail) {
        return intoBuffer(SNOWFLAKE_NEW, options, snowflake, detail);
    }

    static void snowflakeClose(long snowflake) {
        free(SNOWFLAKE_CLOSE, snowflake);
    }

    /** The arena holds the stub of the caller's clock, and outlives the native Snowflake. */
    static void snowflakeFreeAfter(Object owner, long snowflake, Arena arena) {
        freeAfter(owner, MethodHandles.dropArguments(SNOWFLAKE_FREE, 1, Arena.class), snowflake, arena);
    }

    static long snowflakeLayout(long snowflake) {
        try {
            return (long) SNOWFLAKE_LAYOUT.invokeExact(snowflake);
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    static int snowflakeNode(long snowflake, MemorySegment node, MemorySegment detail) {
        return intoBuffer(SNOWFLAKE_NODE, snowflake, node, detail);
    }

    static int snowflakeStats(long snowflake, MemorySegment stats, MemorySegment detail) {
        return intoBuffer(SNOWFLAKE_STATS, snowflake, stats, detail);
    }

    static int snowflakeLease(long snowflake, MemorySegment lease, MemorySegment detail) {
        return intoBuffer(SNOWFLAKE_LEASE, snowflake, lease, detail);
    }

    static long nextIdNowOrZero(long snowflake) {
        try {
            return (long) NEXT_ID_NOW_OR_ZERO.invokeExact(snowflake);
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    static int nextIdNow(long snowflake, MemorySegment id, MemorySegment detail) {
        return intoBuffer(NEXT_ID_NOW, snowflake, id, detail);
    }

    static int tryNextId(long snowflake, MemorySegment id, MemorySegment detail) {
        return intoBuffer(TRY_NEXT_ID, snowflake, id, detail);
    }

    static int fillNow(long snowflake, long n, MemorySegment ids, MemorySegment filled, MemorySegment detail) {
        try {
            return (int) FILL_NOW.invokeExact(snowflake, n, ids, filled, detail);
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    /**
     * Fills {@code ids}. All segments may be on the heap. The Snowflake must have a built-in clock, because a critical
     * call must not run a caller's clock.
     */
    static int fillNowOnHeap(long snowflake, long n, MemorySegment ids, MemorySegment filled, MemorySegment detail) {
        try {
            return (int) FILL_NOW_ON_HEAP.invokeExact(snowflake, n, ids, filled, detail);
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    static int checkBatch(long n, MemorySegment detail) {
        try {
            return (int) CHECK_BATCH.invokeExact(n, detail);
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    static int waitingNew(long snowflake, MemorySegment waiting, MemorySegment detail) {
        return intoBuffer(WAITING_NEW, snowflake, waiting, detail);
    }

    static int waitingPoll(long waiting, long waitedNs, long n, MemorySegment ids, MemorySegment filled,
            MemorySegment pauseNs, MemorySegment detail) {
        try {
            return (int) WAITING_POLL.invokeExact(waiting, waitedNs, n, ids, filled, pauseNs, detail);
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    static void waitingFree(long waiting) {
        free(WAITING_FREE, waiting);
    }

    /** Returns the address of the function that sets the listener. Each copy of the library has a different one. */
    static long leaseListenerSetter() {
        return LIBRARY.function("polyflake_set_lease_listener").address();
    }

    static void setLeaseListener(MemorySegment listener) {
        try {
            int ignored = (int) SET_LEASE_LISTENER.invokeExact(listener, MemorySegment.NULL, MemorySegment.NULL);
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    static int counterOpen(long options, MemorySegment counter, MemorySegment detail) {
        return intoBuffer(COUNTER_OPEN, options, counter, detail);
    }

    static void counterClose(long counter) {
        free(COUNTER_CLOSE, counter);
    }

    static void counterFreeAfter(Object owner, long counter) {
        freeAfter(owner, COUNTER_FREE, counter);
    }

    static long counterTryNextIdOrZero(long counter) {
        try {
            return (long) COUNTER_TRY_NEXT_ID_OR_ZERO.invokeExact(counter);
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    static int counterTryNextId(long counter, MemorySegment number, MemorySegment detail) {
        return intoBuffer(COUNTER_TRY_NEXT_ID, counter, number, detail);
    }

    static int counterFill(long counter, long n, MemorySegment numbers, MemorySegment detail) {
        return numbered(COUNTER_FILL, counter, n, numbers, detail);
    }

    static int counterNextBlock(long counter, long n, MemorySegment first, MemorySegment detail) {
        return numbered(COUNTER_NEXT_BLOCK, counter, n, first, detail);
    }

    static int counterPeek(long counter, MemorySegment number, MemorySegment detail) {
        return intoBuffer(COUNTER_PEEK, counter, number, detail);
    }

    static int counterRaise(long counter, long number, MemorySegment detail) {
        try {
            return (int) COUNTER_RAISE.invokeExact(counter, number, detail);
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    static int counterRemove(long counter, MemorySegment existed, MemorySegment detail) {
        return intoBuffer(COUNTER_REMOVE, counter, existed, detail);
    }

    static int counterStats(long counter, MemorySegment counts, MemorySegment detail) {
        return intoBuffer(COUNTER_STATS, counter, counts, detail);
    }

    static int sequencesOpen(long options, MemorySegment sequences, MemorySegment detail) {
        return intoBuffer(SEQUENCES_OPEN, options, sequences, detail);
    }

    static void sequencesClose(long sequences) {
        free(SEQUENCES_CLOSE, sequences);
    }

    static void sequencesFreeAfter(Object owner, long sequences) {
        freeAfter(owner, SEQUENCES_FREE, sequences);
    }

    static int sequencesTryNextId(long sequences, MemorySegment key, MemorySegment number, MemorySegment detail) {
        try {
            return (int) SEQUENCES_TRY_NEXT_ID.invokeExact(sequences, key, number, detail);
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    static int sequencesNextIds(
            long sequences, MemorySegment keys, long n, MemorySegment numbers, MemorySegment detail) {
        try {
            return (int) SEQUENCES_NEXT_IDS.invokeExact(sequences, keys, n, numbers, detail);
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    static int sequencesStats(long sequences, MemorySegment counts, MemorySegment detail) {
        return intoBuffer(SEQUENCES_STATS, sequences, counts, detail);
    }

    static int idWrite(long id, MemorySegment format, MemorySegment text, MemorySegment detail) {
        try {
            return (int) ID_WRITE.invokeExact(id, format, text, text.byteSize(), detail);
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    static int idRead(MemorySegment text, MemorySegment format, MemorySegment id, MemorySegment detail) {
        try {
            return (int) ID_READ.invokeExact(text, format, id, detail);
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    static int publicIdsNew(MemorySegment keys, MemorySegment prefix, MemorySegment ids, MemorySegment detail) {
        try {
            return (int) PUBLIC_IDS_NEW.invokeExact(keys, prefix, ids, detail);
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    static void publicIdsFreeAfter(Object owner, long ids) {
        freeAfter(owner, PUBLIC_IDS_FREE, ids);
    }

    static int publicIdsEncode(long ids, long id, MemorySegment text, MemorySegment detail) {
        try {
            return (int) PUBLIC_IDS_ENCODE.invokeExact(ids, id, text, text.byteSize(), detail);
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    static int publicIdsDecode(long ids, MemorySegment text, MemorySegment id, MemorySegment detail) {
        try {
            return (int) PUBLIC_IDS_DECODE.invokeExact(ids, text, id, detail);
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    static int publicKeyGenerate(int number, MemorySegment text, MemorySegment detail) {
        try {
            return (int) PUBLIC_KEY_GENERATE.invokeExact(number, text, text.byteSize(), detail);
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    /** Returns the memory at a native address. */
    static MemorySegment at(MemorySegment address, long size) {
        return address.reinterpret(size);
    }

    /** Returns a C function for the library to call. It lives as long as the arena. */
    static MemorySegment upcall(MethodHandle target, FunctionDescriptor function, Arena arena) {
        return Linker.nativeLinker().upcallStub(target, function, arena);
    }

    /** Allocates a struct, which begins with its size. */
    static MemorySegment struct(Arena arena, long size) {
        MemorySegment struct = arena.allocate(size, Long.BYTES);
        struct.set(JAVA_LONG, 0, size);
        return struct;
    }

    /**
     * Returns a NUL-terminated string. A NUL inside the string would hide the rest, so it is replaced by the symbol for
     * NUL, which all parsers in the library reject.
     */
    static MemorySegment text(Arena arena, String text) {
        byte[] bytes = utf8(text.replace('\0', '\u2400'));
        MemorySegment segment = arena.allocate(bytes.length + 1L);
        MemorySegment.copy(bytes, 0, segment, JAVA_BYTE, 0, bytes.length);
        return segment;
    }

    static MemorySegment bytes(Arena arena, byte[] bytes) {
        MemorySegment segment = arena.allocate(Math.max(bytes.length, 1));
        MemorySegment.copy(bytes, 0, segment, JAVA_BYTE, 0, bytes.length);
        return segment;
    }

    /**
     * Encodes a string. A lone surrogate cannot be encoded in UTF-8: Java would write a question mark, but this returns
     * bytes that the library rejects.
     */
    static byte[] utf8(String text) {
        try {
            ByteBuffer buffer = StandardCharsets.UTF_8.newEncoder().encode(CharBuffer.wrap(text));
            byte[] bytes = new byte[buffer.remaining()];
            buffer.get(bytes);
            return bytes;
        } catch (CharacterCodingException loneSurrogate) {
            return new byte[] {(byte) 0xFF};
        }
    }

    static String text(MemorySegment address) {
        return address.reinterpret(Long.MAX_VALUE).getString(0);
    }

    private static void free(MethodHandle function, long object) {
        try {
            function.invokeExact(object);
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    /**
     * Frees a native object once nothing refers to its owner, so a call never uses freed memory. The cleaner's thread
     * keeps the action until then. The action consists only of JDK classes: a class from this package would keep its
     * class loader alive, and with it the static fields that may refer to the owner.
     */
    private static void freeAfter(Object owner, MethodHandle function, Object... arguments) {
        MethodHandle action = MethodHandles.insertArguments(function, 0, arguments);
        CLEANER.register(owner, MethodHandleProxies.asInterfaceInstance(Runnable.class, action));
    }

    private static int intoBuffer(MethodHandle function, long object, MemorySegment buffer, MemorySegment detail) {
        try {
            return (int) function.invokeExact(object, buffer, detail);
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    private static int numbered(
            MethodHandle function, long object, long number, MemorySegment buffer, MemorySegment detail) {
        try {
            return (int) function.invokeExact(object, number, buffer, detail);
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    private static MethodHandle ordinary(String name, FunctionDescriptor function) {
        return bind(name, function);
    }

    private static MethodHandle critical(String name, FunctionDescriptor function) {
        return bind(name, function, Linker.Option.critical(false));
    }

    /**
     * Looks up a function. If the library is missing, returns a function that reports this on every call; a class that
     * fails to load would report it only once.
     */
    private static MethodHandle bind(String name, FunctionDescriptor function, Linker.Option... options) {
        try {
            return Linker.nativeLinker().downcallHandle(LIBRARY.function(name), function, options);
        } catch (LibraryException missing) {
            return failing(function.toMethodType(), missing);
        }
    }

    private static MethodHandle failing(MethodType type, LibraryException missing) {
        try {
            MethodHandle fail = MethodHandles.lookup().findStatic(Native.class, "fail",
                    MethodType.methodType(Object.class, LibraryException.class)).bindTo(missing);
            return MethodHandles.dropArguments(fail.asType(MethodType.methodType(type.returnType())), 0,
                    type.parameterList());
        } catch (ReflectiveOperationException impossible) {
            throw new AssertionError(impossible);
        }
    }

    private static Object fail(LibraryException missing) {
        throw new LibraryException(missing.getMessage(), missing);
    }

    /** Converts an exception from a method handle to an unchecked exception. */
    private static RuntimeException rethrown(Throwable thrown) {
        if (thrown instanceof RuntimeException exception) {
            return exception;
        }
        throw thrown instanceof Error error ? error : new AssertionError(thrown);
    }
}
