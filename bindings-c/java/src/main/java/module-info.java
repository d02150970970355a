/** Snowflakes: 64-bit, time-ordered, unique IDs, in any common layout. */
module io.polyflake {
    exports io.polyflake;
}
