package com.example.jackson;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.ObjectMapper;
import tools.jackson.databind.json.JsonMapper;

class IdStringTest {
    record Order(@IdString long id, @IdString Long parent, @IdString.Each List<Long> items, long amount) {}

    static final class Bean {
        @IdString
        public long id;
    }

    private final ObjectMapper mapper = JsonMapper.builder().build();

    @ParameterizedTest
    @ValueSource(longs = {0, 1, (1L << 53) + 1, 1541815603606036481L, Long.MAX_VALUE, Long.MIN_VALUE, -1})
    void anIdComesBackAsItWent(long id) {
        String text = Long.toUnsignedString(id);
        Order order = new Order(id, id, List.of(id, 7L), 12);
        String json = mapper.writeValueAsString(order);
        String expected = "{\"id\":\"%s\",\"parent\":\"%s\",\"items\":[\"%s\",\"7\"],\"amount\":12}";
        assertEquals(expected.formatted(text, text, text), json);
        assertEquals(order, mapper.readValue(json, Order.class));
        assertEquals(id, mapper.readValue("{\"id\":\"" + text + "\"}", Bean.class).id);
    }

    @Test
    void nullIsNoId() {
        Order order = new Order(1, null, null, 0);
        String json = mapper.writeValueAsString(order);
        assertEquals("{\"id\":\"1\",\"parent\":null,\"items\":null,\"amount\":0}", json);
        assertEquals(order, mapper.readValue(json, Order.class));
    }

    @ParameterizedTest
    @ValueSource(strings = {"1", "1541815603606036481", "1.5", "true", "{}", "[]", "\"\"", "\"-1\"", "\"1 \"",
        "\"0x1\"", "\"18446744073709551616\"", "null"})
    void anythingElseIsRefused(String value) {
        String record = "{\"id\":" + value + ",\"parent\":null,\"items\":[],\"amount\":0}";
        assertThrows(JacksonException.class, () -> mapper.readValue(record, Order.class));
        assertThrows(JacksonException.class, () -> mapper.readValue("{\"id\":" + value + "}", Bean.class));
    }

    private String refusal(String json) {
        return assertThrows(JacksonException.class, () -> mapper.readValue(json, Bean.class)).getMessage();
    }

    @Test
    void aRefusalSaysWhy() {
        String number = refusal("{\"id\":1}");
        assertTrue(number.contains("an ID must be decimal text"), number);
        String text = refusal("{\"id\":\"1x\"}");
        assertTrue(text.contains("1x"), text);
    }
}
