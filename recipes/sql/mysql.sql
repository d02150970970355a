-- MySQL and MariaDB: what an ID says, and the IDs of a day.
--
--   SELECT id, snowflake_time(id), snowflake_node(id), snowflake_sequence(id) FROM orders;
--   SELECT * FROM orders WHERE id BETWEEN first_id('2026-11-22') AND last_id('2026-11-22');
--
-- These are the numbers of the layout `twitter`, the default. `polyflake layout NAME` prints those of another one:
-- its epoch (1288834974657), the bits below the timestamp (22: 4194304 is 2^22), and the shift and bits of node (12, 10)
-- and sequence (0, 12). A tick that is not 1 ms becomes a factor of the time.
--
-- With a binary log, the server wants the right SUPER or `SET GLOBAL log_bin_trust_function_creators = 1` for this.

-- In UTC, whatever the session's time zone is.
CREATE FUNCTION snowflake_time(id BIGINT) RETURNS DATETIME(3) DETERMINISTIC NO SQL
    RETURN TIMESTAMPADD(MICROSECOND, ((id >> 22) + 1288834974657) * 1000, '1970-01-01 00:00:00.000');

CREATE FUNCTION snowflake_node(id BIGINT) RETURNS INT DETERMINISTIC NO SQL
    RETURN id >> 12 & 1023;

CREATE FUNCTION snowflake_sequence(id BIGINT) RETURNS INT DETERMINISTIC NO SQL
    RETURN id & 4095;

-- Days are those of UTC. A day that the epoch or the layout's end cuts has the IDs that there are; one before the epoch
-- has none, and one after the end is an error (BIGINT value is out of range).
CREATE FUNCTION first_id(day DATE) RETURNS BIGINT DETERMINISTIC NO SQL
    RETURN GREATEST(DATEDIFF(day, '1970-01-01') * 86400000 - 1288834974657, 0) * 4194304;

CREATE FUNCTION last_id(day DATE) RETURNS BIGINT DETERMINISTIC NO SQL
    RETURN LEAST(DATEDIFF(day, '1970-01-01') * 86400000 + 86399999 - 1288834974657, 2199023255551) * 4194304 + 4194303;
