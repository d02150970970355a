package com.example.spring;

import io.polyflake.Snowflake;
import java.time.Duration;
import java.util.Optional;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.context.annotation.Bean;

/**
 * Spring Boot: one {@link Snowflake} for the program, with options from the configuration.
 *
 * <pre>{@code
 * polyflake.lease=redis://redis.internal/0
 * }</pre>
 *
 * <p>Name this class in the file
 * {@code META-INF/spring/org.springframework.boot.autoconfigure.AutoConfiguration.imports}. With a lease, the program
 * waits for a node when it starts. When it stops, it gives the node back once the last requests have finished and all
 * beans that use the Snowflake have been destroyed.
 */
@AutoConfiguration
@EnableConfigurationProperties(PolyflakeAutoConfiguration.Options.class)
public class PolyflakeAutoConfiguration {
    /** Set a node or a lease. The other options have Polyflake's defaults. */
    @ConfigurationProperties("polyflake")
    public record Options(
            String layout, String node, String lease, Duration maxBackward, Duration maxAhead, Duration maxWait) {}

    @Bean
    @ConditionalOnMissingBean
    Snowflake snowflake(Options options) {
        Snowflake.Builder builder = Snowflake.builder();
        Optional.ofNullable(options.layout).ifPresent(builder::layout);
        Optional.ofNullable(options.node).ifPresent(builder::node);
        Optional.ofNullable(options.lease).ifPresent(builder::lease);
        Optional.ofNullable(options.maxBackward).ifPresent(builder::maxBackward);
        Optional.ofNullable(options.maxAhead).ifPresent(builder::maxAhead);
        Optional.ofNullable(options.maxWait).ifPresent(builder::maxWait);
        return builder.build();
    }
}
