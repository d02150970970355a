package com.example.jackson2;

import com.fasterxml.jackson.annotation.JacksonAnnotationsInside;
import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.databind.DeserializationContext;
import com.fasterxml.jackson.databind.JsonDeserializer;
import com.fasterxml.jackson.databind.JsonSerializer;
import com.fasterxml.jackson.databind.SerializerProvider;
import com.fasterxml.jackson.databind.annotation.JsonDeserialize;
import com.fasterxml.jackson.databind.annotation.JsonSerialize;
import io.polyflake.IdFormat;
import io.polyflake.InvalidIdException;
import java.io.IOException;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * Jackson 2, as in Spring Boot 3: an ID is a {@code long} in the program and a string in JSON.
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

    final class Writer extends JsonSerializer<Long> {
        @Override
        public void serialize(Long id, JsonGenerator json, SerializerProvider context) throws IOException {
            json.writeString(IdFormat.DECIMAL.format(id));
        }
    }

    final class Reader extends JsonDeserializer<Long> {
        @Override
        public Long deserialize(JsonParser json, DeserializationContext context) throws IOException {
            if (!json.hasToken(JsonToken.VALUE_STRING)) {
                throw context.wrongTokenException(
                        json, Long.class, JsonToken.VALUE_STRING, "an ID must be decimal text");
            }
            String text = json.getText();
            try {
                return IdFormat.DECIMAL.parse(text);
            } catch (InvalidIdException invalid) {
                throw context.weirdStringException(text, Long.class, invalid.getMessage());
            }
        }
    }
}
