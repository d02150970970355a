package com.example;

import io.polyflake.IdGenerator;

/** A generator that always fails. */
public final class FailingGenerator implements IdGenerator {
    @Override
    public long nextId() {
        throw new IllegalStateException("no ID");
    }

    @Override
    public long[] nextIds(int n) {
        throw new IllegalStateException("no ID");
    }
}
