package com.example.jackson;

import com.fasterxml.jackson.annotation.JacksonAnnotationsInside;
import io.polyflake.IdFormat;
import io.polyflake.InvalidIdException;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import tools.jackson.core.JsonGenerator;
import tools.jackson.core.JsonParser;
import tools.jackson.core.JsonToken;
import tools.jackson.databind.DeserializationContext;
import tools.jackson.databind.SerializationContext;
import tools.jackson.databind.ValueDeserializer;
import tools.jackson.databind.ValueSerializer;
import tools.jackson.databind.annotation.JsonDeserialize;
import tools.jackson.databind.annotation.JsonSerialize;

/**
 * Jackson 3, as in Spring Boot 4: an ID is a {@code long} in the program and a string in JSON.
 *
 * <pre>{@code
 * record Order(@IdString long id, @IdString Long parent, @IdString.Each List<Long> items) {}
 * }</pre>
 *
 * <p>Only decimal text is accepted. Even a JSON number is refused, because JavaScript may have rounded it. IDs are read
 * and written as unsigned numbers.
 */
@JacksonAnnotationsInside
@JsonSerialize(using = IdString.Writer.class)
@JsonDeserialize(using = IdString.Reader.class)
@Retention(RetentionPolicy.RUNTIME)
@Target({ElementType.FIELD, ElementType.METHOD, ElementType.PARAMETER})
public @interface IdString {
    /** Marks a collection of IDs. */
    @JacksonAnnotationsInside
    @JsonSerialize(contentUsing = Writer.class)
    @JsonDeserialize(contentUsing = Reader.class)
    @Retention(RetentionPolicy.RUNTIME)
    @Target({ElementType.FIELD, ElementType.METHOD, ElementType.PARAMETER})
    @interface Each {}

    final class Writer extends ValueSerializer<Long> {
        @Override
        public void serialize(Long id, JsonGenerator json, SerializationContext context) {
            json.writeString(IdFormat.DECIMAL.format(id));
        }
    }

    final class Reader extends ValueDeserializer<Long> {
        @Override
        public Long deserialize(JsonParser json, DeserializationContext context) {
            if (!json.hasToken(JsonToken.VALUE_STRING)) {
                throw context.wrongTokenException(
                        json, Long.class, JsonToken.VALUE_STRING, "an ID must be decimal text");
            }
            String text = json.getString();
            try {
                return IdFormat.DECIMAL.parse(text);
            } catch (InvalidIdException invalid) {
                throw context.weirdStringException(text, Long.class, invalid.getMessage());
            }
        }
    }
}
