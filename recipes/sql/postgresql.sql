-- PostgreSQL: an ID's parts, and the first and last ID of a day.
--
--   SELECT o.*, made, node FROM orders o, snowflake(o.id);
--   SELECT * FROM orders WHERE id BETWEEN first_id('2026-11-22') AND last_id('2026-11-22');
--
-- The numbers are those of the layout `twitter`, the default. For another layout, `polyflake layout NAME` prints
-- the epoch (1288834974657), the bits below the timestamp (22: 4194304 is 2^22), and the shift and bits of the node
-- (12, 10) and the sequence (0, 12). If its tick is not 1 ms, multiply the ticks by the tick's length.

CREATE FUNCTION snowflake(id bigint, OUT made timestamptz, OUT node integer, OUT sequence integer)
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT
        (timestamp '1970-01-01' + ((id >> 22) + 1288834974657) * interval '1 ms') AT TIME ZONE 'UTC',
        (id >> 12 & 1023)::integer,
        (id & 4095)::integer
$$;

-- Days are in UTC. On the layout's first and last day, the range covers only the part inside the layout. A day before
-- the epoch has no IDs, and a day after the end causes an error (bigint out of range).
CREATE FUNCTION first_id(day date) RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT greatest((day - date '1970-01-01')::bigint * 86400000 - 1288834974657, 0) * 4194304
$$;

CREATE FUNCTION last_id(day date) RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT least((day - date '1970-01-01')::bigint * 86400000 + 86399999 - 1288834974657, 2199023255551) * 4194304 + 4194303
$$;
