-- MySQL and MariaDB: an ID's parts, and the first and last ID of a day.
--
--   SELECT id, snowflake_time(id), snowflake_node(id), snowflake_sequence(id) FROM orders;
--   SELECT * FROM orders WHERE id BETWEEN first_id('2026-11-22') AND last_id('2026-11-22');
--
-- The numbers are those of the layout `twitter`, the default. For another layout, `polyflake layout NAME` prints
-- the epoch (1288834974657), the bits below the timestamp (22: 4194304 is 2^22), and the shift and bits of the node
-- (12, 10) and the sequence (0, 12). If its tick is not 1 ms, multiply the ticks by the tick's length.
--
-- If the server has a binary log, CREATE FUNCTION needs the privilege SUPER, or
-- `SET GLOBAL log_bin_trust_function_creators = 1`.

-- In UTC, whatever the session's time zone.
CREATE FUNCTION snowflake_time(id BIGINT) RETURNS DATETIME(3) DETERMINISTIC NO SQL
    RETURN TIMESTAMPADD(MICROSECOND, ((id >> 22) + 1288834974657) * 1000, '1970-01-01 00:00:00.000');

CREATE FUNCTION snowflake_node(id BIGINT) RETURNS INT DETERMINISTIC NO SQL
    RETURN id >> 12 & 1023;

CREATE FUNCTION snowflake_sequence(id BIGINT) RETURNS INT DETERMINISTIC NO SQL
    RETURN id & 4095;

-- Days are in UTC. On the layout's first and last day, the range covers only the part inside the layout. A day before
-- the epoch has no IDs, and a day after the end causes an error (BIGINT value is out of range).
CREATE FUNCTION first_id(day DATE) RETURNS BIGINT DETERMINISTIC NO SQL
    RETURN GREATEST(DATEDIFF(day, '1970-01-01') * 86400000 - 1288834974657, 0) * 4194304;

CREATE FUNCTION last_id(day DATE) RETURNS BIGINT DETERMINISTIC NO SQL
    RETURN LEAST(DATEDIFF(day, '1970-01-01') * 86400000 + 86399999 - 1288834974657, 2199023255551) * 4194304 + 4194303;
