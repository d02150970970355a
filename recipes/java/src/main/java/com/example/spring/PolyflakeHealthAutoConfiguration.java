package com.example.spring;

import io.polyflake.Lease;
import io.polyflake.Snowflake;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.health.contributor.Health;
import org.springframework.boot.health.contributor.HealthIndicator;
import org.springframework.context.annotation.Bean;

/**
 * Spring Boot's actuator: {@code /actuator/health} shows the lease's state under {@code polyflake}. List this class
 * next to {@link PolyflakeAutoConfiguration}.
 *
 * <p>While the store cannot be reached, the program is up as long as it issues IDs, so that a restart of the store does
 * not take down the fleet. Once the lease is lost, the program is down.
 *
 * <p>In Boot 3, {@code Health} is in {@code org.springframework.boot.actuate.health}.
 */
@AutoConfiguration(after = PolyflakeAutoConfiguration.class)
@ConditionalOnBean(Snowflake.class)
public class PolyflakeHealthAutoConfiguration {
    @Bean
    HealthIndicator polyflakeHealthIndicator(Snowflake ids) {
        return () -> {
            Health.Builder health = Health.up().withDetail("node", ids.node());
            ids.lease().ifPresent(lease -> describe(lease, health));
            return health.build();
        };
    }

    private static void describe(Lease lease, Health.Builder health) {
        health.withDetail("lease", lease.state()).withDetail("store", lease.store());
        lease.bound().ifPresent(bound -> health.withDetail("bound", bound));
        switch (lease.state()) {
            case HELD, UNREACHABLE -> health.up();
            case LOST, CLOSED -> health.down();
        }
    }
}
