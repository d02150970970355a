package io.polyflake;

import java.util.AbstractMap;
import java.util.Collections;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Set;

/** The node fields of an ID, read from its bits on demand. Filling a map would cost more than the rest of decoding. */
final class NodeFields extends AbstractMap<String, Long> {
    private final Field[] fields;
    private final long id;

    NodeFields(Field[] fields, long id) {
        this.fields = fields;
        this.id = id;
    }

    @Override
    public int size() {
        return fields.length;
    }

    @Override
    public boolean containsKey(Object name) {
        return get(name) != null;
    }

    @Override
    public Long get(Object name) {
        for (Field field : fields) {
            if (field.name().equals(name)) {
                return field.of(id);
            }
        }
        return null;
    }

    @Override
    public Set<Entry<String, Long>> entrySet() {
        Set<Entry<String, Long>> entries = new LinkedHashSet<>();
        for (Field field : fields) {
            entries.add(Map.entry(field.name(), field.of(id)));
        }
        return Collections.unmodifiableSet(entries);
    }
}
